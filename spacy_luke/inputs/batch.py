"""Windows and spans to packed inputs, and back: which rows answer which span."""

from dataclasses import dataclass

import numpy as np

from ..model.packing import Entities, Words
from ..vocab.pieces import PieceTokenizer
from .alignment import Pieces, ranges
from .shapes import SPECIAL
from .windows import Windows

Array = np.ndarray


@dataclass
class Questions:
    """Spans asked about, in sequence order.

    rows: (n,) the caller's index of each span. sequences: (n,).
    starts, ends: (n,) piece range inside the sequence, the first special piece being 0.
    first, last: (n,) packed rows of the span's first and last piece.
    n_sequences: how many sequences there are.
    """

    rows: Array
    sequences: Array
    starts: Array
    ends: Array
    first: Array
    last: Array
    n_sequences: int

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, keep: Array) -> "Questions":
        """Some of the questions; ``keep`` is a mask or sorted indices."""
        return Questions(
            rows=self.rows[keep],
            sequences=self.sequences[keep],
            starts=self.starts[keep],
            ends=self.ends[keep],
            first=self.first[keep],
            last=self.last[keep],
            n_sequences=self.n_sequences,
        )

    def entities(self, ids: Array, labels: Array | None = None, max_pieces: int = 0) -> Entities:
        """The entity tokens that ask. max_pieces: positions use a span's first pieces (0: all)."""
        counts = np.bincount(self.sequences, minlength=self.n_sequences)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        ends = np.minimum(self.ends, self.starts + max_pieces) if max_pieces else self.ends
        return Entities(ids, self.starts, ends, offsets, labels)


@dataclass
class Batch:
    """Packed words and the questions on them.

    windows: (n_sequences,) the window each sequence shows. first_of_window: (n_windows,) its
    first sequence, or -1 where it was not packed.
    """

    words: Words
    questions: Questions
    windows: Array
    first_of_window: Array


def span_pieces(pieces: Pieces, spans: Array, docs: Array) -> tuple[Array, Array]:
    """Piece ranges of token spans.

    spans: (n, 2) token ranges [start, end) inside their documents; docs: (n,). A span that is
    empty, outside its document, or without pieces gets an empty range.
    """
    base = pieces.token_offsets[docs]
    n_tokens = pieces.token_offsets[docs + 1] - base
    valid = (spans[:, 0] >= 0) & (spans[:, 0] < spans[:, 1]) & (spans[:, 1] <= n_tokens)
    if not len(pieces.token_starts):
        return np.zeros(len(spans), dtype=np.int64), np.zeros(len(spans), dtype=np.int64)
    first = np.where(valid, base + spans[:, 0], 0)
    last = np.where(valid, base + spans[:, 1] - 1, 0)
    starts, ends = pieces.token_starts[first], pieces.token_ends[last]
    return starts, np.where(valid, ends, starts)


def pack(
    pieces: Pieces,
    windows: Windows,
    owner: Array,
    starts: Array,
    ends: Array,
    tokenizer: PieceTokenizer,
    max_entities: int = 0,
    all_windows: bool = False,
    within: tuple[int, int] | None = None,
) -> Batch:
    """Lay out windows and the spans asked about in them.

    owner: (n_spans,) the window of each span (``Windows.of_spans``); -1: not asked about.
    starts, ends: (n_spans,) piece ranges.
    max_entities: most entities a sequence may have (0: no limit). A window with n > limit is
        repeated k = ceil(n / limit) times with ceil(n / k) entities each, as published.
    all_windows: also pack windows in which nothing is asked.
    within: pack windows [low, high) only.
    """
    low, high = within or (0, len(windows))
    rows = np.flatnonzero((owner >= low) & (owner < high))
    rows = rows[np.argsort(owner[rows], kind="stable")]
    owner = owner[rows]
    counts = np.bincount(owner, minlength=len(windows))
    chunks = n_sequences(counts, max_entities)
    sizes = np.maximum(-(-counts // np.maximum(chunks, 1)), 1)
    if all_windows:
        chunks[low:high] = np.maximum(chunks[low:high], 1)
    first_sequence = np.cumsum(chunks) - chunks
    rank = np.arange(len(rows)) - (np.cumsum(counts) - counts)[owner]
    sequences = first_sequence[owner] + rank // sizes[owner]
    shown = np.repeat(np.arange(len(windows)), chunks)
    words = _pack_words(pieces, windows, shown, tokenizer)
    local_starts = starts[rows] - windows.starts[owner] + 1
    local_ends = ends[rows] - windows.starts[owner] + 1
    base = words.offsets[sequences]
    questions = Questions(
        rows,
        sequences,
        local_starts,
        local_ends,
        base + local_starts,
        base + local_ends - 1,
        len(shown),
    )
    return Batch(words, questions, shown, np.where(chunks > 0, first_sequence, -1))


def n_sequences(counts: Array, max_entities: int) -> Array:
    """(n_windows,) how many sequences a window with ``counts`` entities takes."""
    return -(-counts // max_entities) if max_entities else np.minimum(counts, 1)


def piece_rows(batch: Batch, windows: Windows, n_pieces: int) -> Array:
    """(n_pieces,) the packed row that holds each piece's state."""
    owner = windows.of_pieces(n_pieces)
    sequence = batch.first_of_window[owner]
    return batch.words.offsets[sequence] + 1 + np.arange(n_pieces) - windows.starts[owner]


def _pack_words(pieces: Pieces, windows: Windows, shown: Array, tokenizer: PieceTokenizer) -> Words:
    starts, ends = windows.starts[shown], windows.ends[shown]
    offsets = np.concatenate([[0], np.cumsum(ends - starts + 2)]).astype(np.int64)
    ids = np.empty(int(offsets[-1]), dtype=np.int64)
    ids[offsets[:-1]] = tokenizer.cls_id
    ids[offsets[1:] - 1] = tokenizer.sep_id
    inner = np.ones(len(ids), dtype=bool)
    inner[offsets[:-1]] = inner[offsets[1:] - 1] = False
    source = ranges(starts, ends)
    ids[inner] = pieces.ids[source]
    shapes = None
    if pieces.shapes is not None:
        shapes = np.full(len(ids), SPECIAL, dtype=np.int64)
        shapes[inner] = pieces.shapes[source]
    return Words(ids, offsets, shapes)
