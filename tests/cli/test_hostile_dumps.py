"""Dumps that hold little or odd things: clear errors or counted skips; what is there is kept."""

import bz2
import gzip
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.pretraining.articles import STAGE
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.shards import vocabulary
from tests.pretraining.test_stage import snapshot
from tests.pretraining.wiki.exports import export, page
from tests.workers import quick_workers  # noqa: F401  (a fixture)

GOOD = page("Good", "'''Good''' is near [[Other]] and [[Zoë]]. It rains there in [[March]].")
TARGETS = [page(x, f"'''{x}''' is a place near [[Good]].") for x in ("Other", "Zoë", "March")]


def run(*arguments: object):
    return CliRunner().invoke(app, [str(x) for x in arguments])


def articles(tmp_path: Path, *pages: str):
    (tmp_path / "dump.xml").write_text(export(*pages), "utf8")
    command = ["articles", tmp_path / "dump.xml", "-o", tmp_path / "articles"]
    result = run(*command, "--workers", 1, "--no-progress")
    assert result.exit_code == 0, result.output
    return read_manifest(tmp_path / "articles", STAGE)


def entities(tmp_path: Path):
    out = tmp_path / "entities"
    return run("entities", tmp_path / "articles", "-o", out, "--no-progress")


def failed(result) -> str:
    assert result.exit_code == 1 and "Traceback" not in result.output
    return " ".join(result.output.split())


def test_an_empty_dump_is_said_where_it_stops(tmp_path):
    assert not articles(tmp_path).counts
    assert "The vocabulary would be empty" in failed(entities(tmp_path))


def test_a_dump_without_links_has_no_entities_and_says_so(tmp_path):
    counts = articles(tmp_path, page("A", "No link."), page("B", "None here.")).counts
    assert counts["article"] == 2 and counts["links"] == 0
    assert "no link leads to an article" in failed(entities(tmp_path))


def test_pages_without_text_are_counted(tmp_path):
    counts = articles(tmp_path, GOOD, page("Bare", ""), page("Markup", "{{stub}}"), *TARGETS).counts
    assert counts["page without text"] == counts["article without text"] == 1
    assert counts["article"] == 5  # a page of markup alone is an article: it may be linked to


def test_redirects_in_a_circle_lead_nowhere_and_are_counted(tmp_path):
    circle = [
        page("X", "#REDIRECT [[Y]]", more='<redirect title="Y" />'),
        page("Y", "#REDIRECT [[Z]]", more='<redirect title="Z" />'),
        page("Z", "#REDIRECT [[X]]", more='<redirect title="X" />'),
        page("Self", "#REDIRECT [[Self]]", more='<redirect title="Self" />'),
    ]
    articles(tmp_path, page("Walk", "To [[X]], [[Self]] and [[Good]]."), GOOD, *TARGETS, *circle)
    started = time.monotonic()
    result = entities(tmp_path)
    assert result.exit_code == 0, result.output
    assert time.monotonic() - started < 60
    manifest = read_manifest(tmp_path / "entities", "entities")
    assert manifest.counts["links by a redirect to no article"] == 2
    assert manifest.counts["redirects to no article"] == 4
    assert not {"X", "Y", "Z", "Self"} & set(vocabulary(manifest).names)


def test_unclosed_templates_do_not_swallow_the_sections_after(tmp_path):
    text = "Before. {{Infobox | name = [[Good]] " + "{{a|" * 200
    manifest = articles(tmp_path, page("Open", f"{text}\n== Then ==\nIt rains near [[Other]]."))
    (found,) = pq.read_table(manifest.paths("articles.parquet")[0]).to_pylist()
    assert "Before." in found["text"] and "It rains near Other." in found["text"]
    assert found["link_targets"] == ["Other"] and manifest.counts["dropped: unclosed template"] > 0


def test_where_a_file_ends_does_not_decide_what_is_a_disambiguation(tmp_path):
    """The template that says so may stand in another part of the dump."""
    pages = [
        page("Template:Viele", "__DISAMBIG__", ns=10),
        page("Good (many)", "May be [[Good]] or [[Other]]. {{Viele}}"),
        GOOD,
    ]
    counts = []
    for name, parts in (("one", [pages]), ("two", [pages[1:], pages[:1]])):
        folder = tmp_path / name
        folder.mkdir()
        for i, part in enumerate(parts):
            (folder / f"{i}.xml").write_text(export(*part), "utf8")
        files = [folder / f"{i}.xml" for i in range(len(parts))]
        result = run("articles", *files, "-o", folder / "out", "--workers", 1, "--no-progress")
        assert result.exit_code == 0, result.output
        counts.append(read_manifest(folder / "out", STAGE).counts)
    assert counts[0] == counts[1] and counts[0]["disambiguation"] == 1


def test_dumps_of_several_languages_are_not_taken_for_one(tmp_path):
    for language in ("de", "en", ""):
        text = export(GOOD, language=language).replace('xml:lang=""', "")
        (tmp_path / f"{language}.xml").write_text(text, "utf8")
    files = [tmp_path / "de.xml", tmp_path / "en.xml"]
    output = failed(run("articles", *files, "-o", tmp_path / "out", "--no-progress"))
    assert "several languages (de, en)" in output
    files = [tmp_path / "de.xml", tmp_path / ".xml"]
    output = failed(run("articles", *files, "-o", tmp_path / "out", "--no-progress"))
    assert "several languages (unknown, de)" in output
    result = run("articles", *files, "-o", tmp_path / "out", "--no-progress", "--lang", "de")
    assert result.exit_code == 0


def test_titles_with_odd_unicode_are_kept(tmp_path):
    odd = ["Zoe\u0308", "\u200fשלום", "😀", "𝔸", "İstanbul", "a\u00a0b", "ﬁne"]
    pages = [page(x, f"'''{x}''' near [[Good]].") for x in odd]
    links = page("List", " ".join(f"[[{x}]]," for x in odd))
    articles(tmp_path, *pages, links, GOOD, *TARGETS)
    result = entities(tmp_path)
    assert result.exit_code == 0, result.output
    vocab = vocabulary(read_manifest(tmp_path / "entities", "entities"))
    for title in ("😀", "𝔸", "Zoë", "İstanbul", "שלום", "A b", "ﬁne"):
        assert any(title in name for name in vocab.names), title


@pytest.mark.parametrize("n", [5_000, pytest.param(170_000, marks=pytest.mark.slow)])
def test_a_page_of_megabytes_is_read_whole_in_bounded_time(tmp_path, n):
    """0.3 and 10 MB."""
    markup = "It rains near [[Good]] in the ''north'' of {{lang|en|it}}. "
    started = time.process_time()
    manifest = articles(tmp_path, page("Huge", markup * n), GOOD, *TARGETS)
    assert time.process_time() - started < 120
    (path,) = manifest.paths("articles.parquet")
    (text,) = (x["text"] for x in pq.read_table(path).to_pylist() if x["title"] == "Huge")
    assert text.startswith("It rains near Good in the north of it. It rains")
    assert text.count("Good") == n and manifest.counts["links"] == n + 6


@pytest.mark.parametrize("compression", [bz2, gzip], ids=["bz2", "gz"])
@pytest.mark.parametrize("how", ["cut", "not compressed", "bytes", "broken XML"])
def test_files_that_are_no_dump_are_named(tmp_path, compression, how):
    path = tmp_path / ("dump.xml.bz2" if compression is bz2 else "dump.xml.gz")
    xml = export(GOOD, *TARGETS)
    data = {
        "cut": compression.compress(xml.encode())[:-20],
        "not compressed": b"<mediawiki>",
        "bytes": b"\xff" * 99,
        "broken XML": compression.compress(xml.replace("</revision>", "</page>", 1).encode()),
    }
    path.write_bytes(data[how])
    result = run("articles", path, "-o", tmp_path / "articles", "--workers", 1, "--no-progress")
    assert path.name in failed(result)
    assert not list((tmp_path / "articles").rglob("*part-*"))


def test_neither_engine_nor_workers_change_a_byte_of_the_articles(tmp_path):
    pytest.importorskip("distributed", reason="the Dask engine needs dask and distributed")
    pages = [GOOD, *TARGETS, page("Good (many)", "May be [[Good]] or [[Other]]. __DISAMBIG__")]
    files = [tmp_path / f"pages{i}.xml" for i in range(4)]
    for i, path in enumerate(files):
        path.write_text(export(*pages[i:], page(f"Own {i}", "Near [[Good]].")), "utf8")
    found = []
    for engine, n in (("local", 1), ("local", 3), ("dask", 2)):
        out = tmp_path / f"{engine}-{n}"
        result = run("articles", *files, "-o", out, "--no-progress", "--engine", engine, "-w", n)
        assert result.exit_code == 0, result.output
        found.append(snapshot(out))
    assert all(x == found[0] for x in found) and len(found[0]) > 4 * 3
