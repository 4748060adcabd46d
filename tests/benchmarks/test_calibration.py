"""The benchmark of tuning: every goal is tried on a trained pipeline, or is said to be too high."""

import json

import pytest
import spacy
from spacy.training.initialize import init_nlp

from benchmarks import calibration, task_data
from benchmarks.datasets import DATA_SETS, Corpora, load
from benchmarks.shipped import SHIPPED
from spacy_luke.annotations.types import get_types
from tests.benchmarks.task_data import write_crossner, write_semeval


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "crossner" / "politics"
    folder.mkdir(parents=True)
    lines = ["Ada\tB-person", "sang\tO", "in\tO", "Rome\tB-location", ".\tO", ""]
    for part in ("train", "dev", "test"):
        (folder / f"{part}.txt").write_text("\n".join([*lines * 40, ""]), "utf8")
    return tmp_path / "data"


def test_every_goal_is_scored_or_out_of_reach(data, bert_dir, tmp_path, capsys):
    arguments = ["--encoder", str(bert_dir), "--data", str(data), "--sets", "politics"]
    arguments += ["--work", str(tmp_path / "work"), "--words", "500"]
    assert calibration.main(arguments) == 0
    file = tmp_path / "work" / "results.jsonl"
    (record,) = (json.loads(line) for line in file.read_text("utf8").splitlines())
    for name, goal in calibration.goals().items():
        found = record[name]
        if goal is not None and goal.precision and "unreached" in found:
            assert "cannot be reached" in found["unreached"]
        else:
            assert 0 <= found["f"] <= 100
    capsys.readouterr()
    assert calibration.main(arguments) == 0  # all done
    assert len(file.read_text("utf8").splitlines()) == 1
    one = [*arguments, "--goals", "best F", "--results", str(tmp_path / "one.jsonl")]
    assert calibration.main(one) == 0
    (of_one,) = (
        json.loads(line) for line in (tmp_path / "one.jsonl").read_text("utf8").split("\n")[:-1]
    )
    assert of_one["best F"] == record["best F"] and "trained" not in of_one
    capsys.readouterr()
    assert calibration.main([*arguments, "--table"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2 + len(calibration.goals()) and "| politics | best F |" in shown[3]


def test_training_data_alone_can_be_limited(data, bert_dir, tmp_path):
    arguments = ["--encoder", str(bert_dir), "--data", str(data), "--sets", "politics"]
    work = tmp_path / "work"
    arguments += ["--work", str(work), "--words", "500", "--goals", "trained"]
    arguments += ["--train-limit", "10"]
    assert calibration.main(arguments) == 0
    (record,) = map(json.loads, (work / "results.jsonl").read_text("utf8").splitlines())
    assert record["settings"]["train_limit"] == 10
    (folder,) = (work / "corpora").iterdir()
    assert {part: len(load(folder / f"{part}.spacy")) for part in ("train", "dev", "test")} == {
        "train": 10,
        "dev": 40,
        "test": 40,
    }
    both = [record, {**record, "settings": {**record["settings"], "train_limit": 20}}]
    titles = [line.split("|")[1].strip() for line in calibration.table(both).splitlines()[2:]]
    assert titles == ["politics, train limit 10", "politics, train limit 20"]
    assert [x.name for x in work.glob("politics.*")] == [
        f"politics.{bert_dir.name}.limit0.train10.words500.0"
    ]


def test_relations_and_types_are_tuned_with_gold_entities(bert_dir, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(task_data, "SEMEVAL_DEV", 16)
    write_semeval(tmp_path / "data", 16)
    write_crossner(tmp_path / "data", "ai")
    arguments = ["--encoder", str(bert_dir), "--data", str(tmp_path / "data")]
    arguments += ["--work", str(tmp_path / "work"), "--words", "2000"]
    arguments += ["--sets", "relations.semeval", "types.ai"]
    arguments += ["--goals", "trained", "best F", "precision 0.9"]
    assert calibration.main(arguments) == 0
    lines = (tmp_path / "work" / "results.jsonl").read_text("utf8").splitlines()
    relations, types = map(json.loads, lines)
    for record in (relations, types):
        assert 0 <= record["trained"]["f"] <= record["best F"]["f"] != 0
        assert record["best F"]["calibration_error"] is not None
    assert set(relations["best F"]["p_by_label"]) == {"Component-Whole", "Entity-Origin"}
    assert set(types["best F"]["p_by_label"]) == {"person", "place"}
    # Every entity has one type, so every gold entity has an answer, and no precision is chosen.
    assert types["trained"]["p"] == types["trained"]["r"]
    assert "precision 0.9" in relations and "precision 0.9" not in types
    shown = capsys.readouterr().out
    assert "| relations.semeval | best F |" in shown and "| types.ai | best F |" in shown


def test_examples_are_read_as_the_config_of_a_saved_pipeline_says(bert_dir, tmp_path):
    write_crossner(tmp_path / "data", "ai")
    with (tmp_path / "data" / "crossner" / "ai" / "test.txt").open("a", encoding="utf8") as file:
        file.write("\nAda\tB-person\nleft\tO\n")
    shipped = SHIPPED["types.ai"]
    corpora = shipped.prepare(tmp_path / "data", tmp_path / "work")
    init_nlp(shipped.made(corpora, str(bert_dir), 0)).to_disk(tmp_path / "saved")
    corpora.train.unlink()  # only needed to train
    nlp = spacy.load(tmp_path / "saved")
    gold = corpora.docs("test")
    read = calibration.examples(nlp, corpora.test)
    assert len(read) == len(gold) == len(calibration.examples(nlp, corpora.dev)) + 1
    for example, doc in zip(read, gold):
        assert [x.text for x in example.predicted.ents] == [x.text for x in doc.ents] != []
        assert all(get_types(x) is None for x in example.predicted.ents)


def test_thresholds_are_those_of_the_shipped_configs(tmp_path):
    for name, shipped in SHIPPED.items():
        made = shipped.made(Corpora(*[tmp_path] * 3, n_train=0), "encoder", 0)
        threshold = 0.0 if name in DATA_SETS else None if name.startswith("relations.") else 0.5
        assert made["components"][shipped.component]["threshold"] == threshold


def test_a_label_without_gold_annotation_has_no_precision():
    names = [*SHIPPED["relations.redocred"].scores, "rels_calibration_error"]
    scores = dict.fromkeys([*names, "rels_calibration_error_by_chance"], 0.5)
    by_label = {"P17": {"p": 0.25}, "P6": {"p": None}}
    found = calibration.figures(
        {**scores, "rels_per_type": by_label}, SHIPPED["relations.redocred"]
    )
    assert found["f"] == found["calibration_error"] == 50.0
    assert found["p_by_label"] == {"P17": 25.0, "P6": None}
