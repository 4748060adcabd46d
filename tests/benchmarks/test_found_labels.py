"""Spans and their labels, told apart."""

import json

import pytest

from benchmarks import found_labels

GOLD = [[0, 0, 1, 0], [0, 2, 3, 1], [1, 0, 2, 0], [1, 4, 5, 1]]
# Three right spans, one with a wrong label, and a wrong span.
TOKEN = [[0, 0, 1, 0], [0, 2, 3, 0], [1, 0, 2, 0], [1, 3, 5, 1]]
# All spans; of those that token found, too, all labels are right.
TWO_STAGE = [[0, 0, 1, 0], [0, 2, 3, 1], [1, 0, 2, 0], [1, 4, 5, 0]]


def record(row, predicted, seed=0):
    return {
        "kind": "run", "data": "set", "row": row, "seed": seed, "n_docs": 2,
        "settings": {"learn_rate": 2e-4}, "dev": {"f": 50.0}, "test": {"f": 50.0},
        "labels": ["A", "B"], "gold": GOLD, "predicted": predicted,
    }  # fmt: skip


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "results.jsonl"
    records = [record("token", TOKEN), record("two-stage", TWO_STAGE)]
    path.write_text("".join(json.dumps(x) + "\n" for x in records), "utf8")
    return path


def test_spans_and_labels(path, capsys):
    assert found_labels.main([str(path)]) == 0
    _, _, token, ours = capsys.readouterr().out.strip().splitlines()
    assert token == "| set | token | 1 | 50.0 | 75.0 | 66.7 | - |"
    # +33.3 on three spans, of which only the first document's differ: [0, 50].
    assert ours == "| set | two-stage | 1 | 50.0 | 100.0 | 75.0 | +33.3 [+0.0, +50.0] |"


def test_labels_of_all_gold_spans_are_compared_where_they_were_told(path, capsys):
    with pytest.raises(SystemExit, match="no such runs"):
        found_labels.main([str(path), "--gold-labels"])
    token, ours = (json.loads(x) for x in path.read_text("utf8").splitlines())
    told = [{**token, "gold_labels": [0, 0, 1, -1]}, {**ours, "gold_labels": [0, 1, 1, 1]}]
    told.append({**ours, "seed": 1})  # not told
    path.write_text("".join(json.dumps(x) + "\n" for x in told), "utf8")
    assert found_labels.main([str(path), "--gold-labels"]) == 0
    header, _, token, ours = capsys.readouterr().out.strip().splitlines()
    assert header.endswith("| test F1 | labels of gold spans | gain over token |")
    assert token == "| set | token | 1 | 50.0 | 25.0 | - |"
    assert ours == "| set | two-stage | 1 | 50.0 | 75.0 | +50.0 [+50.0, +50.0] |"


def test_runs_without_a_common_seed_or_right_span(path, capsys):
    wrong = [[0, 5, 6, 0]]
    records = [record("token", TOKEN, seed=1), record("two-stage", TWO_STAGE), record("ner", wrong)]
    path.write_text("".join(json.dumps(x) + "\n" for x in records), "utf8")
    assert found_labels.main([str(path), "--rows", "token", "two-stage", "ner"]) == 0
    _, _, _, ours, ner = capsys.readouterr().out.strip().splitlines()
    # Nor is a row compared with another one than the first that is asked for.
    assert found_labels.main([str(path), "--rows", "probe", "two-stage", "ner"]) == 0
    assert all(x.endswith("| - |") for x in capsys.readouterr().out.splitlines()[2:])
    assert ours.endswith("| 75.0 | - |") and ner == "| set | ner | 1 | 50.0 | 0.0 | 0.0 | - |"
