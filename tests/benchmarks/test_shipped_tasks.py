"""The shipped configs of relations and types on the benchmarks' sets."""

import pytest

from benchmarks import results, shipped_tasks, task_data
from tests.benchmarks.task_data import write_crossner, write_redocred, write_semeval


@pytest.fixture(scope="module")
def work(tmp_path_factory, bert_dir):
    folder = tmp_path_factory.mktemp("shipped")
    write_semeval(folder / "data", 8)
    write_redocred(folder / "data", 12)
    write_crossner(folder / "data", "ai")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_data, "SEMEVAL_DEV", 8)
        patch.setattr(task_data, "REDOCRED_TRAIN", 6)
        patch.setattr(task_data, "REDOCRED_DEV", 2)
        assert shipped_tasks.main(arguments(folder, bert_dir)) == 0
    return folder


def arguments(folder, encoder):
    places = ["--encoder", encoder, "--data", folder / "data", "--work", folder / "work"]
    options = "--data-sets semeval redocred ai --seeds 0 --set initialize.after_init.words 2000"
    return [*map(str, places), *options.split()]


def test_every_set_is_trained_as_planned_and_scored(work):
    records = results.read([work / "work" / "results.jsonl"])
    assert [(x["kind"], x["data"]) for x in records] == [
        ("relation", "semeval"),
        ("relation", "redocred"),
        ("typing", "ai"),
    ]
    for record in records:
        assert record["row"] == "shipped" and record["steps"] > 10
        assert record["gold"] and 0 <= record["test"]["f"] <= 100
    assert records[1]["predicted"]  # of merged entities with several relations


def test_finished_runs_are_skipped_and_shown_beside_the_best_row(work, bert_dir, capsys):
    path = work / "work" / "results.jsonl"
    before = results.read([path])
    assert shipped_tasks.main(arguments(work, bert_dir)) == 0
    assert results.read([path]) == before
    best = work / "best.jsonl"
    results.append(best, {**before[0], "row": "probe", "predicted": before[0]["gold"]})
    capsys.readouterr()
    longer = work / "longer.jsonl"
    results.append(longer, {**before[1], "predicted": before[1]["gold"]})
    table = ["--results", str(path), "--table", str(best), str(longer)]
    assert shipped_tasks.main(table) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert [x.split(" | ")[:2] for x in lines[2:]] == [
        ["| semeval", "shipped"],
        ["| semeval", "probe"],
        ["| redocred", "shipped"],
        ["| redocred", "shipped, words 2000"],
        ["| ai", "shipped"],
    ]
    assert ["[" in line for line in lines[2:]] == [False, True, False, True, False]
    # A macro-average has the micro-F1 beside it.
    found = f"{before[0]['test_micro']['f']:.1f}"
    assert before[0]["average"] == "macro" and lines[2].split(" | ")[5] == found
    assert lines[4].split(" | ")[5] == "-"
