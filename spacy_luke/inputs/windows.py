"""Documents to windows: the stretches of pieces that become sequences.

Three layouts. ``document``: the document in overlapping windows, every piece read about once.
``sentence``: each sentence alone. ``context``: each sentence with document text on both
sides, as published for NER. What is longer than a window is split, whatever the layout.
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
    """Windows of a batch, in document order. All are piece indices into the batch.

    starts, ends: (n_windows,) what a window shows. own_starts, own_ends: (n_windows,) the
    part it answers for; the own parts of a document's windows do not overlap and cover it.
    docs: (n_windows,) the document.
    """

    docs: Array
    starts: Array
    ends: Array
    own_starts: Array
    own_ends: Array

    def __len__(self) -> int:
        return len(self.docs)

    def of_pieces(self, n_pieces: int) -> Array:
        """(n_pieces,) the window that answers for each piece."""
        return np.repeat(np.arange(len(self)), self.own_ends - self.own_starts)[:n_pieces]

    def of_spans(self, starts: Array, ends: Array) -> Array:
        """(n_spans,) the window that answers for each piece range, or -1 if none shows it all.

        It is the window that answers for the middle of the span or, where that one cuts the
        span, the last window that starts early enough; as starts and ends both grow, no other
        window can show the span if that one does not.
        """
        if not len(self):
            return np.full(len(starts), -1, dtype=np.int64)
        middle = (starts + ends - 1) // 2
        owner = np.searchsorted(self.own_starts, middle, side="right") - 1
        latest = np.searchsorted(self.starts, starts, side="right") - 1
        result = np.where(self._shows(owner, starts, ends), owner, latest)
        return np.where(self._shows(result, starts, ends), result, -1)

    def _shows(self, windows: Array, starts: Array, ends: Array) -> Array:
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

    overlap: pieces shared by neighbours where a text is split. span_starts, span_ends:
    (n_spans,) piece ranges that a window should keep whole if they fit one.
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
                cuts = _split(start, end, size, overlap, _token_bounds(pieces, i), *spans)
                rows.extend((i, *window) for window in cuts)
            elif layout == "context":
                shown = extend_with_context(*np.asarray([[start], [end], [low], [high], [size]]))
                rows.append((i, int(shown[0][0]), int(shown[1][0]), start, end))
            else:
                rows.append((i, start, end, start, end))
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 5)
    return Windows(*(np.ascontiguousarray(column) for column in table.T))


def sentence_starts(doc: Doc) -> list[int]:
    """Token indices at which sentences start; one sentence where none are set."""
    if len(doc) and doc.has_annotation("SENT_START"):
        return [sent.start for sent in doc.sents]
    return [0] if len(doc) else []


def _segments(doc: Doc, i: int, pieces: Pieces, layout: Layout) -> Iterator[tuple[int, int]]:
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


def _token_bounds(pieces: Pieces, i: int) -> Array:
    a, b = pieces.token_offsets[i], pieces.token_offsets[i + 1]
    return np.unique(np.append(pieces.token_starts[a:b], pieces.piece_offsets[i + 1]))


def _split(
    start: int,
    end: int,
    size: int,
    overlap: int,
    bounds: Array,
    span_starts: Array,
    span_ends: Array,
) -> list[tuple[int, int, int, int]]:
    """Overlapping windows over [start, end), cut at token bounds, keeping spans whole."""
    shown: list[tuple[int, int]] = []
    at = start
    while True:
        stop = min(at + size, end)
        if stop < end:
            snapped = _at_most(bounds, stop)
            stop = snapped if snapped > at else stop
        shown.append((at, stop))
        if stop >= end:
            break
        following = _at_most(bounds, stop - overlap)
        # The next window must show more than this one: start late enough for the next token.
        least = max(_at_least(bounds, stop + 1) - size, at + 1)
        if following < least:
            following = _at_least(bounds, least)
            if following > stop:  # inside, or just before, a token longer than a window
                following = stop - overlap if stop not in bounds and stop - overlap > at else stop
        # A span this window cuts must be whole in a later one, if it fits a window at all.
        a, b = np.searchsorted(span_starts, (at + 1, stop))
        inside, ends = span_starts[a:b], span_ends[a:b]
        cut = (ends > stop) & (ends - inside <= size)
        if cut.any():
            following = min(following, int(inside[cut.argmax()]))
        at = following
    edges = [start, *((b0 + a1) // 2 for (_, b0), (a1, _) in zip(shown, shown[1:])), end]
    return [(a, b, own, edges[i + 1]) for i, ((a, b), own) in enumerate(zip(shown, edges))]


def _at_most(bounds: Array, position: int) -> int:
    return int(bounds[max(np.searchsorted(bounds, position, side="right") - 1, 0)])


def _at_least(bounds: Array, position: int) -> int:
    """The first bound from a position on, which is not after the last."""
    return int(bounds[np.searchsorted(bounds, position)])


def extend_with_context(
    starts: Array, ends: Array, lows: Array, highs: Array, sizes: Array
) -> tuple[Array, Array]:
    """Extend ranges by text on both sides, as evenly as there is text, to at most ``sizes`` (the
    published NER procedure). All (n,); the text goes from ``lows`` to ``highs``."""
    left, right, room = starts - lows, highs - ends, sizes - (ends - starts)
    half = np.maximum(room, 0) // 2
    shorter = np.minimum(np.minimum(left, right), half)
    longer = np.minimum(np.maximum(left, right), np.maximum(room, 0) - shorter)
    on_left = left < right
    left, right = np.where(on_left, shorter, longer), np.where(on_left, longer, shorter)
    return starts - left, ends + right


def sentence_bounds(docs: Sequence[Doc], pieces: Pieces) -> Array:
    """(n_bounds,) sorted piece indices at which the sentences of a batch start and end."""
    bounds = [pieces.piece_offsets]
    for i, doc in enumerate(docs):
        base = int(pieces.token_offsets[i])
        bounds.append(pieces.token_starts[[base + start for start in sentence_starts(doc)]])
    return np.unique(np.concatenate(bounds))
