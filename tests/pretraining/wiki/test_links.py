"""Targets of links, spelled as the pages are, and what is no article."""

from dataclasses import replace

import pytest

from spacy_luke.pretraining.dump_settings import site_of
from spacy_luke.pretraining.settings import DumpSettings
from spacy_luke.pretraining.wiki.links import pipe_trick, resolve, shown_target
from spacy_luke.pretraining.wiki.sites import Names, Site
from spacy_luke.pretraining.wiki.titles import normalize_title

BASE = "https://de.wikipedia.org/wiki/A"
GERMAN = Site(
    base=BASE, language="de", namespaces={0: "", 6: "Datei", 14: "Kategorie", 100: "Portal"}
)


@pytest.mark.parametrize(
    "raw,title",
    [
        ("dog", "Dog"),
        (" dog_ house ", "Dog house"),
        ("Dog#Breeds", "Dog"),
        ("dog  #Breeds", "Dog"),
        ("AT&amp;T", "AT&T"),
        ("Rock &#39;n&#39; roll", "Rock 'n' roll"),
        ("Caf%C3%A9", "Café"),
        ("100%", "100%"),
        ("Cafe\u0301", "Café"),
        ("\u200eParis\u200f", "Paris"),
        ("ß", "ß"),
        ("élan", "Élan"),
        ("ქართული", "ქართული"),
        (":Dog", "Dog"),
        ("Star Trek: Picard", "Star Trek: Picard"),
        ("de:Hund", "Hund"),
        (":de:hund", "Hund"),
        ("C++", "C++"),
        ("%41", "A"),
    ],
)
def test_a_title_has_one_spelling(raw: str, title: str) -> None:
    assert resolve(raw, GERMAN) == ("article", title)


@pytest.mark.parametrize("title", ["Alerts&notifications", "Search&copy", "A&GT"])
def test_a_name_of_a_character_without_its_semicolon_is_text(title: str) -> None:
    assert normalize_title(title) == title


def test_a_language_that_the_user_gives_counts_more_than_the_name_of_the_export() -> None:
    export = Site(base="https://x.wikipedia.org/wiki/A", dbname="enwiki", language="en")
    for given, own, other in (("ja", "ja", "en"), ("en", "en", "ja")):
        site = site_of(export, given, DumpSettings(language=given))
        assert resolve(f":{own}:dog", site) == ("article", "Dog")
        assert resolve(f":{other}:dog", site).kind == "interwiki"
    site = site_of(replace(export, language="en formal"), "en", DumpSettings(language="en"))
    assert resolve(":en:dog", site) == ("article", "Dog")


@pytest.mark.parametrize(
    "dbname,own,others",
    [
        ("simplewiki", ("simple",), ("en", "de")),
        ("zh_yuewiki", ("zh-yue", "yue"), ("zh", "en", "cmn", "nan")),
        ("dewiktionary", ("de",), ("en",)),
        ("commonswiki", (), ("en", "de")),
        ("test2wiki", (), ("en", "de")),
        ("nowikimedia", (), ("no", "en")),
        ("be_x_oldwiki", ("be-x-old", "be-tarask"), ("be", "en")),
        ("nowiki", ("no", "nb"), ("nn", "en")),
    ],
)
def test_the_prefix_of_a_wiki_is_that_of_its_name_not_of_its_language(
    dbname: str, own: tuple, others: tuple
) -> None:
    site = Site(base="https://x.wikipedia.org/wiki/A", dbname=dbname, language="en")
    for code in own:
        assert resolve(f":{code}:dog", site) == ("article", "Dog")
    for code in others:
        assert resolve(f":{code}:dog", site).kind == "interwiki"
        assert resolve(f"{code}:dog", site).kind == "language"


def test_a_wiki_that_is_no_wikipedia_has_the_code_of_its_language_alone() -> None:
    site = Site(base="https://wiki.acme.no/A", language="nb", interwikis=frozenset({"no", "nb"}))
    assert resolve("nb:dog", site) == ("article", "Dog")
    assert resolve(":no:dog", site).kind == "interwiki"


@pytest.mark.parametrize(
    "raw,kind",
    [
        ("Datei:A.jpg", "file"),
        ("datei : A.jpg", "file"),
        ("File:A.jpg", "file"),
        ("Image:A.jpg", "file"),
        ("Bild:A.jpg", "file"),
        ("Kategorie:Hund", "category"),
        ("Category:Hund", "category"),
        (":Kategorie:Hund", "namespace"),
        (":Datei:A.jpg", "namespace"),
        ("Portal:Hund", "namespace"),
        ("User:Ada", "namespace"),
        ("fr:Chien", "language"),
        (":fr:Chien", "interwiki"),
        ("zh-min-nan:Káu", "language"),
        ("wikt:Hund", "interwiki"),
        ("Kategorie%3AHund", "category"),
        ("Datei&#58;A.jpg", "file"),
        ("fr%3aChien", "language"),
        ("%23Rassen", "section"),
        ("#Rassen", "section"),
        ("", "invalid"),
        ("a{b", "invalid"),
        ("a<b", "invalid"),
    ],
)
def test_what_is_no_article(raw: str, kind: str) -> None:
    assert resolve(raw, GERMAN) == (kind, "")


def test_titles_of_a_wiktionary_keep_their_case() -> None:
    assert resolve("dog", Site(case="case-sensitive")).title == "dog"


def test_the_capital_of_i_depends_on_the_language() -> None:
    assert resolve("istanbul", Site(language="tr")).title == "İstanbul"
    assert resolve("istanbul", Site(language="de")).title == "Istanbul"


def test_normalising_twice_changes_nothing() -> None:
    for title in ("dog", "ǆ", "a_b", "Ἀθῆναι", "100%"):
        once = normalize_title(title)
        assert once is not None and normalize_title(once) == once


@pytest.mark.parametrize(
    "raw,shown",
    [
        ("Boston (band)", "Boston"),
        ("Boston, Lincolnshire", "Boston"),
        ("Help:Boston (band)", "Boston"),
        ("wikt:dog", "dog"),
        ("東京（小説）", "東京"),
        ("Boston", "Boston"),
    ],
)
def test_the_pipe_trick(raw: str, shown: str) -> None:
    assert pipe_trick(raw) == shown


OWN = Site(
    base="https://wiki.example.com/index.php",
    language="it",
    namespaces={0: "", 4: "Acme", 6: "File", 14: "Category", 3000: "Handbook", 3002: "Team talk"},
    cases={3002: "case-sensitive"},
    content=frozenset({0, 12, 3000, 3002}),
    interwikis=frozenset({"jira", "fr"}),
    names=Names(
        prefixes=frozenset({"doi", "bild"}),
        double_colons=frozenset({"std"}),
        slashes=frozenset({"/dev/null"}),
        values=frozenset({"has population"}),
    ),
)


@pytest.mark.parametrize(
    "raw,kind,title",
    [
        # Codes and prefixes of Wikipedias are ordinary words elsewhere.
        ("IT:Laptop setup", "article", "IT:Laptop setup"),
        ("HR:Vacation", "article", "HR:Vacation"),
        ("Tools: Jenkins", "article", "Tools: Jenkins"),
        ("s:t", "article", "S:t"),
        # Prefixes of every MediaWiki, unless pages start with them.
        ("wikipedia:Dog", "interwiki", ""),
        ("doi:10.1000/1", "article", "Doi:10.1000/1"),
        ("Bild: our newspaper", "article", "Bild: our newspaper"),
        ("Image:A.jpg", "file", ""),
        # Prefixes that the user names.
        ("jira:RED-1", "interwiki", ""),
        ("JIRA:RED-1", "interwiki", ""),
        ("fr:Chien", "language", ""),
        (":fr:Chien", "interwiki", ""),
        # Namespaces of content.
        ("Handbook:vacation_policy", "article", "Handbook:Vacation policy"),
        (" handbook : vacation#Sick", "article", "Handbook:Vacation"),
        (":Handbook:Vacation", "article", "Handbook:Vacation"),
        ("Help:editing", "article", "Help:Editing"),
        ("Team_talk:rota", "article", "Team talk:rota"),
        ("Handbook:", "invalid", ""),
        ("Handbook%3Avacation%5Fpolicy", "article", "Handbook:Vacation policy"),
        ("Acme:About", "namespace", ""),
        ("C%23", "article", "C"),
        ("Project:About", "namespace", ""),
        # Subpages.
        ("/Rota", "article", "Team/Plan/Rota"),
        ("/Rota/", "article", "Team/Plan/Rota"),
        ("/Rota#May", "article", "Team/Plan/Rota"),
        ("../Rota", "article", "Team/Rota"),
        ("../", "article", "Team"),
        ("../../Rota", "article", "Rota"),
        ("/dev/null", "article", "/dev/null"),
        # Properties.
        ("Has location::Berlin", "article", "Berlin"),
        ("has location :: berlin", "article", "Berlin"),
        ("Has office::Has location::Berlin", "article", "Berlin"),
        ("Has handbook::Handbook:vacation", "article", "Handbook:Vacation"),
        ("Has population::3,600,000", "property value", ""),
        ("std::vector", "article", "Std::vector"),
    ],
)
def test_names_of_a_wiki_of_ones_own(raw: str, kind: str, title: str) -> None:
    assert resolve(raw, OWN, "Team/Plan") == (kind, title)


@pytest.mark.parametrize(
    "raw,shown",
    [
        ("Has location::Berlin", "Berlin"),
        ("/Rota", "/Rota"),
        ("/Rota/", "Rota"),
        ("../Rota", "Team/Rota"),
        ("../Rota/", "Rota"),
        ("../", "Team"),
        ("Handbook:Vacation_policy", "Handbook:Vacation policy"),
        (":Handbook:Vacation", "Handbook:Vacation"),
        ("std::vector", "std::vector"),
        ("#Section_1", "Section 1"),
        ("C%2B%2B", "C++"),
        ("100%", "100%"),
        ("%FF", "%FF"),
    ],
)
def test_the_text_of_a_link_without_a_label(raw: str, shown: str) -> None:
    assert shown_target(raw, OWN, "Team/Plan") == shown


def test_a_wikipedia_has_neither_subpages_nor_properties() -> None:
    assert resolve("/dev/null", GERMAN, "A").title == "/dev/null"
    assert resolve("std::vector", GERMAN).title == "Std::vector"


@pytest.mark.parametrize(
    "base,is_wikimedia",
    [
        ("https://en.wikipedia.org/wiki/Main_Page", True),
        ("http://it.wikipedia.org/wiki/Pagina_principale", True),
        ("https://de.wiktionary.org/wiki/A", True),
        ("https://commons.wikimedia.org/wiki/A", True),
        ("https://www.mediawiki.org/wiki/MediaWiki", True),
        ("https://wikipedia.org.example.com/", False),
        ("https://mywikipedia.org/wiki", False),
        ("http://www.freecadweb.org/wiki/index.php?title=Main_Page", False),
        ("", False),
    ],
)
def test_the_address_tells_a_wiki_of_the_foundation(base: str, is_wikimedia: bool) -> None:
    assert Site(base=base).is_wikimedia is is_wikimedia
