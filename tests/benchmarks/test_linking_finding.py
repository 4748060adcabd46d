"""The table of entities that are found by names written differently."""

import pytest
import spacy
from spacy.tokens import Span

from benchmarks import linking_finding, runtime
from benchmarks.datasets import load
from benchmarks.linking_data import LinkedAbstract
from benchmarks.linking_finding import TRAINED, annotated, identities, outcome, table
from benchmarks.linking_training import UNLINKED, store_training
from spacy_luke.kb.entity import Entity


def doc_of(words, *places):
    doc = spacy.blank("en").make_doc(words)
    doc.set_ents([Span(doc, *place, label="DISEASE") for place in places])
    return doc


@pytest.fixture
def docs():
    """Three mentions with an entity, the first of two, and one that is none of the entities."""
    first = doc_of("flu and gout", (0, 1), (2, 3)), {(0, 1): frozenset("ab"), (2, 3): frozenset()}
    second = doc_of("gout or flu", (0, 1), (2, 3)), {(0, 1): frozenset("c"), (2, 3): frozenset("a")}
    return [first, second]


def test_links_nil_and_candidates_are_counted_apart(docs):
    links = [["b", "NIL"], ["NIL", "c"]]
    found = outcome(docs, links, [[["b"], []], [[*"xyz"], [*["x"] * 30, "a"]]], seconds=0.5)
    assert found["has_id"] == [1, 0, 1, 1] and found["right"] == [1, 1, 0, 0]
    assert found["nil"] == [0, 1, 1, 0] and found["among"] == [1, 0, 0, 0]
    assert found["docs"] == [0, 0, 1, 1]


def test_the_table_has_a_row_for_tuned_settings_and_differences_to_it(docs):
    good = outcome(docs, [["a", "NIL"], ["c", "a"]], [[[], []]] * 2, seconds=0.5)
    poor = outcome(docs, [["a", "x"], ["NIL", "a"]], [[[], []]] * 2, seconds=0.5)
    shared = {"data": "NCBI", "seed": 0, "settings": {}}
    records = [
        {**shared, "row": "exact", "outcome": poor},
        {**shared, "row": "trained", "outcome": poor, "tuned": good},
    ]
    lines = [[x.strip() for x in line.split("|")[1:-1]] for line in table(records).split("\n")]
    assert lines[2][:-2] == [
        *("NCBI (3 + 1)", "exact", "1", "66.7 / 66.7", "66.7", "-", "0.0 / 0.0", "50.0", "125.0"),
    ]
    assert lines[4][:-2] == [
        *("NCBI (3 + 1)", "trained, tuned", "1", "100.0 / 100.0", "100.0", "-"),
        *("100.0 / 100.0", "100.0", "125.0"),
    ]
    assert lines[2][-2].startswith("+50.0 [") and lines[4][-2:] == ["-", "-"]
    assert lines[2][-1].startswith("+33.3 [")  # one of the three that have an entity


def test_entity_linker_is_not_trained_on_nil(docs, tmp_path):
    linked = [annotated(*x) for x in docs]
    store_training(tmp_path, linked, linked)
    ids = {
        name: [[x.kb_id_ for x in doc.ents] for doc in load(tmp_path / name)]
        for name in ("train.spacy", UNLINKED, "dev.spacy")
    }
    assert ids["train.spacy"] == ids["dev.spacy"] == [["a", "NIL"], ["c", "a"]]
    assert ids[UNLINKED] == [["a", ""], ["c", "a"]]


def test_of_several_ids_the_first_is_learned(docs):
    assert [x.kb_id_ for x in annotated(*docs[0]).ents] == ["a", "NIL"]


@pytest.mark.parametrize("row", TRAINED)
def test_trained_rows_run_and_are_scored(row, bert_dir, tmp_path, monkeypatch):
    entities = [Entity("D1", "flu", {"grippe": 1.0}, "an infection"), Entity("D2", "gout", {}, "")]
    flu = LinkedAbstract("Grippe is flu.", [(0, 6, frozenset(["D1"])), (10, 13, frozenset(["D1"]))])
    gout = LinkedAbstract("It was gout, not colds.", [(7, 11, frozenset(["D2"]))])
    monkeypatch.setattr(linking_finding, "disease_entities", lambda folder: entities)
    monkeypatch.setattr(linking_finding, "disease_abstracts", lambda *part: [flu, gout] * 5)
    options = ["--encoder", bert_dir, "--work", tmp_path, "--rows", row, "--sets", "NCBI"]
    args = linking_finding.parse([*map(str, options), "--seeds", "0", "--words", "10"])
    runtime.start(args.gpu_id, args.threads)
    (named,) = identities(args)
    found = linking_finding.run(args, named)
    assert len(found["outcome"]["right"]) == 15 and ("tuned" in found) == (row == "trained")
