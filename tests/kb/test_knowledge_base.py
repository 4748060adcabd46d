"""spaCy's interface: vectors, candidates, copies, threads and processes."""

import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest
import spacy
from spacy.kb import Candidate, KnowledgeBase
from spacy.vocab import Vocab

from spacy_luke.errors import InputError, KnowledgeBaseError
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.kb.store import Store
from tests.kb.conftest import found

VECTORS = np.arange(24, dtype=np.float32).reshape(6, 4)


def test_it_is_a_knowledge_base_of_spacy(kb):
    doc = spacy.blank("en")("Paris and Munich")
    assert isinstance(kb, KnowledgeBase)
    one, other = kb.get_candidates_batch([doc[:1], doc[2:]])
    assert [x.entity_ for x in kb.get_candidates(doc[:1])] == [x.entity_ for x in one]
    assert isinstance(one[0], Candidate) and other[0].entity_ == "7"
    assert (one[0].alias_, one[0].entity_freq) == ("Paris", 100)
    assert one[0].prior_prob == pytest.approx(0.9 * 0.9 + 9 / 130)
    assert (one[0].name, one[0].type) == ("Paris", "place")
    assert one[0].description == "The capital of France."


def test_candidates_add_no_strings_to_the_vocabulary(kb):
    before = len(kb.vocab.strings)
    for candidate in kb.candidates(["Paris", "Munick"])[0]:
        assert candidate.entity and candidate.alias and candidate.entity_ and candidate.alias_
    assert len(kb.vocab.strings) == before
    assert kb.candidates(["Munich"])[0][0].entity == Vocab().strings.add("7")


def test_vectors_of_unknown_ids_are_zero(kb):
    assert kb.entity_vector_length == 64 and not kb.has_vectors
    assert kb.get_vector("Q1").shape == (64,) and not kb.get_vector("Q1").any()
    kb.set_vectors(VECTORS, "weights")
    assert kb.entity_vector_length == 4
    assert kb.get_vector("Q2").tolist() == [4, 5, 6, 7]
    assert not np.any(kb.get_vectors(["NIL", "unknown", ""]))
    assert kb.candidates(["Munich"])[0][0].entity_vector.tolist() == VECTORS[3].tolist()


def test_without_vectors_similarity_is_an_error(kb):
    with pytest.raises(InputError, match="incl_context"):
        _ = kb.candidates(["Munich"])[0][0].entity_vector


@pytest.mark.parametrize(
    "vectors, message",
    [
        (VECTORS[:5], r"\[5, 4\].*\[6, width\]"),
        (VECTORS[:, :0], "shape"),
        (VECTORS[0], "shape"),
        (VECTORS.astype(np.float64), "float64"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(kb, vectors, message):
    with pytest.raises(KnowledgeBaseError, match=message):
        kb.set_vectors(vectors, "w")
    assert not kb.has_vectors


def test_vectors_are_of_the_weights_that_made_them(kb, tmp_path):
    with pytest.raises(KnowledgeBaseError, match="no vectors"):
        kb.check_vectors("one")
    kb.set_vectors(VECTORS.astype(np.float16), "one")
    kb.to_disk(tmp_path)
    again = MappedKB(Vocab(), 3).from_disk(tmp_path)
    assert again.entity_vector_length == 4 and again.get_vector("8b").dtype == np.float32
    again.check_vectors("one")
    with pytest.raises(KnowledgeBaseError, match="'one'.*'two'"):
        again.check_vectors("two")
    other = MappedKB(Vocab()).from_bytes(again.to_bytes())
    assert other.vectors_hash == "one" and np.array_equal(other.get_vector("8"), VECTORS[4])


def test_an_unknown_id_is_named(kb):
    with pytest.raises(InputError, match="'Q9'"):
        kb.entity("Q9")


@pytest.mark.parametrize("copy", [deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_equal(kb, copy):
    kb.set_vectors(VECTORS, "w")
    again = copy(kb)
    assert found(again, "Paris") == found(kb, "Paris") and again.vectors_hash == "w"
    assert again.vocab is not kb.vocab and again.entity_vector_length == 4


def test_threads_get_the_same_candidates(kb):
    texts = ["Paris", "paris", "Munick", "Parkinsen disease", "nothing"] * 20
    expected = [found(kb, text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: found(kb, text), texts)) == expected


def test_what_is_read_is_released_now_and_then(kb, kb_dir, monkeypatch):
    """Also what is read to open it, and vectors."""
    released = []
    monkeypatch.setattr(Store, "release", lambda store: released.append(store))
    MappedKB.open(kb_dir, Vocab())
    assert len(released) == 1
    kb.set_vectors(VECTORS, "w")
    monkeypatch.setattr("spacy_luke.kb.tables._LOOKUPS", 3)
    (candidate, *_) = kb.candidates(["Paris"])[0]
    assert candidate.entity_vector.any() and len(released) == 1
    kb.get_vector("8")
    assert len(released) == 2


def test_memory_is_released_while_other_threads_read(kb, monkeypatch):
    monkeypatch.setattr("spacy_luke.kb.tables._LOOKUPS", 2)
    texts = ["Paris", "Munick"] * 100
    expected = [found(kb, text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: found(kb, text), texts)) == expected


def _in_process(kb, queue):
    queue.put(found(kb, "Munick"))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_get_the_same_candidates(kb, method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=_in_process, args=(kb, queue))
    process.start()
    assert queue.get(timeout=60) == found(kb, "Munick")
    process.join()
