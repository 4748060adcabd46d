"""Names to ids as five flat arrays, which may stay on disk: a vocabulary of a million entities
opens at once and costs the memory of the pages that are looked at."""

import hashlib
import math
import mmap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import VocabError
from ..files import whole_file

Array = np.ndarray
_DTYPES = {
    "text": np.uint8,
    "starts": np.int64,
    "ids": np.int64,
    "hashes": np.uint64,
    "slots": np.int64,
}


class EntityIndex(Mapping[str, int]):
    """An immutable mapping of entity names to ids, iterated in the order of the ids.

    Entries are ordered by id, several names of one id as they were given. arrays: ``text`` (bytes
    of all names, UTF-8), ``starts`` (n + 1,) where each begins, ``ids`` (n,) ascending, ``hashes``
    (n,) ascending, and ``slots`` (n,), the entry that each hash belongs to.

    Our own instead of a database or a trie: spaCy's dependencies have neither, lookups are few (a
    document's entities), and arrays travel in the same files as weights.
    """

    def __init__(self, arrays: Mapping[str, Array], source: str = "the entity vocabulary"):
        for name, dtype in _DTYPES.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise VocabError(f"{source} is damaged: {name} is not what was written.")
        self.arrays = dict(arrays)
        sizes = {name: len(arrays[name]) for name in ("ids", "hashes", "slots")}
        starts = arrays["starts"]
        if len(set(sizes.values())) > 1 or len(starts) != sizes["ids"] + 1:
            raise VocabError(f"{source} is damaged: its arrays differ in length.")
        if int(starts[-1]) != len(arrays["text"]):
            raise VocabError(f"{source} is damaged: its names are cut off.")

    @classmethod
    def build(cls, names: Iterable[tuple[str, int]]) -> "EntityIndex":
        """Raises VocabError for a name that is no text (half of a surrogate pair)."""
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
        hashes, wanted = self.arrays["hashes"], np.uint64(_hash(key))
        at = _find(hashes, wanted)
        while at < len(hashes) and hashes[at] == wanted:
            slot = int(self.arrays["slots"][at])
            if self._key(slot) == key:
                return int(self.arrays["ids"][slot])
            at += 1
        raise KeyError(name)

    def items(self):  # type: ignore[no-untyped-def]  # by entry, without looking every name up
        return zip(self, self.arrays["ids"].tolist())

    def __deepcopy__(self, memo: Any) -> "EntityIndex":
        return EntityIndex(self.arrays)  # nothing changes them

    @property
    def largest(self) -> int:
        return int(self.arrays["ids"][-1]) if len(self) else -1

    def names_of(self, index: int) -> list[str]:
        """All names of an id, as they were given."""
        low, high = np.searchsorted(self.arrays["ids"], [index, index + 1])
        return [self._name(slot) for slot in range(int(low), int(high))]

    def save(self, folder: Path) -> None:
        """Write an array a file. What an open index reads from is never written over."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in self.arrays.items():
            with whole_file(folder / f"{name}.npy") as temporary, temporary.open("wb") as file:
                np.save(file, array)

    @classmethod
    def open(cls, folder: Path) -> "EntityIndex":
        """Map the files into memory. Raises VocabError naming one that is missing or damaged."""
        arrays = {}
        for name in _DTYPES:
            path = folder / f"{name}.npy"
            try:
                mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError, EOFError) as err:
                raise VocabError(f"{path} cannot be read: {err}.") from err
            if hasattr(mmap, "MADV_RANDOM") and mapped.size:
                mapped._mmap.madvise(mmap.MADV_RANDOM)  # else a lookup brings in its neighbours
            arrays[name] = mapped.view(np.ndarray)
        return cls(arrays, str(folder))

    def _key(self, slot: int) -> bytes:
        start, end = self.arrays["starts"][slot : slot + 2].tolist()
        return self.arrays["text"][start:end].tobytes()

    def _name(self, slot: int) -> str:
        return self._key(slot).decode("utf8")


def _find(hashes: Array, wanted: np.uint64) -> int:
    """``np.searchsorted``, looking first where an evenly spread hash must be: a few pages of a
    file instead of twenty all over it."""
    n = len(hashes)
    guess, width = int(wanted) * n >> 64, 4 * math.isqrt(n) + 1
    low, high = max(0, guess - width), min(n, guess + width)
    at = low + int(np.searchsorted(hashes[low:high], wanted))
    if (at == low and low > 0) or (at == high and high < n):
        return int(np.searchsorted(hashes, wanted))
    return at


def _encode(name: str) -> bytes:
    try:
        return name.encode("utf8")
    except UnicodeEncodeError as err:
        raise VocabError(f"The entity name {name!r} is no valid text.") from err


def _hash(key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
