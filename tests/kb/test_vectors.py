"""Vectors of names: set, checked, saved, and kept by edits."""

import pickle

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_luke.errors import KnowledgeBaseError
from spacy_luke.kb.entity import NOT_GIVEN, Entity, Findings
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.kb.store import verify


@pytest.fixture
def vectors(kb):
    n = len(kb.tables.keys)
    return np.arange(1, 2 * n + 1, dtype=np.float16).reshape(n, 2)


def by_name(kb):
    return dict(zip(kb.tables.keys, kb.tables.name_vectors.tolist()))


def test_there_are_none_until_they_are_set(kb, vectors):
    assert not kb.has_name_vectors and kb.name_vectors_hash == ""
    assert kb.without_name_vector().tolist() == list(range(len(vectors)))
    with pytest.raises(KnowledgeBaseError, match="no vectors of names"):
        kb.check_name_vectors("w")
    kb.set_name_vectors(vectors, "w")
    assert kb.has_name_vectors and not kb.has_vectors and kb.entity_vector_length == 64
    assert not len(kb.without_name_vector())


def test_they_are_of_the_weights_that_made_them(kb, vectors):
    kb.set_vectors(np.ones((6, 4), np.float32), "entities")
    kb.set_name_vectors(vectors, "names")
    kb.check_name_vectors("names")
    kb.check_vectors("entities")
    with pytest.raises(KnowledgeBaseError, match="vectors of names.*'names'.*'entities'"):
        kb.check_name_vectors("entities")


def test_they_are_saved_and_copied(kb, vectors, tmp_path):
    kb.set_name_vectors(vectors, "w")
    kb.to_disk(tmp_path / "kb")
    verify(tmp_path / "kb")
    copies = [
        MappedKB.open(tmp_path / "kb", Vocab()),
        MappedKB(Vocab()).from_bytes(kb.to_bytes()),
        pickle.loads(pickle.dumps(kb)),
    ]
    for copy in copies:
        assert copy.name_vectors_hash == "w"
        assert copy.tables.name_vectors.dtype == np.float16 and by_name(copy) == by_name(kb)


def test_names_that_stay_keep_them(kb, vectors, tmp_path):
    kb.set_name_vectors(vectors, "w")
    findings = Findings()
    add = [Entity("Q9", "Lyon", {"Lyon": NOT_GIVEN, "PARIS!": 5.0})]
    edited = kb.edited(add, ["Q2"], tmp_path / "kb", findings)
    before, after = by_name(kb), by_name(edited)
    assert edited.name_vectors_hash == "w" and after.pop("lyon") == [0, 0]
    assert before.pop("paris hilton") and after == before
    assert [edited.tables.keys[row] for row in edited.without_name_vector()] == ["lyon"]
    assert findings.counts["names that have no vector yet"] == 1
    again = edited.edited(remove=["Q9"], findings=(findings := Findings()))
    assert by_name(again) == before and "names that have no vector yet" not in findings.counts


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda x: x[1:], r"names: \[10, width\]"),
        (lambda x: x[:, :0], "shape"),
        (lambda x: x.astype(np.int32), "int32"),
        (lambda x: np.where(x == 3, np.inf, x).astype(x.dtype), "row 1 of the names is NaN"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(kb, vectors, change, message):
    with np.errstate(divide="ignore"), pytest.raises(KnowledgeBaseError, match=message):
        kb.set_name_vectors(change(vectors), "w")
    assert not kb.has_name_vectors
