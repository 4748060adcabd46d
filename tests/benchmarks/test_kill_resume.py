"""The harness that kills preparation and pretraining, with one kill."""

import bz2
import gzip

import pytest

from benchmarks import kill_resume
from spacy_luke.pretraining.wiki.export import partitions, read_pages
from tests.pretraining.wiki.exports import export, page


@pytest.mark.slow
def test_a_killed_preparation_leaves_the_same_bytes(bert_dir, tmp_path, capsys):
    args = ["--encoder", str(bert_dir), "--work", str(tmp_path), "--kills", "1", "--copies", "2"]
    assert kill_resume.main([*args, "--halves", "preparation"]) == 0
    assert "identical" in capsys.readouterr().out


def test_what_differs_is_told(tmp_path):
    for name, text in (("one", "a"), ("other", "b")):
        (tmp_path / name / "part").mkdir(parents=True)
        (tmp_path / name / "part" / "file").write_text(text)
        (tmp_path / name / ".lock").write_text(name)
    one, other = (kill_resume.files(tmp_path / x) for x in ("one", "other"))
    assert one.keys() == other.keys() == {"part/file"} and one != other


@pytest.mark.parametrize("end", [".xml", ".xml.bz2", ".xml.gz"])
def test_copies_are_parts_of_their_own_that_read_the_same(tmp_path, end):
    compress = {".bz2": bz2.compress, ".gz": gzip.compress}.get(end[4:], bytes)
    dump = tmp_path / f"a{end}"
    dump.write_bytes(compress(export(page("A", "Text"), page("B", "More")).encode()))
    assert kill_resume.repeated([dump], 1, tmp_path / "parts") == [dump]
    parts = kill_resume.repeated([dump], 3, tmp_path / "parts")
    assert [x.name for x in parts] == [f"{i}-a{end}" for i in range(3)]
    assert len({x.read_bytes() for x in parts}) == 3
    titles = [[x.title for x in read_pages(part)] for part in partitions(parts)]
    assert titles == [["A", "B"], ["A 1", "B 1"], ["A 2", "B 2"]]
