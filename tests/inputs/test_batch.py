"""Windows and spans to packed inputs: every question points at its own pieces."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spacy_luke.inputs.alignment import align
from spacy_luke.inputs.batch import n_sequences, pack, piece_rows, span_pieces
from spacy_luke.inputs.shapes import SPECIAL
from spacy_luke.inputs.windows import cut_windows

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


def ask(docs, tokenizer, layout="document", size=12, overlap=4, width=3):
    """Pieces, windows, owners and piece ranges of all spans up to ``width`` tokens."""
    pieces = align(docs, tokenizer, shapes=True)
    rows = [
        (i, start, end)
        for i, doc in enumerate(docs)
        for start in range(len(doc))
        for end in range(start + 1, min(len(doc), start + width) + 1)
    ]
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
    starts, ends = span_pieces(pieces, table[:, 1:], table[:, 0])
    windows = cut_windows(docs, pieces, layout, size, overlap, starts, ends)
    owner = np.where(ends > starts, windows.of_spans(starts, ends), -1)
    return pieces, windows, owner, starts, ends


@given(texts=texts, limit=st.integers(0, 7), everywhere=st.booleans())
@a_few
def test_questions_point_at_their_pieces(texts, limit, everywhere, nlp, bpe):
    asked = ask([nlp(text) for text in texts], bpe)
    pieces, windows, owner, starts, ends = asked
    batch = pack(*asked, bpe, max_entities=limit, all_windows=everywhere)
    words, questions = batch.words, batch.questions
    assert sorted(questions.rows.tolist()) == np.flatnonzero(owner >= 0).tolist()
    assert (words.piece_ids[questions.first] == pieces.ids[starts[questions.rows]]).all()
    assert (words.piece_ids[questions.last] == pieces.ids[ends[questions.rows] - 1]).all()
    assert (batch.windows[questions.sequences] == owner[questions.rows]).all()
    base = words.offsets[questions.sequences]
    assert (questions.first == base + questions.starts).all()
    assert (questions.last == base + questions.ends - 1).all()
    assert (np.diff(questions.sequences) >= 0).all()
    assert words.n_sequences == questions.n_sequences == len(batch.windows)
    for i, window in enumerate(batch.windows):
        ids = words.piece_ids[words.offsets[i] : words.offsets[i + 1]]
        shown = pieces.ids[windows.starts[window] : windows.ends[window]]
        assert ids.tolist() == [bpe.cls_id, *shown, bpe.sep_id]
        shapes = words.shapes[words.offsets[i] : words.offsets[i + 1]]
        of_window = pieces.shapes[windows.starts[window] : windows.ends[window]]
        assert shapes.tolist() == [SPECIAL, *of_window, SPECIAL]
    packed = range(len(windows)) if everywhere else np.unique(owner[owner >= 0]).tolist()
    assert np.unique(batch.windows).tolist() == list(packed)


@given(texts=texts, limit=st.integers(1, 7))
@a_few
def test_a_window_with_many_questions_is_repeated_as_published(texts, limit, nlp, bpe):
    """n > limit: k = ceil(n / limit) chunks of ceil(n / k), the last possibly smaller."""
    asked = ask([nlp(text) for text in texts], bpe)
    batch = pack(*asked, bpe, max_entities=limit)
    counts = np.bincount(batch.questions.sequences, minlength=batch.words.n_sequences)
    for window in range(len(asked[1])):
        n = int((asked[2] == window).sum())
        sizes = counts[batch.windows == window].tolist()
        k = -(-n // limit)
        size = -(-n // k) if k else 0
        assert len(sizes) == k
        assert sum(sizes) == n
        assert all(s == size for s in sizes[:-1])
        assert not sizes or 0 < sizes[-1] <= size <= limit


@given(texts=texts, limit=st.integers(0, 7), everywhere=st.booleans(), data=st.data())
@a_few
def test_a_batch_packed_in_parts_is_the_batch(texts, limit, everywhere, data, nlp, bpe):
    asked = ask([nlp(text) for text in texts], bpe)
    n = len(asked[1])
    at = data.draw(st.integers(0, n))
    whole = pack(*asked, bpe, max_entities=limit, all_windows=everywhere)
    low, high = (
        pack(*asked, bpe, max_entities=limit, all_windows=everywhere, within=part)
        for part in ((0, at), (at, n))
    )
    for name in ("piece_ids", "shapes"):
        parts = [getattr(part.words, name) for part in (low, high)]
        assert np.concatenate(parts).tolist() == getattr(whole.words, name).tolist()
    for name in ("rows", "starts", "ends"):
        parts = [getattr(part.questions, name) for part in (low, high)]
        assert np.concatenate(parts).tolist() == getattr(whole.questions, name).tolist()
    assert [*low.windows, *high.windows] == whole.windows.tolist()
    assert (low.first_of_window[at:] == -1).all()
    assert (high.first_of_window[:at] == -1).all()


@pytest.mark.parametrize("layout", ["document", "sentence", "context"])
def test_every_piece_has_a_row(layout, nlp, bpe):
    docs = [nlp("Tokyo is the capital of Japan, and so on. " * 5), nlp(""), nlp("x")]
    asked = ask(docs, bpe, layout)
    batch = pack(*asked, bpe, max_entities=2, all_windows=True)
    rows = piece_rows(batch, asked[1], len(asked[0].ids))
    assert batch.words.piece_ids[rows].tolist() == asked[0].ids.tolist()
    assert len(set(rows.tolist())) == len(rows)


def test_nothing_asked_packs_nothing_or_every_window(nlp, bpe):
    docs = [nlp("Tokyo is in Japan."), nlp("")]
    asked = ask(docs, bpe, width=0)
    batch = pack(*asked, bpe)
    assert (batch.words.n_sequences, len(batch.questions)) == (0, 0)
    assert len(batch.questions.entities(np.zeros(0, dtype=np.int64)).offsets) == 1
    assert pack(*asked, bpe, all_windows=True).words.n_sequences == 1
    nothing = ask([nlp("")], bpe)
    assert pack(*nothing, bpe, all_windows=True).words.n_sequences == 0


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
    batch = pack(*ask([doc], bpe, size=60, width=1), bpe)
    ids = np.asarray([7, 8])
    whole = batch.questions.entities(ids)
    cut = batch.questions.entities(ids, max_pieces=2)
    assert (whole.ends - whole.starts).tolist()[0] > 2
    assert (cut.ends - cut.starts).tolist()[0] == 2
    assert cut.starts.tolist() == whole.starts.tolist()
    assert whole.offsets.tolist() == cut.offsets.tolist() == [0, 2]
    one = batch.questions.take(np.asarray([False, True]))
    assert one.rows.tolist() == batch.questions.rows[1:].tolist()


@pytest.mark.parametrize(
    ("count", "limit", "expected"), [(0, 128, 0), (128, 128, 1), (129, 128, 2), (300, 0, 1)]
)
def test_how_often_a_window_is_shown(count, limit, expected):
    assert n_sequences(np.asarray([count]), limit).tolist() == [expected]
