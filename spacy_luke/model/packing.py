"""Packed sequences: the inputs and outputs of the network, and the blocks of attention.

Outside attention nothing is padded: the pieces of all sequences are concatenated, and so are their
entities. Inside attention, sequences of similar length share a padded block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

Array = np.ndarray


class Limits(NamedTuple):
    """Limits of a block. waste: largest ratio of padding to real rows. scores: largest number of
    attention scores per head (sequences x rows x keys); a sequence with more gets its own block."""

    waste: float
    scores: int


# On a CPU padding costs time, and scores that do not fit the cache cost more than fewer calls save
# (1.5 to 1.9 times the time of sentences with all their spans, at 4,000,000). On a GPU every block
# costs kernel launches (docs/gpu.md has what was measured).
_LIMITS = {"cpu": Limits(waste=0.15, scores=30_000)}
_LIMITS_ELSEWHERE = Limits(waste=3.0, scores=4_000_000)


@dataclass
class Words:
    """The pieces of all sequences, concatenated.

    piece_ids: (n_pieces,) ids in the piece vocabulary, special pieces included.
    offsets: (n_sequences + 1,) the first piece of each sequence; the last is n_pieces.
    shapes: (n_pieces,) word-shape ids, or None if the network has no shape embedding.
    types: (n_pieces,) token types, or None if all are 0. In a sequence of two texts those of the
        second are 1; networks with one type do not tell the two apart.
    """

    piece_ids: Array
    offsets: Array
    shapes: Array | None = None
    types: Array | None = None

    @property
    def n_sequences(self) -> int:
        return len(self.offsets) - 1


@dataclass
class Entities:
    """The entities of all sequences, concatenated in sequence order.

    ids: (n_entities,) ids in the entity vocabulary.
    starts, ends: (n_entities,) piece range [start, end) inside the entity's own sequence; [CLS] is
        at 0. An empty range has a zero position vector.
    offsets: (n_sequences + 1,) the first entity of each sequence; the last is n_entities.
    labels: (n_entities,) coarse label ids (0: no label), or None.
    """

    ids: Array
    starts: Array
    ends: Array
    offsets: Array
    labels: Array | None = None

    @classmethod
    def none(cls, n_sequences: int) -> "Entities":
        empty = np.zeros(0, dtype=np.int64)
        return cls(empty, empty, empty, np.zeros(n_sequences + 1, dtype=np.int64))

    def part(self, start: int, end: int) -> "Entities":
        """The entities [start, end), in the same sequences."""
        return Entities(
            self.ids[start:end],
            self.starts[start:end],
            self.ends[start:end],
            np.clip(self.offsets, start, end) - start,
            None if self.labels is None else self.labels[start:end],
        )


@dataclass
class LukeInputs:
    """Words and entities of a batch of sequences."""

    words: Words
    entities: Entities


@dataclass
class LukeStates:
    """words: (n_pieces, hidden); entities: (n_entities, hidden); packed like the inputs."""

    words: torch.Tensor
    entities: torch.Tensor


@dataclass
class Block:
    """Consecutive sequences (in plan order) whose attention is computed together.

    ``n_rows`` rows of the packed tensor are arranged as (n_sequences, width). Sequences of 2 and 3
    rows: width 3, scatter [0, 1, 3, 4, 5].
    """

    n_rows: int
    n_sequences: int
    width: int
    scatter: torch.Tensor | None
    """(n_rows,) the place of each row among n_sequences * width; None if nothing is padded."""
    keep: torch.Tensor | None
    """(n_sequences, width) True for real rows, False for padding; None if nothing is padded."""

    def pad(self, rows: torch.Tensor) -> torch.Tensor:
        """(n_rows, ...) -> (n_sequences, width, ...); padding is zero."""
        shape = (self.n_sequences, self.width, *rows.shape[1:])
        if self.scatter is None:
            return rows.reshape(shape)
        padded = rows.new_zeros((self.n_sequences * self.width, *rows.shape[1:]))
        return padded.index_copy(0, self.scatter, rows).reshape(shape)

    def unpad(self, padded: torch.Tensor) -> torch.Tensor:
        """(n_sequences, width, ...) -> (n_rows, ...)."""
        rows = padded.reshape(self.n_sequences * self.width, *padded.shape[2:])
        return rows if self.scatter is None else rows.index_select(0, self.scatter)


def padded(blocks: Sequence[Block], packed: torch.Tensor) -> Iterator[torch.Tensor]:
    """(packed rows, ...) -> per block, in order, (n_sequences, width, ...).

    The rows are split in one operation: the gradient of each single slice would be as large as all
    rows, and there may be as many blocks as sequences.
    """
    parts = packed.split([block.n_rows for block in blocks])
    return (block.pad(rows) for block, rows in zip(blocks, parts))


def _block(lengths: Array, device: torch.device) -> Block:
    n, width, total = len(lengths), int(lengths.max(initial=0)), int(lengths.sum())
    if n * width == total:
        return Block(total, n, width, None, None)
    keep = np.arange(width)[None, :] < lengths[:, None]
    scatter = torch.from_numpy(np.flatnonzero(keep)).to(device)
    return Block(total, n, width, scatter, torch.from_numpy(keep).to(device))


class Plan:
    """The order in which sequences are computed, and their blocks in attention.

    The network sorts sequences by length before its first layer and restores their order after the
    last, so that each block is contiguous and has little padding.

    word_lengths: (n_sequences,) number of pieces. entity_lengths: (n_sequences,) expected number of
    entities, used to balance blocks.
    """

    def __init__(self, word_lengths: Array, entity_lengths: Array, device: torch.device):
        self.device = device
        self.word_lengths = word_lengths
        self.order = np.lexsort((entity_lengths, word_lengths))
        self.groups = _group(
            word_lengths[self.order],
            entity_lengths[self.order],
            _LIMITS.get(device.type, _LIMITS_ELSEWHERE),
        )
        self.word_blocks = self.blocks(word_lengths)

    def blocks(self, lengths: Array) -> list[Block]:
        """The blocks of rows, of which sequence ``i`` has ``lengths[i]``."""
        ordered = lengths[self.order]
        return [_block(ordered[a:b], self.device) for a, b in self.groups]

    def rows(self, offsets: Array) -> Array:
        """Indices that bring packed rows of the caller into plan order. With sequences of 3 and 2
        rows, the shorter first: [3, 4, 0, 1, 2]."""
        lengths = np.diff(offsets)[self.order]
        starts = offsets[:-1][self.order]
        ends = np.cumsum(lengths)
        return np.arange(ends[-1] if len(ends) else 0) + np.repeat(
            starts - (ends - lengths), lengths
        )


def inverse(rows: Array) -> Array:
    """The permutation that undoes ``rows``."""
    result = np.empty_like(rows)
    result[rows] = np.arange(len(rows))
    return result


def _group(words: Array, entities: Array, limits: Limits) -> list[tuple[int, int]]:
    """Split sequences, sorted by length, into consecutive groups [start, end) within the limits."""
    groups: list[tuple[int, int]] = []
    start = total = widest = most = 0
    for i, (n, m) in enumerate(zip(words.tolist(), entities.tolist())):
        size = i - start + 1
        width, entity_width = max(widest, n), max(most, m)
        rows = width + entity_width
        too_empty = size * rows > (total + n + m) * (1 + limits.waste)
        if size > 1 and (too_empty or size * rows * rows > limits.scores):
            groups.append((start, i))
            start, total, width, entity_width = i, 0, n, m
        total, widest, most = total + n + m, width, entity_width
    if len(words):
        groups.append((start, len(words)))
    return groups
