"""Candidates and allowed ids survive whatever a document goes through."""

import math
import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_luke.annotations.candidates import (
    clear_candidates,
    get_allowed_ids,
    get_candidates,
    set_allowed_ids,
    set_candidates,
)
from spacy_luke.errors import InputError

CANDIDATES = (("Q90", 0.625), ("NIL", 0.25), ("Q167646", 0.125))


@pytest.fixture
def doc() -> Doc:
    doc = spacy.blank("en")("Paris met Helen in Paris .")
    doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 2, 3, "PER"), Span(doc, 4, 5, "LOC")]
    doc.ents[2]._.candidates = CANDIDATES
    doc.ents[2]._.allowed_ids = ["Q90", "Q167646"]
    doc.ents[1]._.candidates = []
    doc.ents[1]._.allowed_ids = []
    return doc


def test_candidates_are_read_in_the_order_given(doc: Doc) -> None:
    paris, helen, city = doc.ents
    assert city._.candidates == get_candidates(city) == CANDIDATES
    assert helen._.candidates == () and get_candidates(helen) is not None
    assert paris._.candidates is get_candidates(paris) is None  # nobody was asked
    set_candidates(city, (x for x in CANDIDATES[::-1]))
    assert city._.candidates == CANDIDATES[::-1]


def test_allowed_ids_are_ids_or_none(doc: Doc) -> None:
    paris, helen, city = doc.ents
    assert city._.allowed_ids == get_allowed_ids(city) == ("Q90", "Q167646")
    assert helen._.allowed_ids == () and paris._.allowed_ids is None
    set_allowed_ids(city, None)
    assert city._.allowed_ids is None and city._.candidates == CANDIDATES
    set_allowed_ids(city, None)


def test_spans_of_the_same_characters_share_both(doc: Doc) -> None:
    other = Span(doc, 4, 5, "OTHER")
    assert other._.candidates == CANDIDATES and other._.allowed_ids == ("Q90", "Q167646")


def test_candidates_are_cleared_and_allowed_ids_stay(doc: Doc) -> None:
    clear_candidates(doc)
    assert not any(get_candidates(ent) is not None for ent in doc.ents)
    assert [ent._.allowed_ids for ent in doc.ents] == [None, (), ("Q90", "Q167646")]


def test_bytes_pickle_docbin_and_copies_keep_both(doc: Doc) -> None:
    stored = DocBin(docs=[doc], store_user_data=True).to_bytes()
    for other in (
        Doc(doc.vocab).from_bytes(doc.to_bytes()),
        pickle.loads(pickle.dumps(doc)),
        doc.copy(),
        next(DocBin().from_bytes(stored).get_docs(spacy.blank("en").vocab)),
    ):
        assert [ent._.candidates for ent in other.ents] == [None, (), CANDIDATES]
        assert [get_candidates(ent) is not None for ent in other.ents] == [False, True, True]
        assert [x._.allowed_ids for x in other.ents] == [None, (), ("Q90", "Q167646")]


def test_joined_and_cut_documents_carry_both_to_their_new_place(doc: Doc) -> None:
    joined = Doc.from_docs([doc, doc])
    assert [ent._.candidates for ent in joined.ents] == [None, (), CANDIDATES] * 2
    part = doc[3:6].as_doc(copy_user_data=True)
    assert part.ents[0]._.candidates == CANDIDATES
    assert part.ents[0]._.allowed_ids == ("Q90", "Q167646")


def test_numbers_of_numpy_are_stored_as_plain_ones(doc: Doc) -> None:
    city = doc.ents[2]
    city._.candidates = [(np.str_("Q90"), np.float32(0.5)), ("Q1", 1)]
    assert city._.candidates == (("Q90", 0.5), ("Q1", 1.0))
    values = [x for row in city._.candidates for x in row]
    assert [type(x) for x in values] == [str, float, str, float]
    assert Doc(doc.vocab).from_bytes(doc.to_bytes()).ents[2]._.candidates == city._.candidates


@pytest.mark.parametrize(
    "candidates,message",
    [
        ([("", 0.5)], "not a non-empty string"),
        ([(90, 0.5)], "is 90, not a non-empty string"),
        ([("Q1", 0.5), ("Q2", 0.25), ("Q1", 0.25)], "'Q1' twice"),
        ([("Q1", math.nan)], "nan, not a probability"),
        ([("Q1", math.inf)], "inf, not a probability"),
        ([("Q1", "0.5")], "'0.5', not a probability"),
        ([("Q1", None)], "None, not a probability"),
    ],
)
def test_candidates_that_make_no_sense_are_refused(doc: Doc, candidates, message) -> None:
    with pytest.raises(InputError, match=message):
        doc.ents[2]._.candidates = candidates
    assert doc.ents[2]._.candidates == CANDIDATES


@pytest.mark.parametrize(
    "ids,message",
    [
        ("Q90", "is 'Q90'; give a list of ids"),
        (["Q90", "NIL"], 'contains "NIL", which is always allowed'),
        (["Q90", ""], "not a non-empty string"),
        ([90], "is 90, not a non-empty string"),
        (["Q90", "Q90"], "'Q90' twice"),
    ],
)
def test_allowed_ids_that_make_no_sense_are_refused(doc: Doc, ids, message) -> None:
    with pytest.raises(InputError, match=message):
        doc.ents[2]._.allowed_ids = ids
    assert doc.ents[2]._.allowed_ids == ("Q90", "Q167646")
