"""A company's wiki: its names are what they are there, and what is left out is told."""

import bz2
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import spacy
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.pretraining.articles import STAGE, read_dump
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.manifest import Manifest, read_manifest
from spacy_luke.pretraining.settings import DumpSettings
from spacy_luke.pretraining.wiki.streams import MAX_PLAIN, decompressed
from tests.pretraining.wiki.exports import export, page

NAMESPACES = {
    0: "", 2: "User", 4: "Acme", 6: "File", 8: "MediaWiki", 10: "Template", 12: "Help",
    14: "Category", 102: "Property", 3000: "Handbook", 3002: "Lab notes",
}  # fmt: skip
ROTA = """
{| class="wikitable"
|+ Rota of May
! Week !! Person
|-
| 18 || [[Ada Byron|Ada]]
|-
| style="color: red" | 19 || {{Person|name=Bob|id=17}} of [[HR:Team]]
|}
"""
PAGES = [
    page("IT:Laptop setup", "Ask [[HR:Team]] before you set up a [[Laptop]].", 1),
    page("HR:Team", "'''The team''' is in [[Has location::Berlin]], see [[/Rota]].", 2),
    page("HR:Team/Rota", f"The rota of [[../]] is old.\n{ROTA}", 3),
    page(
        "Laptop",
        "A laptop has [[Has price::900|a price]]. {{DP|Facilities}} See [[jira:RED-1]].",
        4,
    ),
    page("Berlin", "Berlin is an office. {{Note|Closed on [[Handbook:Holidays|holidays]].}}", 5),
    page("Ada Byron", "Ada works in [[Berlin]], on [[Tools: Jenkins]].", 6),
    page("Tools: Jenkins", "Jenkins builds. It is [[wikipedia:Jenkins|well known]].", 7),
    page("Setup", "* [[IT:Laptop setup]]\n* [[Tools: Jenkins]]\n{{Several}}", 8),
    page("Handbook:Holidays", "Holidays are in [[Lab notes:2024|the notes]].", 9, 3000),
    page("Lab notes:2024", "We met in [[Berlin]].", 10, 3002),
    page("Template:Several", "[[Category:Disambiguation pages]]", 11, 10),
    page("Template:DP", "Department: {{{1}}}", 12, 10),
    page("Property:Has price", "[[Has type::Number]]", 13, 102),
    page("Acme:Impressum", "Acme is in [[Berlin]].", 14, 4),
]


def read(
    folder: Path, *options: str, pages: list[str] = PAGES, namespaces: dict[int, str] = NAMESPACES
) -> Manifest:
    folder.mkdir()
    (folder / "acme.xml").write_text(export(*pages, language="en", namespaces=namespaces), "utf8")
    command = ["articles", folder / "acme.xml", "-o", folder / "articles", *options]
    result = CliRunner().invoke(app, [*map(str, command), "--workers", "1", "--no-progress"])
    assert result.exit_code == 0, result.output
    return read_manifest(folder / "articles", STAGE)


def rows(manifest: Manifest, name: str) -> list[dict]:
    return [row for path in manifest.paths(name) for row in pq.read_table(path).to_pylist()]


def articles(manifest: Manifest) -> dict[str, dict]:
    return {row["title"]: row for row in rows(manifest, "articles.parquet")}


def links(row: dict) -> list[tuple[str, str]]:
    spans = zip(row["link_starts"], row["link_ends"], row["link_targets"])
    return [(row["text"][start:end], target) for start, end, target in spans]


def test_without_options_prefixes_subpages_and_properties_are_what_they_are(tmp_path):
    manifest = read(tmp_path / "a")
    found = articles(manifest)
    assert links(found["IT:Laptop setup"]) == [("HR:Team", "HR:Team"), ("Laptop", "Laptop")]
    assert links(found["HR:Team"]) == [("Berlin", "Berlin"), ("/Rota", "HR:Team/Rota")]
    assert links(found["HR:Team/Rota"]) == [("HR:Team", "HR:Team")]
    assert found["Laptop"]["text"] == "A laptop has a price. See jira:RED-1."
    assert links(found["Ada Byron"]) == [("Berlin", "Berlin"), ("Tools: Jenkins", "Tools: Jenkins")]
    assert links(found["Tools: Jenkins"]) == []
    counts = manifest.counts
    assert counts["disambiguation"] == 1 and counts["article"] == 7
    assert counts["page of namespace Handbook"] == counts["page of namespace Lab notes"] == 1
    assert counts["dropped: link to property value"] == 1
    assert counts["dropped: link in table"] == 2
    assert counts["dropped: link in template"] == 1
    excluded = {x["title"]: x["reason"] for x in rows(manifest, "excluded.parquet")}
    assert excluded["Setup"] == "disambiguation: template Several"
    assert excluded["Acme:Impressum"] == "page of namespace Acme"
    left_out = {x["template"]: (x["uses"], x["links"]) for x in rows(manifest, "left_out.parquet")}
    assert left_out == {"note": (1, 1), "dp": (1, 0)}  # what is in tables counts as tables


def test_namespaces_are_named_by_name_or_number(tmp_path):
    manifest = read(tmp_path / "a", "--namespaces", "handbook, 3002")
    found = articles(manifest)
    assert links(found["Handbook:Holidays"]) == [("the notes", "Lab notes:2024")]
    assert links(found["Lab notes:2024"]) == [("Berlin", "Berlin")]
    assert manifest.counts["article of namespace Handbook"] == 1
    assert manifest.counts["page of namespace Acme"] == 1


def test_a_namespace_that_the_wiki_lacks_is_an_error(tmp_path):
    (tmp_path / "acme.xml").write_text(export(*PAGES, namespaces=NAMESPACES), "utf8")
    for name in ("Handbuch", "3001"):
        command = ["articles", tmp_path / "acme.xml", "-o", tmp_path / "a", "--namespaces", name]
        result = CliRunner().invoke(app, list(map(str, command)))
        assert result.exit_code == 1 and "Traceback" not in result.output
        output = " ".join(result.output.split())
        assert f"--namespaces {name}: this wiki has 0, 2 User" in output and "Handbook" in output


def test_own_templates_may_have_the_name_of_their_namespace(tmp_path):
    german = {**NAMESPACES, 10: "Vorlage"}
    one, *others = (
        read(tmp_path / name, "--templates", f"{prefix}Note", namespaces=german)
        for name, prefix in (("a", ""), ("b", "Template:"), ("c", "Vorlage:"), ("e", ":Vorlage:"))
    )
    assert all(x.counts == one.counts for x in others)
    assert one.counts != read(tmp_path / "d", namespaces=german).counts


def test_a_template_that_no_article_has_is_told(tmp_path, caplog):
    spacy.util.logger.propagate = True
    manifest = read(tmp_path / "a", "--templates", "Note,Nota=2,Person")
    assert manifest.counts["article with text of template note"] == 1
    assert "--templates: no article has text of nota, person." in caplog.text


def test_text_of_own_templates_and_of_tables(tmp_path):
    manifest = read(tmp_path / "a", "--templates", "Note,person=name", "--tables")
    found = articles(manifest)
    assert found["Berlin"]["text"] == "Berlin is an office. Closed on holidays."
    assert found["HR:Team/Rota"]["text"].split("\n") == [
        "The rota of HR:Team is old.",
        "",
        "Rota of May",
        "Week | Person",
        "18 | Ada",
        "19 | Bob of HR:Team",
    ]
    assert links(found["HR:Team/Rota"])[1:] == [("Ada", "Ada Byron"), ("HR:Team", "HR:Team")]
    assert "dropped: link in table" not in manifest.counts


def test_the_prefix_of_another_wiki_is_named(tmp_path):
    manifest = read(tmp_path / "a", "--interwiki", "jira")
    assert manifest.counts["dropped: link to interwiki"] == 2
    assert articles(manifest)["Laptop"]["link_targets"] == []


def test_prefixes_that_no_page_has_are_told_unless_they_are_named(tmp_path, caplog):
    tickets = page("Tickets", "[[jira:RED-1]], [[JIRA:RED-2]], [[de:A]], [[de:B]], [[de:C]].", 20)
    titles = page("Titles", "[[Tools: A]], [[Tools: B]], [[IT:X]], [[IT:Y]], [[Help:X]]", 21)
    manifest = read(tmp_path / "a", pages=[*PAGES, tickets, titles])
    assert "3 links lead to 3 titles such as De:A, but no page starts with this" in caplog.text
    # The third one is on the page Laptop.
    assert "3 links lead to 2 titles such as JIRA:RED-2" in caplog.text
    assert "set --interwiki jira" in caplog.text and caplog.text.count("--interwiki") == 2
    assert articles(manifest)["Tickets"]["link_targets"][2:] == ["De:A", "De:B", "De:C"]
    caplog.clear()
    manifest = read(tmp_path / "b", "--interwiki", "jira,de", pages=[*PAGES, tickets, titles])
    assert not caplog.text and articles(manifest)["Tickets"]["link_targets"] == []


def test_many_unknown_prefixes_are_told_in_few_lines(tmp_path, caplog):
    pages = [page(f"P{i}", f"[[x{i}:A]] [[x{i}:B]]", i + 20) for i in range(14)]
    read(tmp_path / "a", pages=[*PAGES, *pages])
    assert caplog.text.count("--interwiki") == 10
    assert "There are 4 more such prefixes: x6, x7, x8, x9" in caplog.text


def test_exports_of_several_wikis_are_told(tmp_path, caplog):
    other = export(page("Berlin", "Another [[Laptop]]."), language="en")
    (tmp_path / "other.xml").write_text(other.replace("<sitename>Wiki", "<sitename>Two"), "utf8")
    (tmp_path / "acme.xml").write_text(export(*PAGES, language="en"), "utf8")
    command = ["articles", tmp_path, "-o", tmp_path / "articles", "-w", "1", "--no-progress"]
    assert CliRunner().invoke(app, list(map(str, command))).exit_code == 0
    assert "of several wikis (Wiki, https://x.example/wiki/A: " in caplog.text
    assert read_manifest(tmp_path / "articles", STAGE).counts["repeated page"] == 1


def test_of_pages_with_one_title_the_newest_is_used_and_all_are_counted(tmp_path):
    old = page("Laptop", "An old laptop.", 4, time="2020-01-01T00:00:00Z")
    again = page("Berlin", "Berlin is an office. {{Note|x}}", 5)
    manifest = read(tmp_path / "a", pages=[old, *PAGES, again])
    assert manifest.counts["repeated page"] == 2 and manifest.counts["article"] == 7
    assert "has a price" in articles(manifest)["Laptop"]["text"]
    excluded = [x["title"] for x in rows(manifest, "excluded.parquet")]
    assert excluded.count("Laptop") == excluded.count("Berlin") == 1


def test_a_page_that_is_blank_in_a_newer_export_is_no_article(tmp_path):
    old = page("Secret", "A secret of [[Berlin]].", 4, time="2020-01-01T00:00:00Z")
    blank = page("Secret", "", 4, time="2030-01-01T00:00:00Z")
    manifest = read(tmp_path / "a", pages=[old, *PAGES, blank])
    assert "Secret" not in articles(manifest)
    assert manifest.counts["page without text"] == manifest.counts["repeated page"] == 1
    again = page("Secret", "No secret.", 4, time="2031-01-01T00:00:00Z")
    manifest = read(tmp_path / "b", pages=[old, *PAGES, blank, again])
    assert articles(manifest)["Secret"]["text"] == "No secret."
    assert manifest.counts["repeated page"] == 1


def test_a_plain_dump_beside_its_multistream_file_is_not_read_again(tmp_path, caplog):
    data = export(*PAGES, language="en", namespaces=NAMESPACES).encode()
    (tmp_path / "acme-pages-articles.xml.bz2").write_bytes(bz2.compress(data, 1))
    (tmp_path / "acme-pages-articles-multistream.xml.bz2").write_bytes(bz2.compress(data, 9))
    command = ["articles", tmp_path, "-o", tmp_path / "articles", "-w", "1", "--no-progress"]
    result = CliRunner().invoke(app, list(map(str, command)))
    assert result.exit_code == 0, result.output
    manifest = read_manifest(tmp_path / "articles", STAGE)
    assert list(manifest.inputs) == ["0 acme-pages-articles-multistream.xml.bz2"]
    assert manifest.counts["pages"] == len(PAGES) and "repeated page" not in manifest.counts
    assert "acme-pages-articles.xml.bz2 is not read" in caplog.text


def test_a_dump_is_decompressed_once(tmp_path, monkeypatch):
    data = export(*PAGES * 1000, language="en", namespaces=NAMESPACES).encode()
    (tmp_path / "acme.xml.bz2").write_bytes(bz2.compress(data))
    sizes = []

    def counted(*arguments):
        for chunk in decompressed(*arguments):
            sizes.append(len(chunk))
            yield chunk

    monkeypatch.setattr("spacy_luke.pretraining.wiki.export.decompressed", counted)
    settings = DumpSettings(language="en")
    read_dump([tmp_path / "acme.xml.bz2"], tmp_path / "a", Engine(workers=1), settings, False)
    assert len(data) > 2 * MAX_PLAIN
    assert len(data) <= sum(sizes) <= len(data) + MAX_PLAIN  # and the first part for its head


def test_nothing_but_the_articles_stays(tmp_path):
    manifest = read(tmp_path / "a")
    kept = {path.name for path in manifest.folder.iterdir()}
    assert kept == {".lock", "stage.json", "manifest.json", "part-00000"}


@pytest.mark.parametrize("templates", ["=x", "a, =b", "Template:=x"])
def test_a_template_has_a_name(tmp_path, templates):
    (tmp_path / "acme.xml").write_text(export(*PAGES), "utf8")
    command = ["articles", tmp_path / "acme.xml", "-o", tmp_path / "a", "--templates", templates]
    result = CliRunner().invoke(app, list(map(str, command)))
    assert result.exit_code == 1 and "use NAME or NAME=ARGUMENT" in " ".join(result.output.split())
