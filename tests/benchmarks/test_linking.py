"""The benchmark of choosing among candidates counts ambiguous mentions alone."""

import json

import numpy as np
import pytest

from benchmarks import linking
from benchmarks.differences import gain, interval
from benchmarks.linking import Case, by_type, difference, right_answers
from benchmarks.linking_data import LinkedSet
from spacy_luke.kb.entity import Entity


def task(text, start, answer, accept):
    spans = [{"start": start, "end": start + len("Emerson")}]
    return {"text": text, "spans": spans, "answer": answer, "accept": accept}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "nel-emerson"
    folder.mkdir(parents=True)
    entities = '"Q1","Ralph","poet"\n"Q2","Roy","tennis player"\n'
    (folder / "entities.csv").write_text(entities, "utf8")
    tasks = [
        task("Emerson wrote.", 0, "accept", ["Q1"]),
        task("So did Emerson.", 7, "accept", ["Q2"]),
        task("Emerson?", 0, "reject", []),
        task("Emerson!", 0, "accept", ["NIL_x"]),
    ]
    lines = "".join(json.dumps(task) + "\n" for task in tasks)
    (folder / "emerson_annotated_text.jsonl").write_text(lines, "utf8")
    return tmp_path / "data"


def test_a_set_is_scored_and_shown(data, bert_dir, tmp_path, capsys):
    arguments = ["--encoder", str(bert_dir), "--data", str(data), "--sets", "emerson"]
    arguments += ["--work", str(tmp_path / "work")]
    assert linking.main([*arguments, "--show"]) == 0
    (line,) = (tmp_path / "work" / "linking.jsonl").read_text("utf8").splitlines()
    record = json.loads(line)
    assert record["n"] == record["docs"] == 2 and record["prior"] == 0.5
    n_vectors = len(linking.VECTORS) + len(linking.SUMS)
    assert len(record["rows"]) == 1 + n_vectors * (1 + len(linking.TEMPERATURES))
    # The prior takes the first of two candidates, and is right once.
    differing = [x for x in capsys.readouterr().out.splitlines() if " right: Emerson is R" in x]
    linker = next(figures[0] for names, _, *figures in record["rows"] if names == ["luke_linker"])
    assert len(differing) in {0.0: [1], 0.5: [0, 2], 1.0: [1]}[linker]
    assert linking.main([*arguments, "--table"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3 + n_vectors and "emerson (2 of 2 documents)" in shown[2]


def test_the_prior_counts_less_at_a_low_temperature():
    case = Case(np.asarray([0.9, 0.1]), ["a", "b"], {"mention": np.asarray([0.1, 0.2])}, 1, 0)
    assert not right_answers([case], (), 0.0)[0]
    assert right_answers([case], ["mention"], 0.0)[0]
    assert right_answers([case], ["mention"], 0.03)[0]  # 0.1 / 0.03 is more than log 9
    assert not right_answers([case], ["mention"], 0.1)[0]


def test_the_rule_takes_the_first_type_and_of_these_the_most_probable():
    entities = [Entity(x, x, {}, type=x[0]) for x in ("town 1", "town 2", "land 1", "land 2")]
    data = LinkedSet("en", entities, [], [], type_order=("l", "t"))
    case = Case(np.asarray([0.9, 0.1]), ["town 1", "land 1"], {}, 1, 0)
    other = Case(np.asarray([0.6, 0.1, 0.2]), ["town 1", "land 2", "land 1"], {}, 2, 0)
    assert by_type([case, other, case._replace(right=0)], data).tolist() == [True, True, False]


def test_a_mention_on_which_linker_and_prior_differ_is_shown_with_its_candidates():
    names = ["Athens", "Athens, Ohio"]
    case = Case(np.asarray([0.9, 0.1]), ["a", "b"], {}, 1, 0, "b", "athens", names)
    of = "of Athens (0.90), Athens, Ohio (0.10)"
    won = f"linker right: athens is Athens, Ohio; linked to Athens, Ohio; {of}"
    assert difference(case) == won
    lost = case._replace(right=0, link="NIL")
    assert difference(lost) == f"prior right: athens is Athens; linked to NIL; {of}"


def test_intervals_are_over_documents():
    values = np.asarray([1.0] * 50 + [0.0] * 50)
    low, high = interval(values, np.repeat([0, 1], 50))
    assert (low, high) == (0.0, 1.0)
    low, high = interval(values, np.arange(100))
    assert 0.38 < low < 0.45 and 0.55 < high < 0.62


def test_gains_are_of_all_runs():
    docs = [0, 0, 1, 1]
    ours, others = [[1, 1, 1, 1], [1, 1, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 0]]
    assert gain(ours, others, [docs, docs], scale=100) == "+75.0 [+50.0, +100.0]"
