"""Spans and sentence starts as spaCy aligns and sets them one by one."""

import random

import pytest
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_luke.annotations.alignment import aligned_spans, set_sent_starts

WORDS = ["New", "York", "is", "in", "the", " ", "USA", "don't", "-", "a", "long-term", "\n"]


def two_tokenisations(draw: random.Random) -> Example:
    """Of one text: each word may be cut, and two may be joined."""
    vocab = Vocab()
    text = " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 15)))

    def tokens() -> Doc:
        cuts = sorted({0, len(text), *(i for i in range(len(text)) if draw.random() < 0.3)})
        pieces = [text[a:b] for a, b in zip(cuts, cuts[1:])]
        return Doc(vocab, words=pieces, spaces=[False] * len(pieces))

    return Example(tokens(), tokens())


def test_spans_are_those_of_spacy_one_by_one() -> None:
    draw, n_aligned, n_other = random.Random(0), 0, 0
    for _ in range(200):
        eg = two_tokenisations(draw)
        starts = [draw.randrange(len(eg.reference)) for _ in range(4)]
        spans = [Span(eg.reference, i, draw.randint(i + 1, len(eg.reference))) for i in starts]
        for span, found in zip(spans, aligned_spans(eg, spans), strict=True):
            expected = eg.get_aligned_spans_y2x([span], allow_overlap=True)
            assert found == next(((x.start, x.end) for x in expected), None)
            n_aligned, n_other = n_aligned + bool(expected), n_other + (not expected)
    assert n_aligned > 100 and n_other > 100


@pytest.mark.parametrize("values", [[True, False, True], [None, None, None], [True, None, False]])
def test_sentence_starts_are_those_that_tokens_are_given(values: list) -> None:
    vocab = Vocab()
    found, expected = (Doc(vocab, words=["a"] * len(values)) for _ in range(2))
    found.set_ents([Span(found, 0, 1, label="X")])
    set_sent_starts(found, values)
    for token, value in zip(expected, values):
        token.is_sent_start = value
    assert [x.is_sent_start for x in found] == [x.is_sent_start for x in expected]
    assert [x.sent_start for x in found] == [x.sent_start for x in expected]
    assert [ent.label_ for ent in found.ents] == ["X"]


def test_sentence_starts_of_no_tokens() -> None:
    doc = Doc(Vocab())
    set_sent_starts(doc, [])
    assert not len(doc)
