"""Which texts share many trigrams with another: an inverted index in flat arrays.

A trigram is three consecutive characters of a text with a space added at both ends. It is one
integer of three times 21 bits.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..mapped_array import save_array
from .arrays import Array, create_array
from .text_table import TextTable

CODES, STARTS, ROWS, SIZES = "trigrams.codes", "trigrams.starts", "trigrams.texts", "trigrams.sizes"
_BLOCK = 50_000
_BITS = 21
_MOST = np.iinfo(np.uint16).max


class TrigramIndex:
    """arrays: ``codes`` (m,), the distinct trigrams, ascending; ``starts`` (m + 1,), the range of
    each in ``texts``, which contains the rows of the texts that contain it, ascending; ``sizes``
    (n,), the number of distinct trigrams per text.
    """

    def __init__(self, arrays: Mapping[str, Array]):
        self._codes, self._starts = arrays[CODES], arrays[STARTS]
        self._rows, self._sizes = arrays[ROWS], arrays[SIZES]

    def most_similar(self, text: str, limit: int, budget: int) -> Array:
        """The rows (at most ``limit``) of texts that share the largest part of their trigrams with
        a text (Dice's coefficient; the first rows among equals), ascending.

        budget: number of entries of the index that are read. The rarest trigrams are read first,
            and at least one is read; the others are expected to occur equally often.
        """
        wanted, _ = trigrams([text])
        # One that is not indexed has the slot of the next, which may be wanted itself.
        slots = np.unique(np.searchsorted(self._codes, wanted))
        slots = slots[slots < len(self._codes)]
        slots = slots[np.isin(self._codes[slots], wanted)]
        if not len(slots):
            return np.zeros(0, np.int64)
        lengths = self._starts[slots + 1] - self._starts[slots]
        order = np.argsort(lengths, kind="stable")
        n_read = max(1, int(np.searchsorted(np.cumsum(lengths[order]), budget, side="right")))
        read = slots[order[:n_read]]
        postings = [self._rows[self._starts[i] : self._starts[i + 1]] for i in read]
        rows, shared = np.unique(np.concatenate(postings), return_counts=True)
        return _best(rows, shared / (len(wanted) + self._sizes[rows].astype(np.float64)), limit)


def _best(rows: Array, scores: Array, limit: int) -> Array:
    """The rows of the highest scores; the first rows among those that equal the lowest of them."""
    if len(rows) <= limit:
        return rows
    lowest = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    above = rows[scores > lowest]
    return np.sort(np.concatenate([above, rows[scores == lowest][: limit - len(above)]]))


def trigrams(texts: Sequence[str], first: int = 0) -> tuple[Array, Array]:
    """Distinct (trigram, row) pairs, ascending: codes and rows, of the same length.

    first: row of the first text.
    """
    # A zero separates texts, so that no trigram has characters of two of them.
    joined = "\0 " + " \0 ".join(text.replace("\0", " ") for text in texts) + " \0"
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    separators = points == 0
    codes = points[:-2] << 2 * _BITS | points[1:-1] << _BITS | points[2:]
    rows = np.cumsum(separators)[:-2] - 1 + first
    inside = ~(separators[:-2] | separators[1:-1] | separators[2:])
    codes, rows = codes[inside], rows[inside]
    order = np.argsort(codes, kind="stable")
    codes, rows = codes[order], rows[order]
    new = np.ones(len(codes), bool)
    new[1:] = (codes[1:] != codes[:-1]) | (rows[1:] != rows[:-1])
    return codes[new], rows[new]


def write_trigrams(texts: TextTable, folder: Path) -> None:
    """Write the arrays of a :class:`TrigramIndex`. Two passes over the texts, in blocks: the first
    counts, the second fills the ranges."""
    codes, lengths = _count(texts)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    next_free, n_entries = starts[:-1].copy(), int(starts[-1])
    sizes = np.zeros(len(texts), np.uint16)
    out = create_array(folder / f"{ROWS}.npy", np.int32, (n_entries,))
    for first, found, rows in _blocks(texts):
        distinct, begins, counts = np.unique(found, return_index=True, return_counts=True)
        slots = np.searchsorted(codes, distinct)
        places = np.repeat(next_free[slots] - begins, counts) + np.arange(len(found))
        out[places] = rows
        next_free[slots] += counts
        block = np.bincount(rows - first)
        sizes[first : first + len(block)] = np.minimum(block, _MOST)
    if isinstance(out, np.memmap):
        out.flush()
    for name, array in ((CODES, codes), (STARTS, starts), (SIZES, sizes)):
        save_array(folder / f"{name}.npy", array)


def _count(texts: TextTable) -> tuple[Array, Array]:
    """Distinct trigrams, ascending, and in how many texts each of them is."""
    codes, lengths = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for _, found, _ in _blocks(texts):
        distinct, counts = np.unique(found, return_counts=True)
        merged = np.union1d(codes, distinct)
        total = np.zeros(len(merged), np.int64)
        total[np.searchsorted(merged, codes)] += lengths
        total[np.searchsorted(merged, distinct)] += counts
        codes, lengths = merged, total
    return codes, lengths


def _blocks(texts: TextTable) -> Iterator[tuple[int, Array, Array]]:
    for first in range(0, len(texts), _BLOCK):
        block = [texts[row] for row in range(first, min(first + _BLOCK, len(texts)))]
        yield first, *trigrams(block, first)
