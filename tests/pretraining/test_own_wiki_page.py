"""The code of docs/own_wiki.md is run on small inputs, and what it writes is read."""

import re
import zipfile
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from spacy_luke.pretraining.articles import read_dump
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.linked_text import read_linked_text
from spacy_luke.pretraining.manifest import Manifest
from tests.pretraining.wiki.exports import export, page

PAGE = (Path(__file__).parents[2] / "docs" / "own_wiki.md").read_text("utf8")
ALONE = Engine(workers=1)


def block(heading: str) -> str:
    """The Python of a section."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return code


def run(*headings: str) -> None:
    names: dict = {}
    for heading in headings:
        exec(compile(block(heading), heading, "exec"), names)


def read(folder: Path, name: str) -> tuple[Manifest, dict[str, dict]]:
    manifest = read_linked_text([folder / name], folder / "out", ALONE, "en", False)
    rows = (
        x for path in manifest.paths("articles.parquet") for x in pq.read_table(path).to_pylist()
    )
    assert "bad record" not in manifest.counts
    return manifest, {row["title"]: row for row in rows}


def links(row: dict) -> list[tuple[str, str]]:
    return list(zip(row["link_anchors"], row["link_targets"]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_html(folder: Path) -> None:
    (folder / "html").mkdir()
    (folder / "html" / "ada.html").write_text(
        "<html><head><title>Ada Byron</title><style>p {}</style></head><body><h1>Ada</h1>\n"
        '<p>She works in <a href="berlin%20office.html#map"><b>the</b> office</a> &amp; at '
        "home, with\n"
        '<a href="bob.html">Bob</a><a href="x.html"><img></a></a>, see <a href="https://x.example/">this</a>.<br>Always.</p>'
        "<p><ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>は</p>"
        "<script>x()</script></body></html>"
    )
    (folder / "html" / "berlin office.html").write_text("<title>Berlin</title><p>An office.")
    (folder / "html" / "bob.html").write_text(
        '<p>Ask <a href="./ada.html?x=1">Ada</a>, <a href="mailto:b@x.example">mail</a>, '
        '<a href="#top">top</a>, <a href="//x.example/a.html">that</a>.'
    )
    run("HTML")
    manifest, rows = read(folder, "html.jsonl")
    assert rows["Ada Byron"]["text"].strip().split("\n") == [
        "Ada",
        "She works in the office & at home, with Bob, see this.",
        "Always.",
        "東京は",
    ]
    assert links(rows["Ada Byron"]) == [("the office", "berlin office.html"), ("Bob", "bob.html")]
    assert links(rows["bob"]) == [("Ada", "ada.html")]
    pages = pq.read_table(manifest.paths("pages.parquet")[0]).to_pylist()
    assert {"title": "berlin office.html", "kind": "redirect", "target": "Berlin"} in pages


def test_blocks_of_html_end_a_line(folder: Path) -> None:
    (folder / "html").mkdir()
    (folder / "html" / "a.html").write_text(
        '\ufeff<title>A</title><p>See <a href="b.html">the street </a></p><h4>Service</h4>'
        "<dl><dt>One</dt><dd>Parts</dd></dl><h2>Size</h2>The street",
        "utf8",
    )
    run("HTML")
    _, rows = read(folder, "html.jsonl")
    lines = ["See the street", "Service", "One", "Parts", "Size", "The street"]
    assert rows["A"]["text"].strip().split("\n") == lines
    assert links(rows["A"]) == [("the street", "b.html")]


def test_markdown_notes(folder: Path) -> None:
    (folder / "notes" / "people").mkdir(parents=True)
    (folder / "notes" / "people" / "Ada Byron.md").write_text(
        "\ufeff---\naliases: [Ada, Countess]\ntags: [people]\n---\n# Ada\n\nShe **works** in "
        "[[places/Berlin#Map|the office]] with [[Bob Ray]].\n![[photo.png]]\n"
    )
    (folder / "notes" / "Berlin.md").write_text("An office of [[Countess]].\n")
    (folder / "notes" / "Bob Ray.md").write_text(
        "---\naliases: Bob\ntags: 2024\n---\n| [[Berlin\\|here]] | [she](people/Ada%20Byron.md#x) |"
    )
    (folder / "notes" / "Empty.md").write_text("---\n\n---\nNo head.\n")
    run("A folder of Markdown notes")
    manifest, rows = read(folder, "notes.jsonl")
    assert rows["Ada Byron"]["text"].split("\n")[:3] == [
        "Ada", "", "She works in the office with Bob Ray.",
    ]  # fmt: skip
    assert links(rows["Ada Byron"]) == [("the office", "Berlin"), ("Bob Ray", "Bob Ray")]
    assert links(rows["Berlin"]) == [("Countess", "Countess")]
    assert links(rows["Bob Ray"]) == [("here", "Berlin"), ("she", "Ada Byron")]
    assert manifest.counts["redirect"] == 3 and manifest.counts["categories"] == 2
    (folder / "notes" / "Template.md").write_text("---\ntitle: {{title}}\n---\nx\n")
    with pytest.raises(ValueError, match=r"the head of notes.Template\.md"):
        run("A folder of Markdown notes")


CONFLUENCE = """<hibernate-generic>
<object class="Page" package="com.atlassian.confluence.pages"><id name="id">11</id>
<property name="title"><![CDATA[Ada Byron]]></property></object>
<object class="Page"><id name="id">12</id><property name="title"><![CDATA[R&D]]></property></object>
<object class="Page"><id name="id">10</id><property name="title"><![CDATA[Ada Byron]]></property>
<property name="originalVersion" class="Page"><id name="id">11</id></property></object>
<object class="BodyContent"><id name="id">21</id><property name="body"><![CDATA[<p>She leads \
<ac:link><ri:page ri:content-title="R&amp;D" /><ac:plain-text-link-body><![CDATA[research]] >\
</ac:plain-text-link-body></ac:link>, near \
<ac:link><ri:page ri:space-key="X" ri:content-title="Berlin" /></ac:link>, \
<ac:link><ri:page ri:content-title="HR: CI/CD, what is C#?" /><ac:plain-text-link-body>\
<![CDATA[List<C#>]] ></ac:plain-text-link-body></ac:link>.</p>\
<ac:structured-macro ac:name="info"><ac:parameter ac:name="title">No</ac:parameter>\
<ac:rich-text-body><p>Since 1833.</p></ac:rich-text-body></ac:structured-macro>]]></property>
<property name="content" class="Page"><id name="id">11</id></property></object>
<object class="BodyContent"><id name="id">22</id>
<property name="body"><![CDATA[<p>An old text.</p>]]></property>
<property name="content" class="Page"><id name="id">10</id></property></object>
</hibernate-generic>
"""


def test_confluence(folder: Path) -> None:
    (folder / "html").mkdir()
    with zipfile.ZipFile("confluence.zip", "w") as archive:
        archive.writestr("entities.xml", CONFLUENCE)
    run("HTML", "Confluence")
    _, rows = read(folder, "confluence.jsonl")
    assert list(rows) == ["Ada Byron"] and rows["Ada Byron"]["page_id"] == 11
    assert rows["Ada Byron"]["text"].strip() == (
        "She leads research, near Berlin, List<C#>.\nSince 1833."
    )
    assert links(rows["Ada Byron"]) == [
        ("research", "R&D"),
        ("Berlin", "Berlin"),
        ("List<C#>", "HR: CI/CD, what is C#?"),
    ]


def test_the_tables_of_a_companys_wiki(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    (folder / "wiki.xml").write_text(export(page("A", "A. {{Note|[[B]]}}"), page("C", "")), "utf8")
    read_dump([folder / "wiki.xml"], folder / "work" / "articles", ALONE, show_progress=False)
    run("A company's MediaWiki")
    assert "note" in capsys.readouterr().out and duckdb is not None
