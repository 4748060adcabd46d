"""The benchmark of spaCy's defaults: all rows train the same component on the same files."""

import json

import pytest

from benchmarks import defaults, shipped
from benchmarks.training import CONFIGS


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "crossner" / "politics"
    folder.mkdir(parents=True)
    lines = ["Ada\tB-person", "sang\tO", "in\tO", "Rome\tB-location", ".\tO", ""]
    for part in ("train", "dev", "test"):
        (folder / f"{part}.txt").write_text("\n".join([*lines * 20, ""]), "utf8")
    return tmp_path / "data"


def test_every_row_is_trained_and_scored(data, bert_dir, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(shipped, "load_config", lambda path, overrides: shorter(path, overrides))
    arguments = ["--encoder", str(bert_dir), "--data", str(data), "--sets", "politics"]
    arguments += ["--work", str(tmp_path / "work"), "--steps", "4"]
    assert defaults.main(arguments) == 0
    file = tmp_path / "work" / "results.jsonl"
    records = [json.loads(line) for line in file.read_text("utf8").splitlines()]
    assert [x["row"] for x in records] == list(defaults.ROWS)
    assert [x["steps"] for x in records][1:] == [4, 4]
    for record in records:
        assert set(record["test"]) == set(record["dev"]) == {"f", "p", "r"}
    capsys.readouterr()
    assert defaults.main(arguments) == 0  # all done
    assert defaults.main([*arguments, "--table"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 5 and "| politics | shipped |" in shown[2]


def shorter(path, overrides):
    from spacy.util import load_config

    assert path == CONFIGS / "ner.cfg"
    return load_config(path, overrides={**overrides, "initialize.after_init.words": 500})


def test_what_init_config_writes_keeps_spacys_learning_rate(data, bert_dir, tmp_path):
    corpora = defaults.prepare("politics", data, tmp_path / "work")
    config = defaults.config_of("politics", "init-config", corpora, str(bert_dir), 7, seed=3)
    config = config.interpolate()
    assert config["training"]["optimizer"]["learn_rate"] == 0.001
    assert config["training"]["max_steps"] == 7
    assert config["training"]["seed"] == 3
    encoder = config["components"]["luke_ner"]["model"]["encoder"]
    assert encoder["name"] == str(bert_dir) and encoder["word_shapes"] is True
    assert config["corpora"]["train"]["path"] == str(corpora.train)
