"""One encoder for several tasks beside an encoder each: scores, size, memory and speed."""

import json

import pytest
import spacy
from spacy.tokens import DocBin

from benchmarks import joint, joint_cost, results, tables
from tests.pipeline.relation_data import make_examples


@pytest.fixture(scope="module")
def trained(tmp_path_factory, bert_dir):
    """Arguments of a finished command, and its records."""
    folder = tmp_path_factory.mktemp("joint")
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))]
    for part in ("train", "dev", "test"):
        DocBin(docs=docs, store_user_data=True).to_disk(folder / f"{part}.spacy")
    places = ["--encoder", bert_dir, "--data", folder, "--work", folder / "work"]
    options = "--seeds 0 --steps 40 --learn-rate 0.004"
    argv = [*map(str, places), *options.split()]
    assert joint.main(argv) == 0
    return argv, results.read([joint.parse(argv).results])


def test_both_rows_have_scores_end_to_end_and_with_gold_entities(trained):
    for row in joint.ROWS:
        (run,) = [x for x in trained[1] if x["row"] == row]
        assert {"ents_f", "rels_f", "types_micro_f"} < set(run["test"])
        assert {"gold_rels_f", "gold_types_micro_f"} < set(run["test"])
        assert run["test"]["gold_types_micro_f"] > 50
        assert len(run["by_pipeline"]) == (1 if row == "joint" else 3)


@pytest.mark.parametrize(("data", "n_tasks"), [("encyclopedia", 3), ("encyclopedia-all", 5)])
def test_separate_pipelines_have_an_encoder_each_and_one_task(data, n_tasks):
    args = joint.parse([])
    config = joint.joint_config(args, data, joint.JointSettings(encoder="somewhere"), 0)
    encoder = config["components"]["luke"]["model"]
    assert len(joint.tasks(config)) == n_tasks
    for task in joint.tasks(config):
        alone = joint.alone(config, task)
        assert alone["nlp"]["pipeline"] == ["sentencizer", task]
        assert alone["components"][task]["model"]["encoder"] == encoder
        assert alone["training"] == config["training"]
        assert set(alone["initialize"]["components"]) <= {task}
    assert "luke" in config["components"]  # not changed


def test_finished_runs_are_skipped(trained):
    argv, before = trained
    assert joint.main(argv) == 0
    assert results.read([joint.parse(argv).results]) == before


def test_memory_of_either_layout_is_printed(trained, capsys):
    for row in ("separate", "nothing"):
        assert joint.main([*trained[0], "--docs", "2", "--memory-of", row]) == 0
        assert json.loads(capsys.readouterr().out) > 0


def test_what_sharing_saves_is_measured_and_reaches_the_tables(trained, monkeypatch):
    argv, runs = trained
    memory = {"joint": 30.0, "separate": 50.0, "nothing": 10.0}
    monkeypatch.setattr(joint_cost, "memory_of", lambda row, argv: memory[row])
    path = joint.parse(argv).results.with_name("cost.jsonl")
    more = ["--measure", "--rounds", "1", "--docs", "2", "--results", str(path)]
    assert joint.main([*argv, *more]) == 0
    size, *speed = results.read([path])
    assert size["bytes"]["joint"] < size["bytes"]["separate"]
    assert {x["clock"] for x in speed} == {"process", "wall"}
    assert all(set(x["seconds"]) == {"joint", "separate", joint_cost.UNSHARED} for x in speed)
    text = tables.render([*runs, size, *speed])
    assert "relations, gold entities" in text and f"| {joint_cost.UNSHARED} |" in text
    assert "| 30 | 20 |" in text and "| 50 | 40 |" in text
