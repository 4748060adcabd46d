"""Names to ids as five flat arrays, which may be memory-mapped: a vocabulary of a million entities
opens immediately, and only the pages that are read take memory."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import VocabError
from ..files import whole_file
from ..mapped_array import map_array, save_array
from ..sorted_hashes import search

Array = np.ndarray
_DTYPES = {
    "text": np.uint8,
    "starts": np.int64,
    "ids": np.int64,
    "hashes": np.uint64,
    "slots": np.int64,
}


class EntityIndex(Mapping[str, int]):
    """An immutable mapping of entity names to ids, ordered by id.

    arrays: ``text`` (UTF-8 bytes of all names), ``starts`` (n + 1,) their offsets in ``text``,
    ``ids`` (n,) ascending, ``hashes`` (n,) ascending, and ``slots`` (n,), the entry of each hash.
    Several names of an id keep their given order.

    Example: names "b" (id 0) and "ab" (id 1) with the hashes 9 and 4 have the text "bab", starts
    [0, 1, 3], ids [0, 1], hashes [4, 9] and slots [1, 0].

    Not a database or a trie, because spaCy's dependencies have neither, a document needs few
    lookups, and arrays can be saved in the files of weights.
    """

    def __init__(self, arrays: Mapping[str, Array], source: str = "the entity vocabulary"):
        for name, dtype in _DTYPES.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise VocabError(
                    f"{source} is damaged: {name} is not a flat array of {np.dtype(dtype)}."
                )
        self.arrays = dict(arrays)
        sizes = {name: len(arrays[name]) for name in ("ids", "hashes", "slots")}
        starts = arrays["starts"]
        if len(set(sizes.values())) > 1 or len(starts) != sizes["ids"] + 1:
            raise VocabError(f"{source} is damaged: its arrays differ in length.")
        if int(starts[-1]) != len(arrays["text"]):
            raise VocabError(f"{source} is damaged: its names are truncated.")

    @classmethod
    def build(cls, names: Iterable[tuple[str, int]]) -> "EntityIndex":
        """Raises VocabError for a name that is not valid text (an unpaired surrogate)."""
        entries = sorted(names, key=lambda entry: entry[1])
        keys = [_encode(name) for name, _ in entries]
        hashes = np.fromiter((_hash(key) for key in keys), np.uint64, len(keys))
        slots = np.argsort(hashes, kind="stable")
        return cls(
            {
                "text": np.frombuffer(b"".join(keys), np.uint8),
                "starts": np.cumsum([0, *map(len, keys)], dtype=np.int64),
                "ids": np.fromiter((index for _, index in entries), np.int64, len(keys)),
                "hashes": hashes[slots],
                "slots": slots.astype(np.int64),
            }
        )

    def __len__(self) -> int:
        return len(self.arrays["ids"])

    def __iter__(self) -> Iterator[str]:
        return (self._name(slot) for slot in range(len(self)))

    def __getitem__(self, name: str) -> int:
        try:
            key = _encode(name)
        except VocabError:
            raise KeyError(name) from None
        hashes, target = self.arrays["hashes"], np.uint64(_hash(key))
        i = search(hashes, target)
        while i < len(hashes) and hashes[i] == target:  # names may collide
            slot = int(self.arrays["slots"][i])
            if self._key(slot) == key:
                return int(self.arrays["ids"][slot])
            i += 1
        raise KeyError(name)

    def items(self):  # type: ignore[no-untyped-def]  # without a lookup per name
        return zip(self, self.arrays["ids"].tolist())

    def __deepcopy__(self, memo: Any) -> "EntityIndex":
        return EntityIndex(self.arrays)  # immutable

    @property
    def largest(self) -> int:
        return int(self.arrays["ids"][-1]) if len(self) else -1

    def names_of(self, index: int) -> list[str]:
        """All names of an id, in their given order."""
        low, high = np.searchsorted(self.arrays["ids"], [index, index + 1])
        return [self._name(slot) for slot in range(int(low), int(high))]

    def save(self, folder: Path) -> None:
        """Write one file per array. Files are replaced, so an open index stays valid."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in self.arrays.items():
            with whole_file(folder / f"{name}.npy") as temporary:
                save_array(temporary, array)

    @classmethod
    def open(cls, folder: Path) -> "EntityIndex":
        """Memory-map the files. Raises VocabError, with the file, if one is missing or damaged."""
        arrays = {}
        for name in _DTYPES:
            arrays[name] = map_array(folder / f"{name}.npy", VocabError, scattered=True)
        return cls(arrays, str(folder))

    def _key(self, slot: int) -> bytes:
        start, end = self.arrays["starts"][slot : slot + 2].tolist()
        return self.arrays["text"][start:end].tobytes()

    def _name(self, slot: int) -> str:
        return self._key(slot).decode("utf8")


def _encode(name: str) -> bytes:
    try:
        return name.encode("utf8")
    except UnicodeEncodeError as err:
        raise VocabError(f"The entity name {name!r} is not valid text.") from err


def _hash(key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
