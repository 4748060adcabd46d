"""Windows: every piece is answered for once, spans stay whole, sizes are kept."""

import time

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_luke.inputs.alignment import Pieces
from spacy_luke.inputs.windows import cut_windows, sentence_starts

VOCAB = spacy.blank("en").vocab
LAYOUTS = ["document", "sentence", "context"]
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def make_pieces(lengths_of_docs):
    """Pieces of documents whose tokens have the given numbers of pieces."""
    lengths = np.asarray([n for doc in lengths_of_docs for n in doc], dtype=np.int64)
    ends = np.cumsum(lengths)
    token_offsets = np.cumsum([0, *(len(doc) for doc in lengths_of_docs)]).astype(np.int64)
    piece_offsets = np.cumsum([0, *(sum(doc) for doc in lengths_of_docs)]).astype(np.int64)
    n_cut = np.zeros(len(lengths_of_docs), dtype=np.int64)
    ids = np.arange(int(lengths.sum())) + 10
    return Pieces(ids, None, ends - lengths, ends, token_offsets, piece_offsets, n_cut)


def make_doc(n_tokens, starts):
    flags = [i == 0 or i in starts for i in range(n_tokens)]
    return Doc(VOCAB, words=["w"] * n_tokens, sent_starts=flags if n_tokens else None)


def one_document(lengths, sentences=()):
    return [make_doc(len(lengths), set(sentences))], make_pieces([lengths])


def cut(docs, pieces, layout, size, overlap=0, spans=()):
    starts, ends = np.asarray(spans, dtype=np.int64).reshape(-1, 2).T
    return cut_windows(docs, pieces, layout, size, overlap, starts, ends)


def table(windows):
    return list(zip(windows.starts, windows.ends, windows.own_starts, windows.own_ends))


@st.composite
def batches(draw, longest=4):
    """Documents, their pieces, a window size, an overlap, and token-aligned piece ranges."""
    lengths = draw(st.lists(st.lists(st.integers(0, longest), max_size=30), max_size=2))
    docs = [make_doc(len(doc), draw(st.sets(st.integers(0, 29), max_size=3))) for doc in lengths]
    pieces = make_pieces(lengths)
    size = draw(st.integers(4, 20))
    overlap = draw(st.integers(0, size - 1))
    spans = []
    for i, doc in enumerate(docs):
        base = pieces.token_offsets[i]
        for _ in range(draw(st.integers(0, 6)) if len(doc) else 0):
            a = draw(st.integers(0, len(doc) - 1))
            b = draw(st.integers(a, min(len(doc) - 1, a + 12)))
            start, end = pieces.token_starts[base + a], pieces.token_ends[base + b]
            if start < end:
                spans.append((start, end))
    return docs, pieces, size, overlap, np.asarray(spans, dtype=np.int64).reshape(-1, 2)


@layouts
@given(batch=batches() | batches(longest=40))
@settings(max_examples=80, deadline=None)
def test_own_parts_cover_every_piece_once(layout, batch):
    docs, pieces, size, overlap, spans = batch
    windows = cut(docs, pieces, layout, size, overlap, spans)
    owned = [i for a, b in zip(windows.own_starts, windows.own_ends) for i in range(a, b)]
    assert owned == list(range(len(pieces.ids)))
    assert (windows.starts <= windows.own_starts).all()
    assert (windows.own_ends <= windows.ends).all()
    assert (windows.own_starts < windows.own_ends).all()
    assert (windows.ends - windows.starts <= size).all()
    assert (pieces.piece_offsets[windows.docs] <= windows.starts).all()
    assert (windows.ends <= pieces.piece_offsets[windows.docs + 1]).all()
    owners = np.repeat(np.arange(len(windows)), windows.own_ends - windows.own_starts)
    assert len(owners) == len(pieces.ids)
    assert (windows.own_starts[owners] <= np.arange(len(owners))).all()
    assert (np.arange(len(owners)) < windows.own_ends[owners]).all()


@pytest.mark.parametrize("layout", ["document", "sentence"])
@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_windows_begin_and_end_between_tokens(layout, batch):
    docs, pieces, size, overlap, spans = batch
    windows = cut(docs, pieces, layout, size, overlap, spans)
    bounds = {*pieces.token_starts.tolist(), *pieces.token_ends.tolist()}
    assert {*windows.starts.tolist(), *windows.ends.tolist()} <= bounds


@layouts
@given(batch=batches())
@settings(max_examples=200, deadline=None)
def test_a_span_is_asked_in_a_window_that_shows_it_whole(layout, batch):
    docs, pieces, size, overlap, spans = batch
    windows = cut(docs, pieces, layout, size, overlap, spans)
    owners = windows.of_spans(spans[:, 0], spans[:, 1])
    for (start, end), owner in zip(spans.tolist(), owners.tolist()):
        shows = (windows.starts <= start) & (end <= windows.ends)
        assert (owner >= 0) == shows.any()
        if owner >= 0:
            assert shows[owner]
        if end - start > size:
            assert owner == -1
        elif layout == "document":
            assert owner >= 0


@layouts
@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_a_document_is_cut_as_if_it_were_alone(layout, batch):
    docs, pieces, size, overlap, spans = batch
    together = cut(docs, pieces, layout, size, overlap, spans)
    for i, doc in enumerate(docs):
        a, b = pieces.token_offsets[i : i + 2]
        low, high = pieces.piece_offsets[i : i + 2]
        alone = make_pieces([(pieces.token_ends - pieces.token_starts)[a:b].tolist()])
        own = spans[(spans[:, 0] >= low) & (spans[:, 1] <= high)] - low
        rows = [tuple(x - low for x in row) for row in table(together)]
        expected = [row for row, d in zip(rows, together.docs) if d == i]
        assert table(cut([doc], alone, layout, size, overlap, own)) == expected


def test_a_short_document_is_one_window_and_an_empty_one_is_none():
    docs = [make_doc(3, ()), make_doc(0, ()), make_doc(2, ())]
    pieces = make_pieces([[1, 2, 1], [], [0, 0]])
    windows = cut(docs, pieces, "document", 10)
    assert table(windows) == [(0, 4, 0, 4)]
    assert windows.docs.tolist() == [0]
    none = cut([], make_pieces([]), "document", 10)
    assert len(none) == 0
    assert none.of_spans(np.asarray([0]), np.asarray([1])).tolist() == [-1]


def test_neighbours_overlap_and_share_the_overlap_evenly():
    docs, pieces = one_document([1] * 20)
    windows = cut(docs, pieces, "document", 10, overlap=4)
    assert table(windows) == [(0, 10, 0, 8), (6, 16, 8, 14), (12, 20, 14, 20)]


def test_the_next_window_starts_early_enough_for_a_cut_span():
    docs, pieces = one_document([1] * 20)
    windows = cut(docs, pieces, "document", 10, overlap=2, spans=[(5, 12)])
    assert windows.starts.tolist()[1] == 5
    assert windows.of_spans(np.asarray([5]), np.asarray([12])).tolist() == [1]


def test_a_span_longer_than_a_window_is_asked_nowhere_and_moves_nothing():
    docs, pieces = one_document([1] * 30)
    without = cut(docs, pieces, "document", 10, overlap=2)
    windows = cut(docs, pieces, "document", 10, overlap=2, spans=[(5, 16)])
    assert table(windows) == table(without)
    assert windows.of_spans(np.asarray([5]), np.asarray([16])).tolist() == [-1]


def test_a_token_longer_than_a_window_is_split():
    docs, pieces = one_document([1, 25, 1])
    windows = cut(docs, pieces, "document", 10, overlap=3)
    assert (windows.ends - windows.starts <= 10).all()
    assert windows.own_starts[0] == 0
    assert windows.own_ends[-1] == 27


def test_sentences_stand_alone_in_the_sentence_layout():
    docs, pieces = one_document([1] * 12, sentences=(5, 9))
    windows = cut(docs, pieces, "sentence", 10)
    assert table(windows) == [(0, 5, 0, 5), (5, 9, 5, 9), (9, 12, 9, 12)]
    crossing = windows.of_spans(np.asarray([4, 5]), np.asarray([6, 9]))
    assert crossing.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("sentence", "size", "shown"),
    [
        ((40, 50), 30, (30, 60)),  # text on both sides: half each
        ((5, 15), 30, (0, 30)),  # little on the left: the right gets the rest
        ((90, 97), 30, (70, 100)),  # little on the right
        ((40, 51), 30, (31, 61)),  # an odd room: the side with less text takes the smaller half
        ((60, 71), 30, (50, 80)),
        ((0, 100), 100, (0, 100)),
    ],
)
def test_context_fills_a_window_on_both_sides(sentence, size, shown):
    docs, pieces = one_document([1] * 100, sentences=sentence)
    windows = cut(docs, pieces, "context", size)
    row = windows.own_starts.tolist().index(sentence[0])
    assert (windows.starts[row], windows.ends[row]) == shown
    assert windows.own_ends[row] == sentence[1]


@given(st.integers(1, 60), st.integers(0, 59), st.integers(1, 60), st.integers(1, 40))
@settings(max_examples=200, deadline=None)
def test_context_is_filled_as_published(n, start, length, size):
    """Piece by piece: the side with less text takes at most half of the room."""
    start = min(start, n - 1)
    end = min(start + length, n)
    if end - start > size:
        return
    docs, pieces = one_document([1] * n, sentences=(start, end))
    windows = cut(docs, pieces, "context", size)
    row = windows.own_starts.tolist().index(start)
    room, left, right = size - (end - start), start, n - end
    half = room // 2
    if left < right:
        left = min(left, half)
        right = min(right, room - left)
    else:
        right = min(right, half)
        left = min(left, room - right)
    assert (windows.starts[row], windows.ends[row]) == (start - left, end + right)


def test_a_span_across_sentences_is_asked_where_context_shows_it():
    docs, pieces = one_document([1] * 40, sentences=(20,))
    windows = cut(docs, pieces, "context", 30)
    starts, ends = np.asarray([18, 2, 1]), np.asarray([23, 25, 39])
    owners = windows.of_spans(starts, ends)
    assert (owners >= 0).tolist() == [True, True, False]


def test_sentence_starts_are_read_where_they_are_set():
    assert sentence_starts(make_doc(4, {2})) == [0, 2]
    assert sentence_starts(Doc(VOCAB, words=["a", "b"])) == [0]
    assert sentence_starts(make_doc(0, ())) == []


@layouts
def test_twenty_thousand_words_are_cut_at_once(layout):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 4, 20_000)
    docs, pieces = one_document(lengths.tolist(), sentences=range(0, 20_000, 25))
    first = np.repeat(np.arange(19_984), 16)
    last = first + np.tile(np.arange(16), 19_984)
    starts, ends = pieces.token_starts[first], pieces.token_ends[last]
    before = time.perf_counter()
    windows = cut_windows(docs, pieces, layout, 510, 128, starts, ends)
    owners = windows.of_spans(starts, ends)
    assert time.perf_counter() - before < 5
    if layout == "document":
        assert (owners >= 0).all()
