"""Word passes that several components of a pipeline may use, at prediction.

In ``probe`` attention words do not see entities, so components that listen to one encoder, cut a
batch into the same windows and tokenise it by the same rule need its words encoded once. What is
remembered is found again by its content: the packed pieces, and the state of the weights.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Any

import torch

from ..model.encoder import LukeModel, WordPass
from ..model.packing import Words

MOST_ROWS = 8192
"""Pieces that are remembered, over all passes."""


@dataclass
class _Kept:
    word_pass: WordPass
    users: set[int]

    @property
    def n_rows(self) -> int:
        return len(self.word_pass.states)


class WordPasses:
    """The passes of the batch that is on its way through the components.

    Components take their turns on a batch. A pass goes when all of them have used it, and at the
    latest when one that has used it begins with another batch. What does not fit is not remembered:
    pushing out older passes would lose each of them just before the next component asks for it.
    Threads may predict at the same time.
    """

    def __init__(self) -> None:
        self._passes: dict[tuple, _Kept] = {}
        self._lock = Lock()

    def clear(self) -> None:
        with self._lock:
            self._passes.clear()

    def begin(self, user: int) -> None:
        """A component begins with a batch: it has no more use for what it has used."""
        with self._lock:
            for key in [key for key, kept in self._passes.items() if user in kept.users]:
                del self._passes[key]

    def find(self, key: tuple, user: int, n_users: int) -> WordPass | None:
        """A pass, for a component that needs it once; of ``n_users`` components the last takes it
        away."""
        with self._lock:
            kept = self._passes.get(key)
            if kept is None:
                return None
            kept.users.add(user)
            if len(kept.users) >= n_users:
                del self._passes[key]
            return kept.word_pass

    def keep(self, key: tuple, user: int, word_pass: WordPass) -> None:
        with self._lock:
            used = sum(kept.n_rows for kept in self._passes.values())
            if used + len(word_pass.states) <= MOST_ROWS:
                self._passes[key] = _Kept(word_pass, {user})

    def __deepcopy__(self, memo: Any) -> "WordPasses":
        return WordPasses()

    def __reduce__(self) -> Any:
        return WordPasses, ()


def pass_key(words: Words, network: LukeModel) -> tuple:
    """What a word pass depends on: pieces, weights, precision.

    Weights are known by the network's count of changes, which every optimizer step of ours raises,
    and by torch's own versions, which tell what torch changes in place.
    """
    shapes = b"" if words.shapes is None else words.shapes.tobytes()
    weights = tuple((p.data_ptr(), p._version) for p in network.parameters())
    device = next(network.parameters()).device.type
    return (
        words.piece_ids.tobytes(),
        words.offsets.tobytes(),
        shapes,
        network.n_changes,
        weights,
        torch.is_autocast_enabled(device),
    )
