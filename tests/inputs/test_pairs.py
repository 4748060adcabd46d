"""Candidate pairs of entities: what each limit lets through."""

import tracemalloc

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc, Span

from spacy_luke.errors import ConfigError
from spacy_luke.inputs.pairs import build_relation_candidates

NLP = spacy.blank("en")
N_WORDS = 12


def make(spans, sentences=()) -> tuple[Doc, list[list[Span]]]:
    """A document of twelve words. spans: (start, end, label, id) each an entity, or lists of them.
    sentences: the words at which sentences start."""
    starts = [i in sentences for i in range(N_WORDS)] if sentences else None
    doc = Doc(NLP.vocab, words=["w"] * N_WORDS, sent_starts=starts)
    entities = [item if isinstance(item, list) else [item] for item in spans]
    return doc, [
        [Span(doc, a, b, label=label, span_id=name) for a, b, label, name in mentions]
        for mentions in entities
    ]


def pairs(spans, sentences=(), **limits) -> list[list[int]]:
    found = build_relation_candidates(**limits)(*make(spans, sentences))
    assert found.shape == (len(found), 2) and found.dtype.kind == "i"
    return found.tolist()


THREE = [(0, 2, "PER", "h"), (4, 5, "LOC", "t"), (9, 11, "LOC", "")]


def test_without_limits_every_ordered_pair_is_a_candidate():
    assert pairs(THREE) == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_distance": 3},
        {"same_sentence": True},
        {"label_pairs": [["PER", "PER"]]},
        {"head_ids": ["h"], "tail_ids": ["t"]},
    ],
)
def test_of_fewer_than_two_entities_there_are_no_pairs(n, limits):
    assert pairs(THREE[:n], (0, 6), **limits) == []


def test_distance_is_counted_in_the_words_between():
    assert pairs(THREE, max_distance=2) == [[0, 1], [1, 0]]
    assert pairs(THREE, max_distance=1) == []
    assert len(pairs(THREE, max_distance=7)) == 6
    touching = [(0, 2, "X", ""), (2, 3, "X", ""), (1, 4, "X", ""), (5, 6, "X", "")]
    assert pairs(touching, max_distance=0) == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]


def test_sentences_where_they_are_set():
    assert pairs(THREE, (0, 6), same_sentence=True) == [[0, 1], [1, 0]]
    assert pairs(THREE, (0, 3), same_sentence=True) == [[1, 2], [2, 1]]
    assert len(pairs(THREE, same_sentence=True)) == 6  # one sentence, as far as is known


def test_labels_of_head_and_tail():
    assert pairs(THREE, label_pairs=[["PER", "LOC"]]) == [[0, 1], [0, 2]]
    assert pairs(THREE, label_pairs=[["LOC", "PER"], ["LOC", "LOC"]]) == [
        [1, 0],
        [1, 2],
        [2, 0],
        [2, 1],
    ]
    assert pairs(THREE, label_pairs=[["ORG", "LOC"]]) == pairs(THREE, label_pairs=[]) == []


def test_ids_name_the_roles():
    assert pairs(THREE, head_ids=["h"]) == [[0, 1], [0, 2]]
    assert pairs(THREE, tail_ids=["t"]) == [[0, 1], [2, 1]]
    assert pairs(THREE, head_ids=["h"], tail_ids=["t"]) == [[0, 1]]
    assert pairs(THREE, head_ids=["h", "t"], tail_ids=[""]) == [[0, 2], [1, 2]]


def test_ids_of_entities_of_a_document_count_too():
    doc, entities = make(THREE)
    doc.ents = [span for mentions in entities for span in mentions]
    of_doc = [[ent] for ent in doc.ents]
    candidates = build_relation_candidates(head_ids=["h"], tail_ids=["t"])
    assert candidates(doc, of_doc).tolist() == [[0, 1]]


def test_an_entity_is_as_near_as_its_nearest_mention():
    merged = [[(0, 1, "PER", ""), (8, 9, "ORG", "h")], (10, 11, "LOC", "")]
    assert pairs(merged, max_distance=1) == [[0, 1], [1, 0]]
    assert pairs(merged, max_distance=0) == []
    assert pairs(merged, (0, 5), same_sentence=True) == [[0, 1], [1, 0]]
    assert pairs(merged, (0, 9), same_sentence=True) == []
    assert pairs(merged, label_pairs=[["ORG", "LOC"]], head_ids=["h"]) == [[0, 1]]


def test_one_pair_of_mentions_must_be_near_and_in_one_sentence():
    # Touching across a sentence end, and far apart within a sentence.
    merged = [[(0, 1, "X", ""), (5, 6, "X", "")], [(4, 5, "X", ""), (6, 7, "X", "")]]
    assert pairs(merged, (0, 5, 6), max_distance=0, same_sentence=True) == []
    assert pairs(merged, (0, 6), max_distance=0, same_sentence=True) == [[0, 1], [1, 0]]


@st.composite
def questions(draw):
    def mention():
        start = draw(st.integers(0, N_WORDS - 1))
        end = draw(st.integers(start + 1, min(start + 3, N_WORDS)))
        return start, end, draw(st.sampled_from("AB")), draw(st.sampled_from(["", "h", "t"]))

    entities = [
        [mention() for _ in range(draw(st.integers(1, 3)))] for _ in range(draw(st.integers(0, 5)))
    ]
    sentences = draw(st.sampled_from([(), (0,), (0, 4), (0, 3, 7)]))
    names = st.sampled_from("AB")
    limits = {
        "max_distance": draw(st.none() | st.integers(0, 4)),
        "same_sentence": draw(st.booleans()),
        "label_pairs": draw(st.none() | st.lists(st.tuples(names, names).map(list), max_size=3)),
        "head_ids": draw(st.none() | st.just(["h"])),
        "tail_ids": draw(st.none() | st.just(["t"])),
    }
    return entities, sentences, limits


def by_hand(entities, sentences, limits) -> list[list[int]]:
    def near(one, other) -> bool:
        (a, b, *_), (c, d, *_) = one, other
        if limits["max_distance"] is not None and max(c - b, a - d) > limits["max_distance"]:
            return False
        sentence = [sum(start <= at for start in sentences) for at in (a, c)]
        return not limits["same_sentence"] or sentence[0] == sentence[1]

    def allowed(head, tail) -> bool:
        labels = [[x[2], y[2]] for x in head for y in tail]
        return (
            any(near(x, y) for x in head for y in tail)
            and (limits["label_pairs"] is None or any(x in limits["label_pairs"] for x in labels))
            and (limits["head_ids"] is None or any(x[3] == "h" for x in head))
            and (limits["tail_ids"] is None or any(x[3] == "t" for x in tail))
        )

    n = len(entities)
    return [
        [i, j] for i in range(n) for j in range(n) if i != j and allowed(entities[i], entities[j])
    ]


@given(questions())
@settings(deadline=None, max_examples=150)
def test_candidates_are_those_found_by_hand(question):
    entities, sentences, limits = question
    assert pairs(entities, sentences, **limits) == by_hand(entities, sentences, limits)


def test_two_hundred_entities_are_no_trouble():
    doc = Doc(NLP.vocab, words=["w"] * 400, sent_starts=[i % 20 == 0 for i in range(400)])
    entities = [[Span(doc, 2 * i, 2 * i + 1, "X")] for i in range(200)]
    assert len(build_relation_candidates()(doc, entities)) == 200 * 199
    near = build_relation_candidates(max_distance=3, same_sentence=True)(doc, entities)
    assert len(near) == 20 * (2 * 9 + 2 * 8)
    assert (np.abs(near[:, 0] - near[:, 1]) <= 2).all()


@pytest.mark.parametrize(
    "setting",
    [{"max_distance": -1}, {"label_pairs": [["PER"]]}, {"label_pairs": [["A", "B", "C"]]}],
)
def test_limits_that_cannot_work_are_named(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        build_relation_candidates(**setting)


def test_memory_is_that_of_the_pairs():
    """A book has thousands of entities, and a table of all their pairs has millions of cells."""
    n = 5000
    doc = Doc(NLP.vocab, words=["w"] * n)
    entities = [[doc[i : i + 1]] for i in range(n)]
    candidates = build_relation_candidates(max_distance=2, label_pairs=[["", ""]])
    tracemalloc.start()
    found = candidates(doc, entities)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 2 * (3 * n - 6)
    assert peak < 8_000_000 < n * n
