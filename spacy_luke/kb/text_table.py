"""Tables of strings as two flat arrays, and the index that finds the row of a string."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from ..errors import KnowledgeBaseError
from ..sorted_hashes import search
from .arrays import Array, ArrayWriter

TEXT, STARTS, HASHES, ROWS = ".text", ".starts", ".hashes", ".rows"


class TextTable:
    """Rows of text.

    arrays: ``NAME.text`` (UTF-8 bytes of all rows) and ``NAME.starts`` (n + 1,) offsets in it; and,
    if rows are looked up by their text, ``NAME.hashes`` (n,) ascending and ``NAME.rows`` (n,), the
    row of each hash.
    """

    def __init__(self, arrays: Mapping[str, Array], name: str):
        self.name = name
        self._text, self._starts = arrays[name + TEXT], arrays[name + STARTS]
        self._hashes, self._rows = arrays.get(name + HASHES), arrays.get(name + ROWS)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, row: int) -> str:
        try:
            return self.key(row).decode("utf8")
        except UnicodeDecodeError as err:
            raise KnowledgeBaseError(f"{self.name} is damaged: row {row} is not UTF-8.") from err

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))

    def key(self, row: int) -> bytes:
        start, end = self._starts[row : row + 2].tolist()
        return self._text[start:end].tobytes()

    def find(self, text: str) -> int | None:
        """The row of a text; None if there is none."""
        assert self._hashes is not None and self._rows is not None
        try:
            key = text.encode("utf8")
        except UnicodeEncodeError:
            return None  # an unpaired surrogate: not in any table
        target = np.uint64(digest(key)[0])
        i = search(self._hashes, target)
        while i < len(self._hashes) and self._hashes[i] == target:  # hashes may collide
            row = int(self._rows[i])
            if self.key(row) == key:
                return row
            i += 1
        return None


class TextWriter:
    """Writes the arrays of a :class:`TextTable`, row by row. Use it in a ``with`` block."""

    def __init__(self, folder: Path, name: str):
        self._text = ArrayWriter(folder / f"{name}{TEXT}.npy", np.uint8)
        self._starts = ArrayWriter(folder / f"{name}{STARTS}.npy", np.int64)
        self._ends: list[int] = [0]
        self._n = 0

    def __enter__(self) -> "TextWriter":
        with ExitStack() as stack:
            stack.enter_context(self._text)
            stack.enter_context(self._starts)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if exception[0] is None:
                self._flush()
        finally:
            self._stack.__exit__(*exception)  # type: ignore[arg-type]

    def add(self, text: bytes) -> None:
        self._text.add(text)
        self._n += len(text)
        self._ends.append(self._n)
        if len(self._ends) >= 10_000:
            self._flush()

    def _flush(self) -> None:
        self._starts.add(np.array(self._ends, np.int64))
        self._ends = []


def digest(key: bytes) -> tuple[int, int]:
    """A 128-bit hash, in two parts. Texts with equal hashes are equal for all purposes; the first
    part alone may collide."""
    value = hashlib.blake2b(key, digest_size=16).digest()
    return int.from_bytes(value[:8], "little"), int.from_bytes(value[8:], "little")


def hash_index(hashes: Array) -> tuple[Array, Array]:
    """The arrays ``hashes`` and ``rows`` of a table whose rows have these hashes (n,)."""
    rows = np.argsort(hashes, kind="stable")
    return hashes[rows], rows.astype(np.int32)
