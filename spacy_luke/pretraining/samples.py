"""Training sequences in an order that depends only on seed and epoch.

Sequences are numbered across all shards. The row groups of the files are shuffled, then the rows of
several groups together. For training this is as good as shuffling all rows, with bounded memory;
with few groups it is the same.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ..errors import CorpusError
from .masking import Sample

Array = np.ndarray
GROUPS_AT_ONCE = 16
_ARRAYS = ("word_ids", "word_starts", "entity_ids", "entity_starts", "entity_ends")


class Samples:
    """The sequences of shards.

    n: their number. Raises CorpusError if there are none.
    """

    def __init__(self, paths: Sequence[Path], groups_at_once: int = GROUPS_AT_ONCE):
        self.groups: list[tuple[Path, int]] = []
        sizes = []
        for path in paths:
            metadata = pq.read_metadata(path)
            for i in range(metadata.num_row_groups):
                self.groups.append((path, i))
                sizes.append(metadata.row_group(i).num_rows)
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n = int(self._starts[-1])
        if not self.n:
            source = paths[0].parent.parent if paths else "The shards"
            raise CorpusError(f"{source}: no training sequences.")
        self._at_once = groups_at_once

    def __len__(self) -> int:
        return self.n

    def epoch(self, seed: int, epoch: int, start: int = 0) -> Iterator[Sample]:
        """The sequences of an epoch in random order, from position ``start`` of that order."""
        order = np.random.default_rng([seed, epoch]).permutation(len(self.groups))
        position = 0
        for block, first in enumerate(range(0, len(order), self._at_once)):
            groups = order[first : first + self._at_once]
            size = int(sum(self._starts[g + 1] - self._starts[g] for g in groups))
            if position + size > start:
                rows = [row for g in groups.tolist() for row in self._read(g, epoch)]
                shuffled = np.random.default_rng([seed, epoch, block]).permutation(size)
                for i in shuffled[max(0, start - position) :].tolist():
                    yield rows[i]
            position += size

    def in_order(self) -> Iterator[Sample]:
        """All sequences in the order of the files."""
        for group in range(len(self.groups)):
            yield from self._read(group)

    def stream(self, seed: int, start: int) -> Iterator[Sample]:
        """An endless stream of epochs, from the sequence number ``start``."""
        epoch, position = divmod(start, self.n)
        while True:
            yield from self.epoch(seed, epoch, position)
            epoch, position = epoch + 1, 0

    def _read(self, group: int, epoch: int = 0) -> list[Sample]:
        path, index = self.groups[group]
        table = pq.ParquetFile(path).read_row_group(index)
        first = int(self._starts[group])
        pieces, words, ids, starts, ends = (
            _arrays(table.column(name).combine_chunks()) for name in _ARRAYS
        )
        anchors = table.column("entity_anchors").to_pylist()
        return [
            Sample(epoch, first + i, pieces[i], words[i], ids[i], starts[i], ends[i], anchors[i])
            for i in range(len(anchors))
        ]


def _arrays(column: Any) -> list[Array]:
    """A list column as one int64 array per row."""
    values = column.values.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = column.offsets.to_numpy()
    return [values[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
