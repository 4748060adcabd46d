"""The recipe's benchmark: rows differ by their contexts alone, and are tested on both forms."""

import json

import pytest

from benchmarks import recipe
from benchmarks.datasets import load
from benchmarks.forms import FORMS


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "few-nerd"
    folder.mkdir(parents=True)
    lines = []
    for i in range(60):
        lines += [f"Name{i}\tB-person", "sang\tO", "in\tO", "Rome\tB-location", ".\tO", ""]
    (folder / "dev.txt").write_text("\n".join([*lines, *lines[:6], ""]), "utf8")
    return folder.parent


def test_rows_are_trained_and_tested_on_both_forms(data, bert_dir, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(recipe, "MOST", 40)
    monkeypatch.setattr(recipe, "DEV", 10)
    arguments = ["--encoder", str(bert_dir), "--data", str(data), "--work", str(tmp_path / "work")]
    arguments += ["--sizes", "30", "--seeds", "0", "--set", "initialize.after_init.words", "500"]
    assert recipe.main([*arguments, "--forms"]) == 0
    file = tmp_path / "work" / "results.jsonl"
    records = [json.loads(line) for line in file.read_text("utf8").splitlines()]
    assert len(records) == 6 and {x["steps"] > 0 for x in records} == {True}
    for record in records:
        assert set(record["test_sentences"]) == set(record["test_documents"]) == {"f", "p", "r"}
        assert set(record["forms"]) == set(FORMS)
        for form in recipe.GIVEN:
            assert record["forms"][form] == pytest.approx(record[f"test_{form}"])
    assert len(load(tmp_path / "work" / "data" / "test-sentences.spacy")) == 10
    capsys.readouterr()
    assert recipe.main(arguments) == 0  # all done
    assert recipe.main([*arguments, "--table"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 8 and "| 30 | sentences | shipped |" in shown[2]
    assert len(file.read_text("utf8").splitlines()) == 6
