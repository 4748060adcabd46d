"""Both sides of every case run, give the same answers, and are recorded. Times are not tested."""

import json

import pytest

from benchmarks import peer_speed, results, tables
from benchmarks.peer_cases import CASES
from benchmarks.tables import PEER_MEMORY_TARGETS, PEER_TARGETS

pytest.importorskip("transformers")

DIFFERENT_FUNCTIONS = {"sentences", "document"}


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    """A tiny network on the project's own articles, with pieces learned from them."""
    folder = tmp_path_factory.mktemp("peer")
    options = "--size tiny --rounds 1 --sentences 2 --max-words 2 --words 12"
    return ["--data", str(folder / "none"), "--work", str(folder), *options.split()]


@pytest.fixture(scope="module")
def records(arguments):
    assert peer_speed.main(arguments) == 0
    return results.read([peer_speed.parse(arguments).results])


def test_every_case_is_recorded_for_both_clocks(records):
    assert {(x["case"], x["clock"]) for x in records} == {
        (case, clock) for case in CASES for clock in ("process", "wall")
    }
    for record in records:
        target = PEER_TARGETS[record["case"]]
        assert {target.top, target.bottom} <= set(record["seconds"])
        assert all(len(times) == 1 for times in record["seconds"].values())
        assert record["n_words"] > 0 and record["n_spans"] > record["n_words"]


def test_both_sides_give_the_same_answers(records):
    for record in records:
        if record["case"] in DIFFERENT_FUNCTIONS:
            assert not record["same_function"] and record["difference"] is None
        else:
            assert record["same_function"] and record["difference"] <= peer_speed.TOLERANCE
    assert all(x["difference"] == 0 for x in records if x["case"] == "inputs")


def test_other_answers_stop_the_benchmark(arguments, monkeypatch):
    monkeypatch.setattr(peer_speed, "TOLERANCE", -1.0)
    with pytest.raises(SystemExit, match="differ"):
        peer_speed.main([*arguments, "--cases", "equal"])


def test_memory_of_either_side_is_measured(records, arguments, capsys):
    for side in ("ours", "transformers"):
        assert peer_speed.main([*arguments, "--memory-of", "mixed", side]) == 0
        assert json.loads(capsys.readouterr().out) >= 0


def test_the_tables_name_every_case_with_its_target(records):
    memory = {"kind": "peer-memory", "grown_mib": {"ours": [1.0], "transformers": [2.0]}}
    more = [{**records[0], **memory, "case": case} for case in PEER_MEMORY_TARGETS]
    text = tables.render([*records, *more])
    for target in [*PEER_TARGETS.values(), *PEER_MEMORY_TARGETS.values()]:
        assert f"| {target.name} |" in text
    assert "| 2 MiB | 1 MiB | 2.00 | >= 3 | **missed** |" in text
