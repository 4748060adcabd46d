"""Files of results: what is read of them, and what is not passed over."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks.results import REVISION, append, read, revision

FOLDER = Path(__file__).parents[2] / "benchmarks" / "results"


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "a.jsonl"
    append(path, {"kind": "x"})
    path.write_text(path.read_text("utf8") + '{"kind": "y', "utf8")
    assert read([path, tmp_path / "none.jsonl"]) == [{"kind": "x", "revision": REVISION}]


def test_the_revision_is_the_commit_or_outside_of_a_clone_the_version(monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    assert revision() == version("spacy-luke")
    monkeypatch.undo()
    assert (
        re.fullmatch(r"[0-9a-f]{7,}(-dirty)?", revision())
        or not FOLDER.parents[1].joinpath(".git").exists()
    )


@pytest.mark.parametrize("line", ["# A page", "[1]", "", '{"kind": "y'])
def test_another_line_that_is_no_record_is_named(line, tmp_path):
    path = tmp_path / "a.jsonl"
    append(path, {"kind": "x"})
    path.write_text(path.read_text("utf8") + line + "\n", "utf8")
    append(path, {"kind": "z"})
    with pytest.raises(ValueError, match="a.jsonl, line 2 is not a record"):
        read([path])


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.jsonl")), ids=lambda path: path.name)
def test_published_records_can_be_read(path):
    assert read([path])
