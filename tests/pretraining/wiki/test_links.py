"""Targets of links, spelled as the pages are, and what is no article."""

import pytest

from spacy_luke.pretraining.wiki.links import pipe_trick, resolve
from spacy_luke.pretraining.wiki.sites import Site
from spacy_luke.pretraining.wiki.titles import normalize_title

GERMAN = Site(language="de", namespaces={0: "", 6: "Datei", 14: "Kategorie", 100: "Portal"})


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
