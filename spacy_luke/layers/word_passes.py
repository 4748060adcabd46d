"""Word passes that several components of a pipeline may use, at prediction.

In ``probe`` attention words do not see entities, so components that listen to one encoder, cut a
batch into the same windows and tokenise it by the same rule need its words encoded once. What is
remembered is found again by its content: the packed pieces, and the state of the weights.
"""

from threading import Lock
from typing import Any
from weakref import ref

import torch
from spacy.tokens import Doc

from ..model.encoder import LukeModel, WordPass
from ..model.packing import Words

MOST_ROWS = 8192
"""Pieces that are remembered, over all passes."""


class _Kept:
    """A pass until it is dropped, and the components that have no more use for it. It is dropped
    with the first document of its batch, at the latest."""

    def __init__(self, word_pass: WordPass, user: int, doc: Doc):
        self.word_pass: WordPass | None = word_pass
        self.users = {user}
        self.doc = ref(doc, self._drop)

    def _drop(self, doc: object) -> None:
        # Nothing else: this may run inside any other method, in the same thread.
        self.word_pass = None

    @property
    def n_rows(self) -> int:
        word_pass = self.word_pass
        return 0 if word_pass is None else len(word_pass.states)


class WordPasses:
    """The passes of the batch that is on its way through the components.

    Components take their turns on a batch, which is known by its first document. A pass goes when
    all of them are done with the batch. If one of them is disabled, it goes with the document, or
    when a component that is done begins with another batch. What does not fit is not remembered:
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

    def keep(self, key: tuple, user: int, word_pass: WordPass, doc: Doc) -> None:
        """doc: the first document of the batch."""
        with self._lock:
            for gone in [key for key, kept in self._passes.items() if not kept.n_rows]:
                del self._passes[gone]
            used = sum(kept.n_rows for kept in self._passes.values())
            if used + len(word_pass.states) <= MOST_ROWS:
                self._passes[key] = _Kept(word_pass, user, doc)

    def end(self, user: int, n_users: int, doc: Doc) -> None:
        """A component is done with a batch, whether it used the passes or not; of ``n_users``
        components the last takes them away."""
        with self._lock:
            for key, kept in [item for item in self._passes.items() if item[1].doc() is doc]:
                kept.users.add(user)
                if len(kept.users) >= n_users:
                    del self._passes[key]

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
