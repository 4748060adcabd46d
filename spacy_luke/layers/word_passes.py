"""Word passes that several components of a pipeline may use, at prediction.

In ``probe`` attention words do not see entities, so components that listen to one encoder, cut a
batch into the same windows and tokenise it by the same rule need its words encoded once. What is
remembered is found again by its content: the packed pieces, and the state of the weights.
"""

from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from ..model.encoder import WordPass
from ..model.packing import Words

MOST_ROWS = 8192
"""Pieces that are remembered, over all passes."""


class WordPasses:
    """The passes of the last batches, oldest first."""

    def __init__(self) -> None:
        self._passes: OrderedDict[tuple, tuple[int, WordPass]] = OrderedDict()

    def clear(self) -> None:
        self._passes.clear()

    def find(self, key: tuple) -> WordPass | None:
        found = self._passes.get(key)
        return None if found is None else found[1]

    def keep(self, key: tuple, word_pass: WordPass) -> None:
        n_rows = len(word_pass.states)
        if n_rows > MOST_ROWS:
            return
        self._passes[key] = (n_rows, word_pass)
        while sum(rows for rows, _ in self._passes.values()) > MOST_ROWS:
            self._passes.popitem(last=False)

    def __deepcopy__(self, memo: Any) -> "WordPasses":
        return WordPasses()

    def __reduce__(self) -> Any:
        return WordPasses, ()


def pass_key(words: Words, network: nn.Module) -> tuple:
    """What a word pass depends on: pieces, weights (and whether they were written to), precision."""
    shapes = b"" if words.shapes is None else words.shapes.tobytes()
    weights = tuple((p.data_ptr(), p._version) for p in network.parameters())
    device = next(network.parameters()).device.type
    return (
        words.piece_ids.tobytes(),
        words.offsets.tobytes(),
        shapes,
        weights,
        torch.is_autocast_enabled(device),
    )
