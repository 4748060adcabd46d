"""Spans on pieces, in windows and in batches: every row points at its own pieces."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_luke.inputs.alignment import Pieces, align
from spacy_luke.inputs.placed_spans import PlacedSpans, n_sequences, place_spans, span_pieces
from spacy_luke.inputs.shapes import SPECIAL

a_few = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
texts = st.lists(
    st.lists(st.sampled_from(["Tokyo", "University", "x", "¤¤", "of", "\n"]), max_size=25).map(
        " ".join
    ),
    min_size=1,
    max_size=3,
)


def place(docs, tokenizer, layout="document", size=12, overlap=4, width=3) -> PlacedSpans:
    """All spans of up to ``width`` tokens."""
    pieces = align(docs, tokenizer, shapes=True)
    rows = [
        (i, start, end)
        for i, doc in enumerate(docs)
        for start in range(len(doc))
        for end in range(start + 1, min(len(doc), start + width) + 1)
    ]
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
    return place_spans(
        docs,
        pieces,
        tokenizer,
        table[:, 1:],
        table[:, 0],
        layout=layout,
        size=size,
        overlap=overlap,
    )


def whole(placed: PlacedSpans, limit: int = 0, everywhere: bool = False):
    (batch,) = placed.batches(None, limit, everywhere)
    return batch


@given(texts=texts, limit=st.integers(0, 7), everywhere=st.booleans())
@a_few
def test_rows_point_at_their_pieces(texts, limit, everywhere, nlp, bpe):
    placed = place([nlp(text) for text in texts], bpe)
    pieces, windows, owner = placed.pieces, placed.windows, placed.owner
    for batch in placed.batches(None, limit, everywhere):
        assert sorted(batch.rows.tolist()) == np.flatnonzero(owner >= 0).tolist()
        assert (batch.piece_ids[batch.first] == pieces.ids[placed.starts[batch.rows]]).all()
        assert (batch.piece_ids[batch.last] == pieces.ids[placed.ends[batch.rows] - 1]).all()
        assert (batch.windows[batch.sequences] == owner[batch.rows]).all()
        base = batch.offsets[batch.sequences]
        assert (batch.first == base + batch.starts).all()
        assert (batch.last == base + batch.ends - 1).all()
        assert (np.diff(batch.sequences) >= 0).all()
        assert batch.n_sequences == len(batch.windows)
        for i, window in enumerate(batch.windows):
            ids = batch.piece_ids[batch.offsets[i] : batch.offsets[i + 1]]
            shown = pieces.ids[windows.starts[window] : windows.ends[window]]
            assert ids.tolist() == [bpe.cls_id, *shown, bpe.sep_id]
            shapes = batch.shapes[batch.offsets[i] : batch.offsets[i + 1]]
            of_window = pieces.shapes[windows.starts[window] : windows.ends[window]]
            assert shapes.tolist() == [SPECIAL, *of_window, SPECIAL]
        packed = range(len(windows)) if everywhere else np.unique(owner[owner >= 0]).tolist()
        assert np.unique(batch.windows).tolist() == list(packed)


@given(texts=texts, limit=st.integers(1, 7))
@a_few
def test_a_window_with_many_spans_is_repeated_as_published(texts, limit, nlp, bpe):
    """n > limit: k = ceil(n / limit) chunks of ceil(n / k), the last possibly smaller."""
    placed = place([nlp(text) for text in texts], bpe)
    for batch in placed.batches(None, limit, all_windows=False):
        counts = np.bincount(batch.sequences, minlength=batch.n_sequences)
        for window in range(len(placed.windows)):
            n = int((placed.owner == window).sum())
            sizes = counts[batch.windows == window].tolist()
            k = -(-n // limit)
            size = -(-n // k) if k else 0
            assert len(sizes) == k
            assert sum(sizes) == n
            assert all(s == size for s in sizes[:-1])
            assert not sizes or 0 < sizes[-1] <= size <= limit


@given(texts=texts, limit=st.integers(0, 7), everywhere=st.booleans(), max_rows=st.integers(1, 120))
@a_few
def test_batches_together_are_the_one_batch(texts, limit, everywhere, max_rows, nlp, bpe):
    placed = place([nlp(text) for text in texts], bpe)
    for one in placed.batches(None, limit, everywhere):
        parts = list(placed.batches(max_rows, limit, everywhere))
        for name in ("piece_ids", "shapes", "windows", "rows", "starts", "ends"):
            together = np.concatenate([getattr(part, name) for part in parts])
            assert together.tolist() == getattr(one, name).tolist()
        shown = [set(part.windows.tolist()) for part in parts]
        assert sum(map(len, shown)) == len(set.union(*shown))
        for part, windows in zip(parts, shown):
            n_entities = len(part.rows) if limit else len(part.piece_ids)
            assert len(windows) == 1 or len(part.piece_ids) + n_entities <= max_rows


@pytest.mark.parametrize("max_rows", [None, 20])
@pytest.mark.parametrize("layout", ["document", "sentence", "context"])
def test_every_piece_has_a_row(layout, max_rows, nlp, bpe):
    docs = [nlp("Tokyo is the capital of Japan, and so on. " * 5), nlp(""), nlp("x")]
    placed = place(docs, bpe, layout)
    ids = []
    for batch in placed.batches(max_rows, 2):
        rows = placed.own_rows(batch)
        ids += batch.piece_ids[rows].tolist()
        assert len(set(rows.tolist())) == len(rows)
    assert ids == placed.pieces.ids.tolist()


def test_without_spans_nothing_is_packed_or_every_window(nlp, bpe):
    docs = [nlp("Tokyo is in Japan."), nlp("")]
    placed = place(docs, bpe, width=0)
    assert not list(placed.batches(None, all_windows=False))
    batch = whole(placed, everywhere=True)
    assert (batch.n_sequences, len(batch.rows)) == (1, 0)
    assert batch.entities(0).offsets.tolist() == [0, 0]
    assert not list(place([nlp("")], bpe).batches(None))


@pytest.mark.parametrize("layout", ["document", "sentence", "context"])
def test_every_word_is_counted_in_one_window(layout, nlp, bpe):
    doc = nlp("Tokyo is the capital of Japan, and so on. " * 5)
    placed = place([doc, nlp("")], bpe, layout)
    assert len(placed.windows) > 1
    assert placed.n_words().sum() == len(doc)


def test_spans_over_the_limit_do_not_fit(nlp, wordpiece):
    """Nor does a span with white space at an end, which has no pieces: it would be the same rows
    as the span without."""
    doc = nlp("Tokyo \n Japan")
    spans = np.asarray([[0, 1], [0, 2], [0, 3], [1, 3]])
    of_doc = np.zeros(4, dtype=np.int64)
    pieces = align([doc], wordpiece)

    def fits(max_pieces):
        settings = {"size": 12, "overlap": 4, "max_pieces": max_pieces}
        return place_spans([doc], pieces, wordpiece, spans, of_doc, **settings).fits.tolist()

    assert fits(None) == [True] * 4
    assert fits(12) == [True, False, True, False]
    n_tokyo = int(pieces.token_ends[0])
    assert fits(n_tokyo) == [True, False, False, False]


def test_the_worked_example_of_the_documentation(nlp, bpe):
    docs = [
        Doc(nlp.vocab, words=["Ada", "Lovelace", "met", "Charles", "."]),
        Doc(nlp.vocab, words=["Tokyo", "grew"]),
    ]
    pieces = Pieces(
        ids=np.arange(8) + 100,
        shapes=None,
        token_starts=np.asarray([0, 1, 3, 4, 5, 6, 7]),
        token_ends=np.asarray([1, 3, 4, 5, 6, 7, 8]),
        token_offsets=np.asarray([0, 5, 7]),
        piece_offsets=np.asarray([0, 6, 8]),
        n_cut=np.zeros(2, dtype=np.int64),
    )
    spans, of_doc = np.asarray([[0, 2], [3, 4], [0, 1]]), np.asarray([0, 0, 1])
    placed = place_spans(docs, pieces, bpe, spans, of_doc, size=4, overlap=1)
    windows = placed.windows
    assert (windows.starts.tolist(), windows.ends.tolist()) == ([0, 3, 6], [4, 6, 8])
    assert (windows.own_starts.tolist(), windows.own_ends.tolist()) == ([0, 3, 6], [3, 6, 8])
    assert (placed.starts.tolist(), placed.ends.tolist()) == ([0, 4, 6], [3, 5, 7])
    assert placed.owner.tolist() == [0, 1, 2]
    (batch,) = placed.batches(None)
    assert batch.offsets.tolist() == [0, 6, 11, 15]
    assert batch.rows.tolist() == batch.windows.tolist() == [0, 1, 2]
    assert (batch.first.tolist(), batch.last.tolist()) == ([1, 8, 12], [3, 8, 12])
    assert (batch.starts.tolist(), batch.ends.tolist()) == ([1, 2, 1], [4, 3, 2])
    assert placed.own_rows(batch).tolist() == [1, 2, 3, 7, 8, 9, 12, 13]


class Counted(np.ndarray):
    """An array that counts the elements that operations on it, or made from it, go through."""

    work = 0

    def __array_ufunc__(self, function, method, *inputs, **kwargs):
        plain = [np.asarray(x) if isinstance(x, Counted) else x for x in inputs]
        result = getattr(function, method)(*plain, **kwargs)
        return counted(result, *plain)

    def __array_function__(self, function, types, args, kwargs):
        result = super().__array_function__(function, types, args, kwargs)
        return counted(result, *(x for x in args if isinstance(x, np.ndarray)))

    def __getitem__(self, key):
        # A slice is a view: what goes through it is counted then.
        result = super().__getitem__(key)
        return result if isinstance(key, slice) else counted(result)


def counted(result, *inputs):
    sizes = [x.size for x in (*inputs, result) if isinstance(x, np.ndarray)]
    Counted.work += max(sizes, default=0)
    return result.view(Counted) if isinstance(result, np.ndarray) else result


def test_the_work_of_batches_grows_with_the_text_and_not_with_its_square(nlp, bpe):
    """Sixteen documents are twice the work of eight, in many small batches."""
    words = ["Tokyo", "of", "x"] * 20

    def work(n_docs: int) -> float:
        placed = place([Doc(nlp.vocab, words=words) for _ in range(n_docs)], bpe)
        for part in (placed, placed.windows, placed.pieces):
            for name, value in vars(part).items():
                if isinstance(value, np.ndarray):
                    setattr(part, name, value.view(Counted))
        Counted.work, seen = 0, Counter()
        placed.n_words()
        for batch in placed.batches(max_rows=50):
            seen["batches"] += 1
            batch.entities(2)
            placed.own_rows(batch)
        assert seen["batches"] >= n_docs
        return Counted.work

    assert work(32) < 2.2 * work(16) < 2.2**2 * work(8)


def test_spans_that_cannot_be_shown_have_an_empty_range(nlp, bpe, wordpiece):
    doc = nlp("Tokyo \n Japan")
    spans = np.asarray([[0, 1], [1, 1], [2, 1], [-1, 1], [2, 4], [0, 3]])
    pieces = align([doc], wordpiece)
    starts, ends = span_pieces(pieces, spans, np.zeros(6, dtype=np.int64))
    assert (ends > starts).tolist() == [True, False, False, False, False, True]
    white = np.asarray([[1, 2]])
    starts, ends = span_pieces(pieces, white, np.zeros(1, dtype=np.int64))
    assert starts.tolist() == ends.tolist()
    empty = align([nlp("")], bpe)
    starts, ends = span_pieces(empty, np.asarray([[0, 1]]), np.zeros(1, dtype=np.int64))
    assert (starts.tolist(), ends.tolist()) == ([0], [0])


def test_entities_use_the_first_pieces_of_a_mention(nlp, bpe):
    doc = nlp("¤¤¤¤¤¤ Tokyo")
    batch = whole(place([doc], bpe, size=60, width=1))
    ids = np.asarray([7, 8])
    every = batch.entities(ids)
    cut = batch.entities(ids, limit=2)
    assert (every.ends - every.starts).tolist()[0] > 2
    assert (cut.ends - cut.starts).tolist()[0] == 2
    assert cut.starts.tolist() == every.starts.tolist()
    assert every.offsets.tolist() == cut.offsets.tolist() == [0, 2]
    one = batch.take(np.asarray([False, True]))
    assert one.rows.tolist() == batch.rows[1:].tolist()
    assert one.entities(ids[1:]).offsets.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("count", "limit", "expected"), [(0, 128, 0), (128, 128, 1), (129, 128, 2), (300, 0, 1)]
)
def test_how_often_a_window_is_shown(count, limit, expected):
    assert n_sequences(np.asarray([count]), limit).tolist() == [expected]
