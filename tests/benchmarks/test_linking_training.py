"""Trained links: ambiguous mentions are tested; in the table folds are put together, and rows
compared on the same mentions."""

import pytest

from benchmarks.linking import add_linker, make_encoder, open_kb
from benchmarks.linking_data import LinkedDoc, LinkedSet
from benchmarks.linking_training import ambiguous, scored, table
from spacy_luke.kb.entity import Entity


def record(row, fold, seed, right, **more):
    settings = {"fold": fold, "encoder": "e", "set": []}
    found = {"data": "places", "row": row, "seed": seed, "settings": settings, "right": right}
    return {**found, "prior": [1, 0, 0, 0], "docs": [0, 0, 1, 2], **more}


def test_folds_are_put_together_and_rows_compared():
    records = [
        record("luke_linker", 0, 0, [1, 1, 1, 0], initialised=[1, 1, 0, 0], untrained=[0] * 4),
        record("luke_linker", 1, 0, [1, 1, 1, 1], initialised=[1] * 4, untrained=[1, 0, 0, 0]),
        record("entity_linker", 0, 0, [0, 0, 0, 0]),
    ]
    lines = [[x.strip() for x in line.split("|")[1:-1]] for line in table(records).split("\n")]
    rows = {line[3]: line for line in lines[2:]}
    assert rows["luke_linker, trained"][1:3] == ["2", "8"]
    assert rows["luke_linker, trained"][5] == "87.5"
    assert rows["luke_linker, initialised"][5] == "75.0" and rows["prior"][5] == "25.0"
    assert rows["luke_linker, untrained"][5] == "12.5"
    assert rows["entity_linker, trained"][1:3] == ["1", "4"]
    assert rows["entity_linker, trained"][6].startswith("+75.0 [")
    assert rows["luke_linker, initialised"][6].startswith("+12.5 [")
    lines = [
        [x.strip() for x in line.split("|")[1:-1]] for line in table(records, folds=[1]).split("\n")
    ]
    assert [line[1:6] for line in lines if line[3] == "luke_linker, trained"] == [
        ["1", "4", "luke_linker, trained", "1", "100.0"]
    ]


def test_a_seed_that_was_not_run_on_all_folds_does_not_shift_the_mean():
    records = [
        record("luke_linker", 0, 0, [1, 0, 0, 0]),
        record("luke_linker", 1, 0, [1, 1, 1, 1]),
        record("luke_linker", 1, 1, [1, 1, 1, 0]),
    ]
    lines = [[x.strip() for x in line.split("|")[1:-1]] for line in table(records).split("\n")]
    rows = {line[3]: line for line in lines[2:]}
    assert rows["luke_linker, trained"][4:6] == ["1 to 2", "56.2"]
    lines = [[x.strip() for x in line.split("|")[1:-1]] for line in table(records[1:]).split("\n")]
    rows = {line[3]: line for line in lines[2:]}
    assert rows["luke_linker, trained"][4:6] == ["2", "87.5 ± 17.7"]


def test_other_settings_and_if_asked_for_folds_have_their_own_rows():
    records = [record("luke_linker", fold, 0, [1, 1, 1, fold]) for fold in (0, 1)]
    rate, length = ["components.luke_linker.model.rate", "2"], ["initialize.after_init.words", "1"]
    for other, settings in zip(records, ([length], [length, rate])):
        other["settings"] = {**other["settings"], "set": settings}
    found = [line.split("|")[1].strip() for line in table(records).split("\n")[2:]]
    assert list(dict.fromkeys(found)) == ["places", "places, model.rate 2"]
    by_fold = [line.split("|")[1].strip() for line in table(records, True).split("\n")[2:]]
    assert list(dict.fromkeys(by_fold)) == ["places, fold 0", "places, fold 1, model.rate 2"]


@pytest.mark.parametrize("of_data", [[], [["training.batcher.batcher.size", "1200"]]])
def test_other_settings_are_compared_with_the_config(of_data):
    records = [
        record("luke_linker", 0, 0, [1, 0, 0, 0]),
        record("luke_linker", 1, 0, [0, 0, 0, 0]),
        record("luke_linker", 0, 0, [1, 1, 1, 0]),
        record("luke_linker", 0, 0, [0, 0, 0, 0]),  # trained in other batches
    ]
    age, batches = ["components.luke_linker.age", "2"], ["training.batcher.batcher.size", "9"]
    for other, given in zip(records, (of_data, of_data, [*of_data, age], [batches])):
        other["settings"] = {**other["settings"], "set": given}
    lines = [[x.strip() for x in line.split("|")[1:-1]] for line in table(records).split("\n")]
    row = "luke_linker, trained by the config"
    ((of_set, folds, _, _, _, accuracy, better),) = [x for x in lines if x[3] == row]
    assert of_set.endswith("age 2") and (folds, accuracy) == ("1", "25.0")
    assert better.startswith("+50.0 [")


@pytest.fixture
def places(bert_dir, tmp_path):
    """A set in which one name has two meanings, its pipeline, and its folder."""
    entities = [
        Entity("Q1", "Paris", {"Paris": 3.0}, "the capital of France"),
        Entity("Q2", "Paris, Texas", {"Paris": 1.0}, "a town in Texas"),
        Entity("Q3", "France", {"France": 1.0}),
    ]
    texts = ["Paris is in France.", "Paris is small.", "France is not."]
    docs = [
        LinkedDoc(texts[0], [(0, 5, "Q1"), (12, 18, "Q3")]),
        LinkedDoc(texts[1], [(0, 5, "Q2")]),
        LinkedDoc(texts[2], [(0, 6, "Q3")]),
    ]
    nlp = make_encoder("en", str(bert_dir))
    kb = open_kb(nlp, "en", entities, tmp_path / "kb")
    kb.to_disk(tmp_path / "kb")
    add_linker(nlp, kb)
    nlp.get_pipe("luke_linker").spans_key = None
    return LinkedSet("en", entities, docs, []), nlp, tmp_path


def test_ambiguous_mentions_alone_are_tested(places):
    data, nlp, folder = places
    tested = list(ambiguous(nlp, data, folder))
    assert [[ent.text for ent in x.doc.ents] for x in tested] == [["Paris"], ["Paris"]]
    assert [x.right for x in tested] == [{(0, 1): "Q1"}, {(0, 1): "Q2"}]
    assert [x.prior for x in tested] == [[True], [False]] and [x.number for x in tested] == [0, 1]
    with_others = list(ambiguous(nlp, data, folder, others=True))
    assert [len(x.doc.ents) for x in with_others] == [2, 1]
    found = scored(nlp, tested)
    assert found == scored(nlp, with_others)
    assert (found["prior"], found["docs"]) == ([True, False], [0, 1])
    chosen = [doc.ents[0].kb_id_ for doc in nlp.pipe(x.doc.copy() for x in tested)]
    assert found["right"] == [a == b for a, b in zip(chosen, ["Q1", "Q2"])]
    assert not any(ent.kb_id for x in tested for ent in x.doc.ents)
