"""Documents to windows: the ranges of pieces that become sequences.

There are three layouts. ``document``: the document in overlapping windows. ``sentence``: each
sentence alone. ``context``: each sentence with document text on both sides, as published for NER.
In all layouts, text longer than a window is split.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from spacy.tokens import Doc

from .alignment import Pieces

Array = np.ndarray
Layout = Literal["document", "sentence", "context"]


@dataclass
class Windows:
    """Windows of a batch, in document order. Pieces are counted over the batch.

    docs: (n_windows,) the document.
    starts, ends: (n_windows,) the pieces of a window.
    own_starts, own_ends: (n_windows,) a window's own part: of several windows that contain a piece,
        exactly one has it in its own part. Own parts do not overlap and cover all pieces.
    """

    docs: Array
    starts: Array
    ends: Array
    own_starts: Array
    own_ends: Array

    def __len__(self) -> int:
        return len(self.docs)

    def of_spans(self, starts: Array, ends: Array) -> Array:
        """(n_spans,) the window that each piece range belongs to, or -1 if none contains all of it.

        This is the window whose own part has the middle of the range. If that window does not
        contain the whole range, it is the last window that starts before it: starts and ends are
        ascending, so if that one does not contain the range, no window does.
        """
        if not len(self):
            return np.full(len(starts), -1, dtype=np.int64)
        middle = (starts + ends - 1) // 2
        owner = np.searchsorted(self.own_starts, middle, side="right") - 1
        latest = np.searchsorted(self.starts, starts, side="right") - 1
        result = np.where(self._contains(owner, starts, ends), owner, latest)
        return np.where(self._contains(result, starts, ends), result, -1)

    def _contains(self, windows: Array, starts: Array, ends: Array) -> Array:
        w = np.maximum(windows, 0)
        return (windows >= 0) & (self.starts[w] <= starts) & (ends <= self.ends[w])


def cut_windows(
    docs: Sequence[Doc],
    pieces: Pieces,
    layout: Layout,
    size: int,
    overlap: int,
    span_starts: Array,
    span_ends: Array,
) -> Windows:
    """Cut documents into windows of at most ``size`` pieces.

    overlap: number of pieces that consecutive windows of a split text share. span_starts,
    span_ends: (n_spans,) piece ranges that a window should contain whole if possible.
    """
    order = np.argsort(span_starts, kind="stable")
    span_starts, span_ends = span_starts[order], span_ends[order]
    rows: list[tuple[int, int, int, int, int]] = []
    for i, doc in enumerate(docs):
        low, high = int(pieces.piece_offsets[i]), int(pieces.piece_offsets[i + 1])
        for start, end in _segments(doc, i, pieces, layout):
            if end - start > size:
                a, b = np.searchsorted(span_starts, (start, end))
                spans = (span_starts[a:b], span_ends[a:b])
                parts = split_text(start, end, size, overlap, token_bounds(pieces, i), *spans)
                rows.extend((i, *part) for part in parts)
            elif layout == "context":
                window = extend_with_context(*np.asarray([[start], [end], [low], [high], [size]]))
                rows.append((i, int(window[0][0]), int(window[1][0]), start, end))
            else:
                rows.append((i, start, end, start, end))
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 5)
    return Windows(*(np.ascontiguousarray(column) for column in table.T))


def sentence_starts(doc: Doc) -> list[int]:
    """Token indices at which sentences start; a document without any is one sentence."""
    if len(doc) and doc.has_annotation("SENT_START"):
        return [sent.start for sent in doc.sents]
    return [0] if len(doc) else []


def _segments(doc: Doc, i: int, pieces: Pieces, layout: Layout) -> Iterator[tuple[int, int]]:
    """Piece ranges of the i-th document, or of its sentences, that become windows."""
    low, high = int(pieces.piece_offsets[i]), int(pieces.piece_offsets[i + 1])
    if low == high:
        return
    bounds = [low]
    if layout != "document":
        base = int(pieces.token_offsets[i])
        bounds += [int(pieces.token_starts[base + s]) for s in sentence_starts(doc)[1:]]
    for start, end in zip(bounds, [*bounds[1:], high]):
        if end > start:
            yield start, end


def token_bounds(pieces: Pieces, i: int) -> Array:
    """Sorted piece indices at which tokens of the i-th document start, and its end."""
    a, b = pieces.token_offsets[i], pieces.token_offsets[i + 1]
    return np.unique(np.append(pieces.token_starts[a:b], pieces.piece_offsets[i + 1]))


def split_text(
    start: int,
    end: int,
    size: int,
    overlap: int,
    bounds: Array,
    span_starts: Array,
    span_ends: Array,
) -> list[tuple[int, int, int, int]]:
    """(start, end, own start, own end) of overlapping windows, cut at token bounds if possible. Own
    parts meet in the middle of an overlap: windows [0, 8), [6, 12), own parts [0, 7), [7, 12)."""
    windows: list[tuple[int, int]] = []
    low = start
    while True:
        high = min(low + size, end)
        if high < end:
            token_bound = _at_most(bounds, high)
            high = token_bound if token_bound > low else high
        windows.append((low, high))
        if high >= end:
            break
        next_low = _at_most(bounds, high - overlap)
        # The next window must reach further than this one: it must include the next token.
        least = max(_at_least(bounds, high + 1) - size, low + 1)
        if next_low < least:
            next_low = _at_least(bounds, least)
            if next_low > high:  # inside, or just before, a token longer than a window
                within = high not in bounds and high - overlap > low
                next_low = high - overlap if within else high
        # A span that this window cuts must be whole in a later one.
        a, b = np.searchsorted(span_starts, (low + 1, high))
        starts, ends = span_starts[a:b], span_ends[a:b]
        is_cut = (ends > high) & (ends - starts <= size)
        if is_cut.any():
            next_low = min(next_low, int(starts[is_cut.argmax()]))
        low = next_low
    meet = [(high + next_low) // 2 for (_, high), (next_low, _) in zip(windows, windows[1:])]
    edges = [start, *meet, end]
    return [(*window, *own) for window, own in zip(windows, zip(edges, edges[1:]))]


def _at_most(bounds: Array, position: int) -> int:
    """The last bound that is not after a position, or the first bound."""
    return int(bounds[max(np.searchsorted(bounds, position, side="right") - 1, 0)])


def _at_least(bounds: Array, position: int) -> int:
    """The first bound that is not before a position. There must be one."""
    return int(bounds[np.searchsorted(bounds, position)])


def extend_with_context(
    starts: Array, ends: Array, lows: Array, highs: Array, sizes: Array
) -> tuple[Array, Array]:
    """Extend ranges on both sides, as evenly as there is text, to at most ``sizes`` pieces (the
    published NER procedure). All (n,); the text is [lows, highs).

    The range [1, 3) of a text [0, 9) and the size 6: 1 piece on the left, 3 on the right, [0, 6).
    """
    left, right = starts - lows, highs - ends
    room = np.maximum(sizes - (ends - starts), 0)
    shorter = np.minimum(np.minimum(left, right), room // 2)
    longer = np.minimum(np.maximum(left, right), room - shorter)
    left_is_shorter = left < right
    n_left = np.where(left_is_shorter, shorter, longer)
    n_right = np.where(left_is_shorter, longer, shorter)
    return starts - n_left, ends + n_right


def sentence_bounds(docs: Sequence[Doc], pieces: Pieces) -> Array:
    """(n_bounds,) sorted piece indices at which the sentences of a batch start and end."""
    bounds = [pieces.piece_offsets]
    for i, doc in enumerate(docs):
        base = int(pieces.token_offsets[i])
        bounds.append(pieces.token_starts[[base + start for start in sentence_starts(doc)]])
    return np.unique(np.concatenate(bounds))
