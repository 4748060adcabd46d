"""One sequence a question, its spans between markers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_luke.inputs.alignment import align
from spacy_luke.inputs.marked import Markers, context_windows, marker_ids, pack_marked
from spacy_luke.inputs.placed_spans import span_pieces

OPEN = [np.zeros(0, dtype=np.int64), np.asarray([901, 902])]


class FakeTokenizer:
    cls_id, sep_id, unk_id = 1000, 1001, 1002


class FakePieces:
    shapes = None
    ids = np.arange(40)


def by_hand(spans, kinds, low, high):
    """The sequence and its spans' ranges, piece by piece."""
    result, starts, ends = [1000], {}, {}
    for at in range(low, high + 1):
        closing = [j for j, (a, b) in enumerate(spans) if b == at]
        for j in sorted(closing, key=lambda j: (-spans[j][0], -j)):
            result.append(2000 + j)
            ends[j] = len(result)
        opening = [j for j, (a, b) in enumerate(spans) if a == at]
        for j in sorted(opening, key=lambda j: (-spans[j][1], j)):
            starts[j] = len(result)
            result += [2000 + j, *OPEN[kinds[j]].tolist()]
        if at < high:
            result.append(at)
    n = len(spans)
    return [*result, 1001], [starts[j] for j in range(n)], [ends[j] for j in range(n)]


@st.composite
def questions(draw):
    m = draw(st.integers(1, 2))
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        low = draw(st.integers(0, 20))
        high = draw(st.integers(low + 1, low + 12))
        spans = []
        for _ in range(m):
            a = draw(st.integers(low, high - 1))
            spans.append((a, draw(st.integers(a + 1, high))))
        rows.append((spans, [draw(st.integers(0, 1)) for _ in range(m)], low, high))
    return rows


@given(questions())
@settings(deadline=None, max_examples=200)
def test_markers_stand_around_spans_however_they_lie(rows):
    table = np.asarray([spans for spans, *_ in rows])
    marked = pack_marked(
        FakePieces(),
        FakeTokenizer(),
        table[..., 0],
        table[..., 1],
        np.asarray([row[2] for row in rows]),
        np.asarray([row[3] for row in rows]),
        Markers(np.asarray([2000, 2001]), OPEN),
        np.asarray([row[1] for row in rows]),
    )
    for i, row in enumerate(rows):
        ids, starts, ends = by_hand(*row)
        a, b = marked.words.offsets[i : i + 2]
        assert marked.words.piece_ids[a:b].tolist() == ids
        assert marked.starts[i].tolist() == starts and marked.ends[i].tolist() == ends


def test_shapes_of_markers_are_those_of_special_pieces(wordpiece, nlp):
    doc = Doc(nlp.vocab, words=["Ada", "was", "Born"])
    pieces = align([doc], wordpiece, shapes=True)
    start, end = (x[:1] for x in span_pieces(pieces, np.asarray([[1, 2]]), np.zeros(1, dtype=int)))
    marked = pack_marked(
        pieces,
        wordpiece,
        start[:, None],
        end[:, None],
        pieces.piece_offsets[:1],
        pieces.piece_offsets[1:],
        Markers(marker_ids(wordpiece), [np.zeros(0, dtype=np.int64)]),
        np.zeros((1, 1), dtype=int),
    )
    n = marked.words.offsets[-1]
    special = np.isin(np.arange(n), [0, marked.starts[0, 0], marked.ends[0, 0] - 1, n - 1])
    assert len(set(marked.words.shapes[special].tolist())) == 1
    assert marked.words.shapes[~special].tolist() == pieces.shapes.tolist()


def test_markers_are_the_published_ones_or_what_those_were_made_from(bpe, wordpiece):
    assert marker_ids(bpe).tolist() == [bpe.id_of("<ent>"), bpe.id_of("<ent2>")]
    plain = [wordpiece.id_of("@"), wordpiece.id_of("#")]
    expected = [wordpiece.unk_id if x is None else x for x in plain]
    assert marker_ids(wordpiece).tolist() == expected


@pytest.mark.parametrize(
    "view,size,shown",
    [
        ("document", 100, (0, 30)),
        ("document", 10, (9, 19)),
        ("sentence", 100, (10, 20)),
        ("sentence", 6, (11, 17)),
    ],
)
def test_a_question_shows_text_around_its_spans(wordpiece, make_doc, view, size, shown):
    docs = [make_doc(5), make_doc(30, starts=(0, 10, 20))]
    pieces = align(docs, wordpiece)
    assert len(pieces.ids) == 35
    low, high, of_doc = np.asarray([17]), np.asarray([21]), np.asarray([1])
    starts, ends = context_windows(docs, pieces, of_doc, low, high, np.asarray([size]), view)
    assert (starts[0] - 5, ends[0] - 5) == shown


def test_a_question_over_two_sentences_shows_both(wordpiece, make_doc):
    docs = [make_doc(30, starts=(0, 10, 20))]
    pieces = align(docs, wordpiece)
    one = np.asarray
    found = context_windows(docs, pieces, one([0]), one([8]), one([12]), one([100]), "sentence")
    assert (found[0][0], found[1][0]) == (0, 20)
