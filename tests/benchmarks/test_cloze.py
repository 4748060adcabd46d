"""The benchmark of cloze: its parts, its rows, its table."""

import json
from pathlib import Path

import pytest

from benchmarks import cloze

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(tmp_path):
    """Ten articles of one query, of which Ada is always right and Rome has the most mentions."""
    text = "Ada met Bob in Rome. Rome was warm."
    places = [(0, 2), (8, 10), (15, 18), (21, 24)]
    entities = [{"start": start, "end": end} for start, end in places]
    answers = [{"start": 0, "end": 2, "text": "Ada"}]
    records = [
        {
            "id": f"News-{i}-0",
            "passage": {"text": text, "entities": entities},
            "qas": [{"id": "q", "query": "@placeholder met him there.", "answers": answers}],
        }
        for i in range(10)
    ]
    path = tmp_path / "data" / "cloze-wikinews"
    path.mkdir(parents=True)
    (path / "cloze-a.json").write_text(json.dumps({"data": records}))
    return path.parent


def test_rows_are_trained_and_tested_beside_the_most_frequent_entity(
    data, bert_dir, tmp_path, capsys
):
    arguments = ["--encoder", str(bert_dir), "--data", str(data), "--work", str(tmp_path / "work")]
    arguments += ["--dump", str(ROOT / "project" / "corpus" / "encyclopedia.xml")]
    arguments += ["--seeds", "0", "--words", "300", "--number", "20", "--max-words", "60"]
    assert cloze.main(arguments) == 0
    file = tmp_path / "work" / "cloze.jsonl"
    records = [json.loads(line) for line in file.read_text("utf8").splitlines()]
    assert [(x["data"], x["row"]) for x in records] == [
        *((name, "most frequent") for name in cloze.SETS),
        *((name, row) for name in cloze.SETS for row in cloze.ROWS),
    ]
    frequent = records[1]["test_wikinews"]
    assert frequent["em"] == 0 and 0 < frequent["queries"] < 10
    for record in records:
        assert {f"test_{record['data']}", "test_wikinews"} <= set(record)
        assert len(record["test_wikinews"]["each_em"]) == frequent["queries"]
    capsys.readouterr()
    assert cloze.main(arguments) == 0  # all done
    assert file.read_text("utf8").count("\n") == len(records)
    assert cloze.main([*arguments, "--table"]) == 0
    assert capsys.readouterr().out.count("| wikipedia | wikinews |") == 3
