"""Articles from JSON lines: kept as they are, or left out with a reason."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.errors import ConfigError, CorpusError
from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.entities import build_vocabulary
from spacy_luke.pretraining.linked_text import read_linked_text
from spacy_luke.pretraining.manifest import Manifest
from spacy_luke.pretraining.settings import VocabSettings
from tests.pretraining.test_stage import snapshot

ADA = {
    "id": "emp_0017",
    "title": "Ada Byron",
    "text": "😀 Ada works in Berlin\nwith Bob.",
    "links": [
        {"start": 27, "end": 30, "target": "emp_0018"},
        {"start": 15, "end": 21, "target": "Berlin", "text": "Berlin"},
    ],
    "aliases": ["Ada", "Countess"],
    "categories": ["People"],
    "facts": [{"template": "Person", "field": "office", "value": "Berlin", "targets": ["Berlin"]}],
}
BOB = {"id": "emp_0018", "title": "Bob Ray", "text": "Bob met the Countess.", "links": []}
BERLIN = {"id": 7, "title": "Berlin", "text": "An office of Ada.", "links": []}
BERLIN["links"] = [{"start": 13, "end": 16, "target": "Countess"}]


def link(start: object, end: object, target: object = "Berlin", **more: object) -> dict:
    return {
        "title": "X",
        "text": "In Berlin.",
        "links": [{**more, "start": start, "end": end, "target": target}],
    }


def write(folder: Path, *records: object) -> Path:
    lines = [x if isinstance(x, str) else json.dumps(x) for x in records]
    path = folder / "notes.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf8")
    return path


def read(folder: Path, *records: object, name: str = "out", **options) -> Manifest:
    path = write(folder, *records)
    return read_linked_text([path], folder / name, Engine(workers=1), "en", False, **options)


def rows(manifest: Manifest, name: str) -> list[dict]:
    return [row for path in manifest.paths(name) for row in pq.read_table(path).to_pylist()]


def test_a_record_is_an_article_with_its_links_names_facts_and_categories(tmp_path):
    manifest = read(tmp_path, ADA, BOB, "", BERLIN)
    ada, bob, berlin = rows(manifest, "articles.parquet")
    assert ada["text"] == ADA["text"] and ada["link_anchors"] == ["Berlin", "Bob"]
    assert ada["link_targets"] == ["Berlin", "emp_0018"]
    assert [x["page_id"] for x in (ada, bob, berlin)] == [1, 2, 7]
    redirects = {x["title"]: x["target"] for x in rows(manifest, "pages.parquet") if x["target"]}
    assert redirects == {
        "emp_0017": "Ada Byron", "Ada": "Ada Byron", "Countess": "Ada Byron", "emp_0018": "Bob Ray",
    }  # fmt: skip
    assert rows(manifest, "categories.parquet")[0]["category"] == "People"
    (fact,) = rows(manifest, "facts.parquet")
    assert (fact["template"], fact["field"], fact["targets"]) == ("Person", "office", ["Berlin"])
    assert manifest.counts["links"] == 3 and manifest.counts["article"] == 3


def test_targets_may_be_titles_aliases_and_ids(tmp_path):
    articles = read(tmp_path, ADA, BOB, BERLIN)
    entities = build_vocabulary([articles], tmp_path / "entities", VocabSettings(), False)
    lines = entities.paths("entity_vocab.tsv")[0].read_text("utf8").splitlines()
    assert lines[4:] == ["Ada Byron\t1", "Berlin\t1", "Bob Ray\t1"]


@pytest.mark.parametrize(
    "record,reason",
    [
        ("{", "not JSON"),
        ("[1]", "the record is a list, not an object"),
        ({"text": "x"}, "the record has no key 'title'"),
        ({"title": " ", "text": "x"}, "title ' ' is blank"),
        ({"title": "A\tB", "text": "x"}, "has a tab"),
        ({"title": "A\0B", "text": "x"}, "or NUL"),
        ({"title": "[MASK]", "text": "x"}, "'[MASK]' is a special entity"),
        ({"title": "X"}, "no key 'text'"),
        ({"title": "X", "text": "\ud800"}, "unpaired surrogate"),
        ({"title": "X", "text": "x", "id": 1.5}, "id is 1.5"),
        ({"title": "X", "text": "x", "links": {}}, "links is an object, not a list"),
        (link(3, 11), "link 0 is at [3, 11) of 10 characters"),
        (link(-1, 3), "link 0 is at [-1, 3)"),
        (link(3, 3), "link 0 is at [3, 3)"),
        (link(True, 3), "start of link 0 is true or false"),
        (link(3, 9, ""), "link 0 has an empty target"),
        (link(3, 9, "a\nb"), "target of link 0 'a\\nb' is blank, or has a tab"),
        (link(4, 10, text="Berlin"), "link 0 has the text 'Berlin', but there is 'erlin.'"),
        ({"title": "X", "text": "x", "facts": [{"field": "a"}]}, "fact 0 has no key 'value'"),
    ],
)
def test_a_bad_record_is_left_out_counted_and_named(tmp_path, record, reason, caplog):
    manifest = read(tmp_path, ADA, record, BOB)
    assert manifest.counts["bad record"] == 1 and manifest.counts["article"] == 2
    (excluded,) = rows(manifest, "excluded.parquet")
    assert excluded["title"] == "notes.jsonl, line 2" and reason in excluded["reason"]
    assert excluded["reason"].startswith("bad record: notes.jsonl, line 2: ")
    assert excluded["reason"] in caplog.text


def test_many_bad_records_are_told_in_few_lines(tmp_path, caplog):
    read(tmp_path, ADA, *["x"] * 30)
    assert caplog.text.count("bad record") == 10 and "and 20 more" in caplog.text


def test_if_all_records_are_bad_it_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match="No record can be used.*notes.jsonl, line 1: not JSON"):
        read(tmp_path, "x", "y")


def test_links_that_overlap_or_are_blank_are_dropped_and_counted(tmp_path):
    links = [(0, 8, "A"), (3, 9, "B"), (2, 3, "C"), (9, 10, "D")]
    record = {"title": "X", "text": "In Berlin.", "links": []}
    record["links"] = [{"start": a, "end": b, "target": t} for a, b, t in links]
    blank = {"title": "Y", "text": "a b", "links": [{"start": 1, "end": 2, "target": "A"}]}
    manifest = read(tmp_path, record, blank)
    assert rows(manifest, "articles.parquet")[0]["link_targets"] == ["A", "D"]
    assert manifest.counts["dropped: overlapping link"] == 1
    assert manifest.counts["dropped: link without text"] == 2


def test_white_space_at_the_ends_of_a_link_is_not_part_of_it(tmp_path):
    text = "In \n Berlin \n."
    record = {"title": "X", "text": text, "links": [{"start": 2, "end": 13, "target": "Berlin"}]}
    record["links"][0]["text"] = text[2:13]  # checked as it was given
    row = rows(read(tmp_path, record), "articles.parquet")[0]
    assert row["link_anchors"] == ["Berlin"]
    assert text[row["link_starts"][0] : row["link_ends"][0]] == "Berlin"


def test_a_language_is_a_code_of_wikis_however_it_is_written(tmp_path):
    path = write(tmp_path, BOB)
    manifest = read_linked_text([path], tmp_path / "out", Engine(workers=1), "zh_YUE", False)
    assert manifest.settings["language"] == "zh-yue"


def test_an_alias_of_several_records_is_counted(tmp_path):
    other = {**BOB, "aliases": ["Countess"]}
    articles = read(tmp_path, ADA, other, BERLIN)
    entities = build_vocabulary([articles], tmp_path / "entities", VocabSettings(), False)
    assert entities.counts["redirects to several articles"] == 1


@pytest.mark.parametrize("name", ["Countess", "emp_0017", "Ada Byron"])
def test_an_id_or_alias_of_several_titles_is_told(tmp_path, caplog, name):
    """It may be the title of another record, too."""
    other = {**BOB, "aliases": [name]}
    read(tmp_path, ADA, other, BERLIN)
    assert f"1 names (ids, aliases, titles) are those of several titles, for example {name}" in (
        caplog.text
    )


def test_a_title_of_several_records_is_told(tmp_path, caplog):
    manifest = read(tmp_path, ADA, BOB, BERLIN, BERLIN)
    assert "1 titles are those of several records, for example Berlin" in caplog.text
    assert manifest.counts["article"] == 4


def test_parts_and_workers_change_nothing_but_the_files(tmp_path):
    records = [{**BERLIN, "title": f"Office {i}", "id": i} for i in range(40)]
    whole = read(tmp_path, *records, "x", name="whole")
    cut = read(tmp_path, *records, "x", name="cut", part_size=500)
    assert len(cut.parts) > 5 and cut.counts == whole.counts
    for name in ("articles.parquet", "pages.parquet", "excluded.parquet"):
        assert rows(cut, name) == rows(whole, name)
    path, two = tmp_path / "notes.jsonl", Engine(workers=2)
    read_linked_text([path], tmp_path / "two", two, "en", False, part_size=500)
    assert snapshot(tmp_path / "two") == snapshot(tmp_path / "cut")


def test_the_language_must_be_given(tmp_path):
    with pytest.raises(ConfigError, match="--lang"):
        read_linked_text([write(tmp_path, ADA)], tmp_path / "a", Engine(workers=1), "")


def test_the_command_reads_them_but_not_beside_an_export(tmp_path):
    path = write(tmp_path, ADA, BOB, BERLIN)
    command = ["articles", str(tmp_path), "-o", str(tmp_path / "a"), "-l", "en", "--no-progress"]
    result = CliRunner().invoke(app, [*command, "-w", "1"])
    assert result.exit_code == 0 and path.exists(), result.output
    for options in (["--tables"], ["--namespaces", "Nope"], ["--partition-size", "9"]):
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 1
        assert "is no export of a wiki" in " ".join(result.output.split())
    (tmp_path / "b.xml").write_text("<mediawiki/>")
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1 and "are of different kinds" in " ".join(result.output.split())
