"""Redirects and disambiguation pages are told from articles, by the names of their own wiki."""

from dataclasses import replace

import pytest

from spacy_luke.pretraining.articles import read_dump
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.settings import DumpSettings
from spacy_luke.pretraining.wiki.export import Page
from spacy_luke.pretraining.wiki.languages import disambiguation_templates
from spacy_luke.pretraining.wiki.names import DumpNames, marks_disambiguations
from spacy_luke.pretraining.wiki.pages import disambiguation_mark, redirect_target
from spacy_luke.pretraining.wiki.sites import Names, Site
from tests.pretraining.wiki import exports

ALONE = Engine(workers=1)

WIKIPEDIA = Site(base="https://en.wikipedia.org/wiki/Main_Page", language="en")
OWN = Site(base="https://wiki.example.com/", language="en", namespaces={0: "", 102: "Property"})


@pytest.mark.parametrize(
    "text,target",
    [
        ("#REDIRECT [[Dog]]", "Dog"),
        ("#redirect[[dog_house#Roof|x]]\n{{R from move}}", "Dog house"),
        ("\n # Redirect : [[Dog]]", "Dog"),
        ("#REDIRECT" + " " * 100_000 + "x", None),
        ("#WEITERLEITUNG [[Hund]]", "Hund"),
        ("#RINVIA [[Cane]]", "Cane"),
        ("#REDIRECTION [[Chien]]", "Chien"),
        ("#REDIRECCIÓN [[Perro]]", "Perro"),
        ("#DOORVERWIJZING [[Hond]]", "Hond"),
        ("#перенаправление [[собака]]", "Собака"),
        ("#تحويل [[كلب]]", "كلب"),
        ("#転送 [[犬]]", "犬"),
        ("#重定向 [[狗]]", "狗"),
        ("#REDIRECT [[:Category:Dogs]]", "Category:Dogs"),
        ("#REDIRECT [[fr:Chien]]", None),
        ("#REDIRECT Dog", None),
        ("# [[Dog]] is the first of a list", None),
        ("Text #REDIRECT [[Dog]]", None),
    ],
)
def test_redirects_of_many_languages(text: str, target: str | None) -> None:
    assert redirect_target(text, WIKIPEDIA) == target


def article(title: str, text: str, namespace: int = 0, redirect: str | None = None) -> Page:
    return Page(1, title, namespace, redirect, text)


@pytest.mark.parametrize(
    "language,title,text,mark",
    [
        ("en", "Mercury", "* [[A]]\n{{disambiguation}}", "template disambiguation"),
        ("en", "Mercury", "* [[A]]\n{{Disambig|geo}}", "template Disambig"),
        ("it", "Mercurio", "{{Disambigua}}", "template Disambigua"),
        ("de", "Merkur", "x\n{{Begriffsklärung}}", "template Begriffsklärung"),
        ("nl", "Mercurius", "{{dp}}", "template dp"),
        ("zh-yue", "水星", "{{消歧義}}", "template 消歧義"),
        ("simple", "Mercury", "{{dab}}", "template dab"),
        (
            "en",
            "Mercury",
            "{{ human_name disambiguation <!-- x -->}}",
            "template human name disambiguation",
        ),
        ("en", "Mercury", "{{human  name_disambiguation}}", "template human name disambiguation"),
        ("en", "Mercury", "{{template:dab}}", "template template:dab"),
        ("en", "Mercury", "{{:Dab}} {{User:Dab}} {{subst:Dab}}", ""),
        ("xx", "Mercury", "x __DISAMBIG__", "__DISAMBIG__"),
        ("en", "Mercury (disambiguation)", "x", "title with (disambiguation)"),
        ("de", "Merkur (Begriffsklärung)", "x", "title with (Begriffsklärung)"),
        ("de", "X (Begriffsklärungsseite)", "x", "title with (Begriffsklärungsseite)"),
        ("ja", "マーキュリー (曖昧さ回避)", "x", "title with (曖昧さ回避)"),
    ],
)
def test_what_marks_a_disambiguation_page(language: str, title: str, text: str, mark: str) -> None:
    assert disambiguation_mark(article(title, text), Site(language=language)) == mark


@pytest.mark.parametrize(
    "language,text",
    [
        ("en", "{{About|x|y|Z (disambiguation)}} x"),
        ("en", "x {{dp}} y {{Des}}"),  # marks of the Dutch and the Spanish Wikipedia
        ("fr", "{{Disambigua}}"),
    ],
)
def test_names_of_other_languages_mark_nothing(language: str, text: str) -> None:
    assert disambiguation_mark(article("Asteroid", text), Site(language=language)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Write <nowiki>{{Disambig}}</nowiki> or <pre>\n__DISAMBIG__</pre> there.",
        "<!-- {{disambig}} --> An article.",
        "<NOWIKI>{{Disambig}}</nowiki >, <math>{{dab}}</math>",
        "<nowıki>a</nowıki> <NOWİKİ> <ſource>",  # no tags
        "{{" + " " * 100_000,
    ],
)
def test_a_page_that_writes_about_marks_has_none(text: str) -> None:
    assert disambiguation_mark(article("Rules", text), WIKIPEDIA) == ""
    assert disambiguation_mark(article("A", f"{text} {{{{dab}}}}"), WIKIPEDIA) == "template dab"


@pytest.mark.parametrize("name", ["Several", "Vorlage:several"])
def test_the_user_has_the_last_word_on_a_template_and_its_redirects(tmp_path, name: str) -> None:
    (tmp_path / "wiki.xml").write_text(
        exports.export(
            exports.page("Vorlage:Several", "__DISAMBIG__", 1, 10),
            exports.page("Vorlage:Sev", "#REDIRECT [[Vorlage:Several]]", 2, 10),
            exports.page("Vorlage:Other", "__DISAMBIG__", 3, 10),
            exports.page("A", "{{Several}} A [[B]].", 4),
            exports.page("B", "{{Sev}} A [[C]].", 5),
            exports.page("C", "{{Other}} A [[B]].", 6),
        ),
        "utf8",
    )
    settings = DumpSettings(not_disambiguations=(name,))
    manifest = read_dump([tmp_path / "wiki.xml"], tmp_path / "out", ALONE, settings, False)
    assert (manifest.counts["article"], manifest.counts["disambiguation"]) == (2, 1)
    found = Site(language="en", not_disambiguations=frozenset({"dab"}))
    assert disambiguation_mark(article("A", "{{Dab}}"), found) == ""
    assert disambiguation_mark(article("A", "{{Disambig}}"), found) == "template Disambig"


def names(site: Site, *pages: Page) -> Names:
    """Read in two parts."""
    whole = DumpNames()
    for page in pages:
        part = DumpNames()
        part.add(page, site)
        whole.update(DumpNames.from_dict(part.to_dict()))
    return whole.names(site)


def test_a_dump_with_templates_tells_which_mark_disambiguation_pages() -> None:
    """Those that it lacks are those of its language."""
    found = names(
        OWN,
        article("Template:Many Words", "__DISAMBIG__ x", 10),
        article("Template:Several", "One of several.[[Category:Disambiguation pages]]", 10),
        article("Template:Sev", "", 10, redirect="Template:Several"),
        article("Template:Dab", "A dab of paint.", 10),
        article("Template:Disambiguation", "Not an article.", 10),
        article("Template:DP", "Department: {{{1}}}", 10),
        article("Handbook", "__DISAMBIG__"),
    )
    assert found.disambiguations is not None
    assert {"many words", "several", "sev", "disambiguation"} < found.disambiguations
    assert not {"dab", "dp"} & found.disambiguations
    site = Site(language="nl", names=found)
    marks = [
        disambiguation_mark(article("A", x), site)
        for x in ("{{many_Words}}", "{{sev}}", "{{DP|x}}")
    ]
    assert marks == ["template many Words", "template sev", ""]


@pytest.mark.parametrize(
    "language, name", [("hi", "बहुविकल्पी शब्द"), ("th", "แก้กำกวม"), ("lt", "nuorodinis")]
)
def test_a_template_of_the_table_may_have_a_category_of_its_name(language: str, name: str) -> None:
    """In languages whose word for disambiguation pages is not known otherwise."""
    site = Site(
        language=language, base="https://wiki.x.example/A", namespaces={10: "T", 14: "Category"}
    )
    text = f"<div>{name}</div>"
    for category, marks in (("", False), (f"[[Category:{name}]]", True), ("[[Category:X]]", False)):
        found = names(site, article(f"T:{name}", text + category, 10))
        mark = disambiguation_mark(article("A", f"{{{{{name}}}}}"), replace(site, names=found))
        assert bool(mark) == marks


@pytest.mark.parametrize(
    "text,marks",
    [
        ("This page lists several meanings of {{{1|a word}}}.", True),
        ("[[Help:Meanings|List]] of meanings of {{PAGENAME}}.", True),
        ("<noinclude>[[{{{1}}}]]</noinclude>Several meanings.", True),
        ("For other uses, see [[{{{1}}}]].", False),
        ("See [[:{{{1|A}}}|{{{2}}}]].", False),
    ],
)
def test_a_note_that_links_to_another_meaning_is_no_mark_whatever_its_name(
    text: str, marks: bool
) -> None:
    found = names(OWN, article("Template:Disambiguation", text, 10)).disambiguations
    assert found is not None and ("disambiguation" in found) is marks


def test_a_wikipedia_also_has_the_marks_of_its_language() -> None:
    """They are made by programs (Lua), which the text of a template does not show."""
    found = names(WIKIPEDIA, article("Template:Dab", "{{#invoke:x}}", 10)).disambiguations
    assert found is not None and {"dab", "hndis"} <= found and "dp" not in found


@pytest.mark.parametrize(
    "text,marks",
    [
        ("__DISAMBIG__", True),
        ("<includeonly>[[Category:All disambiguation pages]]</includeonly>", True),
        ("[[Category:Place_name_disambiguation_pages|{{PAGENAME}}]]", True),
        ("[[Kategorie:Begriffsklärung]]", True),
        ("[[Kategorie:Begriffsklärungen]]", True),
        ("[[Category:Disambiguations]]", True),
        ("[[Categoria:Pagine di disambiguazione]]", True),
        ("[[Luokka:Täsmennyssivut]]", True),
        ("[[Category:Pages d'homonymie]]", True),
        ("[[Category:曖昧さ回避ページ]]", True),
        ("[[Category:Wikipedia desambiguaciones]]", True),
        ("[[Category:Desambiguações]]", True),
        ("[[Category:Strony ujednoznaczniające]]", True),
        ("[[Category:Страницы значений по алфавиту]]", True),
        ("[[Category:Rozlišovacie stránky]]", True),
        ("[[Category:Anlam ayrımları]]", True),
        ("[[Category:صفحات توضيح]]", True),
        ("[[Category:مقالات بحاجة لتوضيح]]", False),  # that need an explanation
        ("[[Category:Вертолёты специального назначения]]", False),
        ("[[Category:Города федерального значения]]", False),
        ("[[Category:Undisambiguated]]", False),
        ("[[Category:Disambiguation notices]]", False),
        ("[[Category:Disambiguation hatnotes]]", False),
        ("[[Category:Modèle de note d'homonymie]]", False),
        ("[[Category:Liens d'homonymie]]", False),
        ("[[Kategorie:Begriffsklärungslinks]]", False),
        ("[[Kategorie:Begriffsklärungsverweis]]", False),
        ("[[Kategorie:Begriffsklärungsvermerk]]", False),
        ("[[Category:Ссылки на неоднозначности]]", False),
        ("<nowıki>__DISAMBIG__</nowıki>", True),
        ("{{#if:{{{nocat|}}}||[[Category:Disambiguation pages|{{{1|}}}]]}}", True),
        ("{{#ifeq:{{NAMESPACE}}||[[Category:Disambiguation pages]]}}", True),
        ("[[Category:Articles with links needing disambiguation]]", False),
        ("[[Kategorie:Wikipedia:Begriffsklärungshinweis]]", False),
        ("{{#if: {{{ambiguous|}}} | [[Category:Disambiguation pages]] }} x", False),
        ("{{#if:{{{a}}}|[[Category:Disambiguation pages]]|[[Category:Boxes]]}}", False),
        ("{{#if:{{{a|}}}|" * 20_000 + "[[" * 20_000, False),
        ("x<noinclude>[[Category:Disambiguation templates]]</noinclude>", False),
        ("x<noinclude>Write <nowiki>__DISAMBIG__</nowiki>.</noinclude>", False),
        ("<!-- __DISAMBIG__ -->x", False),
        ("[[Help:Disambiguation]]", False),
        ("<NOINCLUDE>__DISAMBIG__</noinclude >x", False),
        ("{{#if:{{{a" + " " * 100_000, False),
        ("<noinclude>" * 50_000 + "<!--" * 50_000, False),
    ],
)
def test_what_a_template_says_of_itself_does_not_mark_its_pages(text: str, marks: bool) -> None:
    assert marks_disambiguations(text, OWN) is marks


def test_without_templates_in_the_dump_they_are_those_of_the_language() -> None:
    found = names(OWN, article("A", "x")).disambiguations
    assert found == Site(language="en").disambiguations == disambiguation_templates("en")


def test_titles_tell_what_is_no_prefix() -> None:
    found = names(
        OWN,
        article("Doi: how we cite", "x"),
        article("Bild: our newspaper", "x"),
        article("Star Trek: Picard", "x"),
        article("Std::vector", "x"),
        article("/dev/null", "x"),
        article("User:Doi:x", "x", 2),
        article("Property:Has population", "[[Has type::Number]]", 102),
        article("Property:Has location", "[[Has type::Page]]", 102),
        article("Property:Has note", "A note.", 102),
    )
    assert found.prefixes == {"doi", "bild"}
    assert found.double_colons == {"std"}
    assert found.slashes == {"/dev/null"}
    assert found.values == {"has population"}
