"""Fields of templates, and categories."""

import re
from html import unescape
from pathlib import Path

import mwparserfromhell
import pyarrow.parquet as pq
import pytest

from spacy_luke.pretraining.articles import read_dump
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.settings import DumpSettings
from spacy_luke.pretraining.wiki.export import partitions, read_pages
from spacy_luke.pretraining.wiki.markup import MarkupSettings, parse
from spacy_luke.pretraining.wiki.sites import Site
from tests.conftest import require_data

ENCYCLOPEDIA = Path(__file__).parents[3] / "project" / "corpus" / "encyclopedia.xml"
_NOTES = re.compile(
    r"<!--.*?-->|<ref[^>/]*/>|<ref[^>]*>.*?</ref>|<references[^>]*/?>", re.DOTALL | re.IGNORECASE
)


def facts(text: str, **site) -> list[tuple]:
    """Template, number, field, value, targets."""
    return [(*fact[:4], fact.targets) for fact in parse(text, Site(**site)).facts]


def fields(text: str) -> dict[str, str]:
    return {fact.field: fact.value for fact in parse(text).facts}


def test_an_infobox_has_facts_and_stays_out_of_the_text():
    parsed = parse("""{{Infobox person
| name        = '''Ada''' Lovelace<ref>A note.</ref>
| birth_place = [[London]], [[United Kingdom|England]] <!-- or [[Paris]] -->
| image       = [[File:Ada.jpg|thumb|A [[portrait]]]]
| spouse      =
| occupation  = {{hlist|[[mathematician]]|writer}}
| born        = {{birth date|1815|12|10}}
}}
Ada wrote to [[Charles Babbage]].
[[Category:Mathematicians|Lovelace]]""")
    assert parsed.text == "Ada wrote to Charles Babbage."
    assert [(fact.field, fact.value, fact.targets) for fact in parsed.facts] == [
        ("name", "Ada Lovelace", []),
        ("birth_place", "London, England", ["London", "United Kingdom"]),
        ("image", "", []),
        ("occupation", "mathematician, writer", ["Mathematician"]),
        ("born", "", []),
    ]
    assert parsed.facts[4].markup == "{{birth date|1815|12|10}}"
    assert parsed.facts[0].markup == "'''Ada''' Lovelace"
    assert {(fact.template, fact.number) for fact in parsed.facts} == {("Infobox person", 0)}
    assert parsed.categories == ["Mathematicians"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("{{T|a=1|b=2}} text", {"a": "1", "b": "2"}),
        ("<div> {{T|a=1|b=2}}</div>", {"a": "1", "b": "2"}),
        ("<!-- note -->{{X}} {{T|a=1|b=2}}", {"a": "1", "b": "2"}),
        ("text {{T|a=1|b=2}}", {}),  # does not start a line
        ("* {{cite book|title=A|year=1}}", {}),
        ("<ref>{{T|a=1|b=2}}</ref>", {}),
        ("{|\n| {{T|a=1|b=2}}\n|}", {}),
        ("{{T|a=1|b= }}", {}),  # one field
        ("{{T|one|two}}", {}),
        ("{{#set:|a=1|b=2}}", {}),
        ("{{T|a=1|b=2", {}),  # never closed
    ],
)
def test_which_templates_have_facts(text, expected):
    assert fields(text) == expected


def test_a_template_whose_text_the_user_keeps_has_its_facts_too():
    settings = MarkupSettings(templates={"person": "name"})
    infobox = "{{Person\n|name=Ada {{cite|x}}\n|boss=[[Bob]]\n}}"
    for text in (f"{infobox}\nAda ran.", f"{{{{X}}}} {infobox}\nAda ran."):
        parsed = parse(text, settings=settings)
        assert {x.field: x.value for x in parsed.facts} == {"name": "Ada", "boss": "Bob"}
        assert [x.targets for x in parsed.facts] == [[], ["Bob"]]
        assert parsed.text.split() == ["Ada", "Ada", "ran."]
    assert not parse(f"So {infobox} ran.", settings=settings).facts
    assert not parse(f"{{{{T|x={infobox}}}}}", settings=settings).facts
    nested = parse(f"{{{{T|x={infobox}|y=1}}}}", settings=settings)
    assert [x.field for x in nested.facts] == ["x", "y"]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ("a=x=y|b=[[A|b=c]]", {"a": "x=y", "b": "b=c"}),
        ("a={{nowrap|x=1|y}}|b=2", {"a": "y", "b": "2"}),
        ("a=1|positional|b=2|a=3", {"b": "2", "a": "3"}),  # the last one counts
        ("a=1|a=|b=2|c=3", {"b": "2", "c": "3"}),
        ("a=\n{| class=x\n| cell || d=e\n|}\nafter|b=2", {"a": "after", "b": "2"}),
        ("a=[[Open\n|b=2\n|c=3]]", {"a": "Open", "b": "2", "c": "3"}),
        ("a=x &amp; y&#61;z|b=1{{!}}2", {"a": "x & y=z", "b": "1|2"}),
        ("a=* one\n* [[two]]\n|b=x<br>y", {"a": "one\ntwo", "b": "x\ny"}),
        ("first_name = Ada | Last Name = L.", {"first_name": "Ada", "Last Name": "L."}),
        ("a=[http://x.org?q=1 site]|b={{{c|d}}}e", {"a": "site", "b": "e"}),
        ("<!-- a=0 -->a=1|b=<nowiki>|c=[[d]]</nowiki>|e=2", {"a": "1", "b": "|c=[[d]]", "e": "2"}),
    ],
)
def test_values(arguments, expected):
    assert fields(f"{{{{T|{arguments}}}}}") == expected


def test_templates_are_named_as_titles_and_numbered():
    text = "{{vorlage: infobox_Ort\n|a=1|b=2}}\n{{Infobox Ort|a=3|b=4}}\n{{other|a=5|b=6}}"
    assert facts(text, language="de", namespaces={10: "Vorlage"}) == [
        ("Infobox Ort", 0, "a", "1", []),
        ("Infobox Ort", 0, "b", "2", []),
        ("Infobox Ort", 1, "a", "3", []),
        ("Infobox Ort", 1, "b", "4", []),
        ("Other", 0, "a", "5", []),
        ("Other", 0, "b", "6", []),
    ]


def test_categories():
    text = """[[category: living_people |Ada]] [[Kategorie:Menschen]] [[Category:living people]]
[[:Category:Shown]] [[Category:]] <!-- [[Category:Hidden]] --> <nowiki>[[Category:Code]]</nowiki>
{{T|[[Category:In a template]]}}"""
    parsed = parse(text, Site(language="de", namespaces={14: "Kategorie"}))
    assert parsed.categories == ["Living people", "Menschen"]


def test_nested_and_broken_templates_take_linear_time():
    deep = "{{T|a=" * 3_000 + "1" + "|b=2}}" * 3_000
    assert [fact.field for fact in parse(deep).facts] == ["a", "b"]
    broken = "{{T|a=1|b=" + "[[x\n{|\n" * 30_000 + "}}\n" + "{{X}} " * 30_000
    assert "a" in fields(broken)


@pytest.mark.parametrize(
    "name, language, title, expected, categories",
    [
        (
            "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
            "en",
            "Abraham Lincoln",
            [("Infobox officeholder", 0, "predecessor1", "James Buchanan", ["James Buchanan"])],
            {"1809 births", "Presidents of the United States"},
        ),
        (
            "itwiki-small-dump.xml.gz",
            "it",
            "Adam Smith",
            [
                ("Bio", 0, "LuogoNascita", "Kirkcaldy", []),
                *[("Bio", 0, "PostCognome", "italianizzato in Adamo Smith", ["Lingua italiana"])],
            ],
            set(),
        ),
        (
            "minidumps/ja-wiki.xml.bz2",
            "ja",
            "ベルリン",
            [("Weather box", 0, "Sep high C", "18.8", [])],
            {"ベルリン"},
        ),
    ],
)
def test_facts_of_real_articles(data_dir, tmp_path, name, language, title, expected, categories):
    path = data_dir / "wikipedia" / name
    require_data(path)
    engine = Engine(workers=1)
    manifest = read_dump(
        [path], tmp_path / "articles", engine, DumpSettings(language), show_progress=False
    )
    (facts_file,), (categories_file,) = (
        manifest.paths(x) for x in ("facts.parquet", "categories.parquet")
    )
    rows = pq.read_table(facts_file).to_pylist()
    columns = ("template", "number", "field", "value", "targets")
    known = [tuple(row[x] for x in columns) for row in rows if row["title"] == title]
    assert [row for row in expected if row not in known] == []
    named = pq.read_table(categories_file).to_pylist()
    assert categories <= {row["category"] for row in named if row["title"] == title}
    assert manifest.counts["facts"] == len(rows)
    assert manifest.counts["categories"] == len(named)


def test_facts_of_the_encyclopedia(tmp_path):
    """Its infoboxes have a line per field."""
    manifest = read_dump([ENCYCLOPEDIA], tmp_path, Engine(workers=1), show_progress=False)
    (path,) = manifest.paths("facts.parquet")
    rows = pq.read_table(path, columns=["field", "markup"]).to_pylist()
    lines = re.findall(r"^\| (\w+) = (.+)$", unescape(ENCYCLOPEDIA.read_text("utf8")), re.MULTILINE)
    assert [(row["field"], row["markup"]) for row in rows] == lines


def named_fields(text: str) -> list[tuple[str, set[str]]]:
    """The templates of a page as mwparserfromhell reads them, with fields that are not empty."""
    templates = []
    for template in mwparserfromhell.parse(_NOTES.sub("", text)).filter_templates():
        fields = {}
        for given in template.params:
            if given.showkey:
                fields[str(given.name).strip()] = re.sub(r"<[^>]*>", "", str(given.value)).strip()
        templates.append((str(template.name).strip(), {x for x, y in fields.items() if y}))
    return templates


def test_fields_are_those_of_another_parser(data_dir):
    name = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
    path = data_dir / "wikipedia" / name
    require_data(path)
    n_templates = 0
    for part in partitions([path], 1 << 30):
        pages = [x for x in read_pages(part) if x.namespace == 0 and "nfobox" in x.text]
        for page in pages[:40]:
            ours: dict[tuple[str, int], set[str]] = {}
            for fact in parse(page.text, part.site).facts:
                ours.setdefault((fact.template, fact.number), set()).add(fact.field)
            theirs = named_fields(page.text)
            for (template, _), fields in ours.items():
                names = (template, template[0].lower() + template[1:])
                assert any(
                    name.replace("_", " ") in names and fields == other for name, other in theirs
                ), (page.title, template, fields)
            n_templates += len(ours)
    assert n_templates > 40
