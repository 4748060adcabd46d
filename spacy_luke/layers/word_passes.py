"""A cache of word passes that several components of a pipeline share at prediction.

In ``probe`` attention words do not see entities. So components that listen to one encoder, cut a
batch into the same windows and tokenise it with the same rule need its words encoded only once. The
key of a pass is its content: the packed pieces, and the state of the weights.
"""

from typing import Any
from weakref import ref

import torch
from spacy.tokens import Doc

from ..forked_locks import ForkedLock
from ..model.network import LukeModel, WordPass
from ..model.packing import Words

MAX_ROWS = 8192
"""Most pieces that are cached, over all passes."""


class _Entry:
    """A cached pass, and the components that do not need it any more. It is dropped with the first
    document of its batch, at the latest."""

    def __init__(self, word_pass: WordPass, user: int, doc: Doc):
        self.users = {user}
        # The callback must not acquire the lock: it may run inside any other method, in the same
        # thread. It refers to a list and not to this object, which is therefore freed without the
        # garbage collector.
        self._held = held = [word_pass]
        self.doc = ref(doc, lambda _: held.clear())

    @property
    def word_pass(self) -> WordPass | None:
        return next(iter(self._held), None)

    @property
    def n_rows(self) -> int:
        word_pass = self.word_pass
        return 0 if word_pass is None else len(word_pass.states)


class WordPasses:
    """The word passes of the batch that is processed by one component after the other.

    A batch is identified by its first document. Its passes are removed when all components are done
    with it. If one of them is disabled, they are removed with the document, or when a component
    that is done begins another batch. If the cache is full, new passes are not cached: replacing
    older passes would remove each of them shortly before the next component needs it. Several
    threads may use the cache.
    """

    def __init__(self) -> None:
        self._passes: dict[tuple, _Entry] = {}
        self._lock = ForkedLock()

    def clear(self) -> None:
        with self._lock:
            self._passes.clear()

    def begin(self, user: int) -> None:
        """A component begins a batch: remove the passes that it has used."""
        with self._lock:
            for key in [key for key, entry in self._passes.items() if user in entry.users]:
                del self._passes[key]

    def find(self, key: tuple, user: int, n_users: int) -> WordPass | None:
        """The cached pass, or None. It is removed when ``n_users`` components have used it."""
        with self._lock:
            entry = self._passes.get(key)
            if entry is None:
                return None
            entry.users.add(user)
            if len(entry.users) >= n_users:
                del self._passes[key]
            return entry.word_pass

    def keep(self, key: tuple, user: int, word_pass: WordPass, doc: Doc) -> None:
        """Cache a pass, if there is room. doc: the first document of the batch."""
        with self._lock:
            for dropped in [key for key, entry in self._passes.items() if not entry.n_rows]:
                del self._passes[dropped]
            n_rows = sum(entry.n_rows for entry in self._passes.values())
            if n_rows + len(word_pass.states) <= MAX_ROWS:
                self._passes[key] = _Entry(word_pass, user, doc)

    def end(self, user: int, n_users: int, doc: Doc) -> None:
        """A component is done with a batch, whether it used the passes or not. They are removed
        when ``n_users`` components are done."""
        with self._lock:
            for key, entry in [item for item in self._passes.items() if item[1].doc() is doc]:
                entry.users.add(user)
                if len(entry.users) >= n_users:
                    del self._passes[key]

    def __deepcopy__(self, memo: Any) -> "WordPasses":
        return WordPasses()

    def __reduce__(self) -> Any:
        return WordPasses, ()


def pass_key(words: Words, network: LukeModel) -> tuple:
    """A key of everything that a word pass depends on: pieces, weights, precision."""
    shapes = b"" if words.shapes is None else words.shapes.tobytes()
    types = b"" if words.types is None else words.types.tobytes()
    device = next(network.parameters()).device.type
    return (
        words.piece_ids.tobytes(),
        words.offsets.tobytes(),
        shapes,
        types,
        weights_state(network),
        torch.is_autocast_enabled(device),
    )


def weights_state(network: LukeModel) -> tuple:
    """Equal as long as the weights are not changed: the network's count of changes, which our
    optimizer steps increase, and torch's version counters, which count its changes in place."""
    return network.n_changes, *((p.data_ptr(), p._version) for p in network.parameters())
