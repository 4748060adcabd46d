"""Where spans of documents are: on word pieces, in windows, and in the batches of network calls.

``docs/architecture.md`` shows the indices that are used here (the caller's rows, pieces, windows
and sequences) with an example.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from spacy.tokens import Doc

from ..model.packing import Entities, Words
from ..vocab.pieces import PieceTokenizer
from .alignment import Pieces, offsets_of, ranges
from .shapes import SPECIAL
from .windows import Layout, Windows, cut_windows

Array = np.ndarray


@dataclass(kw_only=True)
class Batch(Words):
    """The packed words of one network call, and the rows of the spans in them.

    windows: (n_sequences,) the window of each sequence.
    rows: (n,) the caller's row of each span, in sequence order. sequences: (n,).
    starts, ends: (n,) piece range inside the sequence, whose first special piece is 0.
    first, last: (n,) packed rows of the span's first and last piece.
    """

    windows: Array
    rows: Array
    sequences: Array
    starts: Array
    ends: Array
    first: Array
    last: Array

    def take(self, keep: Array) -> "Batch":
        """The same words with some of the spans. keep: a mask or sorted indices."""
        names = ("rows", "sequences", "starts", "ends", "first", "last")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})

    def entities(self, ids: Array | int, labels: Array | None = None, limit: int = 0) -> Entities:
        """The entity inputs of the spans.

        ids: (n,) rows of the entity table, or one row for all. labels: (n,) coarse labels. limit:
        the number of a span's first pieces that its positions use (0: all).
        """
        counts = np.bincount(self.sequences, minlength=len(self.windows))
        ends = np.minimum(self.ends, self.starts + limit) if limit else self.ends
        all_ids = np.broadcast_to(np.asarray(ids, dtype=np.int64), self.rows.shape)
        return Entities(all_ids, self.starts, ends, offsets_of(counts), labels)


@dataclass
class PlacedSpans:
    """Spans of a batch of documents, on its pieces and in its windows.

    spans: (n_spans, 2) token ranges inside documents; of_doc: (n_spans,) the documents, ascending.
    starts, ends: (n_spans,) piece ranges, pieces counted over the batch; an empty range for a span
        that has no pieces, is empty or outside its document.
    owner: (n_spans,) the window that each span belongs to; -1 if the span does not fit.
    """

    docs: Sequence[Doc]
    pieces: Pieces
    tokenizer: PieceTokenizer
    spans: Array
    of_doc: Array
    starts: Array
    ends: Array
    windows: Windows
    owner: Array

    @property
    def fits(self) -> Array:
        """(n_spans,) whether a window contains the whole span, as an entity input requires."""
        return self.owner >= 0

    def n_words(self) -> Array:
        """(n_windows,) the number of words that begin in each window's own part."""
        pieces, windows = self.pieces, self.windows
        # Under the rule "mentions" several tokens may begin at one piece; they count once.
        starts = np.unique(pieces.token_starts[pieces.token_ends > pieces.token_starts])
        low, high = np.searchsorted(starts, (windows.own_starts, windows.own_ends))
        return high - low

    def batches(
        self, max_rows: int | None, max_entities: int = 0, all_windows: bool = True
    ) -> Iterator[Batch]:
        """Pack the windows, in order, into batches of consecutive windows.

        max_rows: most pieces plus entities of a batch (at least one window). None: one batch.
        max_entities: most entities of a sequence (0: no limit). A window with n > limit entities is
            repeated k = ceil(n / limit) times with ceil(n / k) entities each, as published.
        all_windows: also pack windows without spans.
        """
        # Rows by window: owner [1, 0, -1, 1] -> rows [1, 0, 3], counts [1, 2].
        rows = np.argsort(self.owner, kind="stable")[np.count_nonzero(self.owner < 0) :]
        counts = np.bincount(self.owner[rows], minlength=len(self.windows))
        repeats = n_sequences(counts, max_entities)
        if all_windows:
            repeats = np.maximum(repeats, 1)
        sizes = np.maximum(-(-counts // np.maximum(repeats, 1)), 1)
        lengths = self.windows.ends - self.windows.starts + 2
        # Without a limit of entities the cost depends on words alone (with one entity per word):
        # then components with different spans make the same batches, and can share word passes.
        costs = np.maximum(repeats, 1) * lengths + counts if max_entities else 2 * lengths
        offsets = offsets_of(counts)
        for low, high in bounded(costs, max_rows):
            part = slice(low, high)
            if repeats[part].any():
                in_part = rows[offsets[low] : offsets[high]]
                yield self._pack(low, in_part, counts[part], repeats[part], sizes[part])

    def _pack(self, low: int, rows: Array, counts: Array, repeats: Array, sizes: Array) -> Batch:
        """Pack consecutive windows, the first of which is ``low``.

        rows: of their spans, by window. counts: (n_windows,) spans per window. repeats:
        (n_windows,) sequences per window. sizes: (n_windows,) spans per sequence of a window.
        """
        # Two windows with counts [1, 3], the second shown twice (repeats [1, 2], sizes [1, 2]):
        # window [0, 1, 1, 1], rank [0, 0, 1, 2], sequences [0, 1, 1, 2], shown [0, 1, 1].
        window = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(rows)) - (np.cumsum(counts) - counts)[window]
        sequences = (np.cumsum(repeats) - repeats)[window] + rank // sizes[window]
        shown = low + np.repeat(np.arange(len(counts)), repeats)
        ids, offsets, shapes = self._pack_words(shown)
        shift = self.windows.starts[low + window] - 1  # [CLS] is at 0
        starts, ends = self.starts[rows] - shift, self.ends[rows] - shift
        return Batch(
            piece_ids=ids,
            offsets=offsets,
            shapes=shapes,
            windows=shown,
            rows=rows,
            sequences=sequences,
            starts=starts,
            ends=ends,
            first=offsets[sequences] + starts,
            last=offsets[sequences] + ends - 1,
        )

    def _pack_words(self, shown: Array) -> tuple[Array, Array, Array | None]:
        """Ids, offsets and shapes of sequences [CLS] pieces [SEP], one per window in ``shown``."""
        starts, ends = self.windows.starts[shown], self.windows.ends[shown]
        offsets = offsets_of(ends - starts + 2)
        ids = np.empty(int(offsets[-1]), dtype=np.int64)
        ids[offsets[:-1]] = self.tokenizer.cls_id
        ids[offsets[1:] - 1] = self.tokenizer.sep_id
        inner = np.ones(len(ids), dtype=bool)
        inner[offsets[:-1]] = inner[offsets[1:] - 1] = False
        source = ranges(starts, ends)
        ids[inner] = self.pieces.ids[source]
        shapes = None
        if self.pieces.shapes is not None:
            shapes = np.full(len(ids), SPECIAL, dtype=np.int64)
            shapes[inner] = self.pieces.shapes[source]
        return ids, offsets, shapes

    def own_rows(self, batch: Batch) -> Array:
        """The packed rows of the pieces in the own parts of the batch's windows, in order. Over all
        batches (of all windows) these are all pieces, each once."""
        windows = self.windows
        shown, first = np.unique(batch.windows, return_index=True)
        starts = batch.offsets[first] + 1 + windows.own_starts[shown] - windows.starts[shown]
        return ranges(starts, starts + windows.own_ends[shown] - windows.own_starts[shown])


def place_spans(
    docs: Sequence[Doc],
    pieces: Pieces,
    tokenizer: PieceTokenizer,
    spans: Array,
    of_doc: Array,
    *,
    layout: Layout = "document",
    size: int,
    overlap: int,
    max_pieces: int | None = None,
) -> PlacedSpans:
    """Find the pieces and the window of every span.

    spans: (n, 2) token ranges [start, end) inside their documents; of_doc: (n,) ascending.
    size, overlap: of the windows, in pieces.
    max_pieces: if given, longer spans do not fit. Spans with a token without pieces (white space)
        at an end do not fit either: they would get the scores of the span without that token.
    """
    starts, ends = span_pieces(pieces, spans, of_doc)
    fits = ends > starts
    if max_pieces is not None:
        fits &= ends - starts <= max_pieces
        has_pieces = pieces.token_ends > pieces.token_starts
        tokens = pieces.token_offsets[of_doc[fits]][:, None] + spans[fits] - [0, 1]
        fits[fits] = has_pieces[tokens].all(axis=1)
    windows = cut_windows(docs, pieces, layout, size, overlap, starts[fits], ends[fits])
    owner = np.where(fits, windows.of_spans(starts, ends), -1)
    return PlacedSpans(docs, pieces, tokenizer, spans, of_doc, starts, ends, windows, owner)


def span_pieces(pieces: Pieces, spans: Array, of_doc: Array) -> tuple[Array, Array]:
    """Piece ranges of token spans.

    spans: (n, 2) token ranges [start, end) inside their documents; of_doc: (n,). A span that is
    empty, outside its document, or without pieces gets an empty range.
    """
    base = pieces.token_offsets[of_doc]
    n_tokens = pieces.token_offsets[of_doc + 1] - base
    valid = (spans[:, 0] >= 0) & (spans[:, 0] < spans[:, 1]) & (spans[:, 1] <= n_tokens)
    if not len(pieces.token_starts):
        return np.zeros(len(spans), dtype=np.int64), np.zeros(len(spans), dtype=np.int64)
    first = np.where(valid, base + spans[:, 0], 0)
    last = np.where(valid, base + spans[:, 1] - 1, 0)
    starts, ends = pieces.token_starts[first], pieces.token_ends[last]
    return starts, np.where(valid, ends, starts)


def n_sequences(counts: Array, max_entities: int) -> Array:
    """(n_windows,) the number of sequences for a window with ``counts`` entities."""
    return -(-counts // max_entities) if max_entities else np.minimum(counts, 1)


def bounded(costs: Array, most: int | None) -> Iterator[tuple[int, int]]:
    """Consecutive ranges [low, high) of items with a total cost of at most ``most``, or of one item
    that costs more. most None: one range of all items. (costs [3, 4, 9, 2], most 8: [0, 2), [2, 3),
    [3, 4).)"""
    start, total = 0, 0
    for i, cost in enumerate(costs.tolist() if most is not None else ()):
        if total and most is not None and total + cost > most:
            yield start, i
            start, total = i, 0
        total += cost
    if len(costs):
        yield start, len(costs)
