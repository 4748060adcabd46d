"""Arrays in ``.npy`` files: written piece by piece, hashed, and released where they are mapped."""

import hashlib
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..errors import KnowledgeBaseError
from ..mapped_array import save_array

Array = np.ndarray
_BUFFER = 1 << 20
_SAMPLE = 4096
"""Bytes."""


class ArrayWriter:
    """Writes a flat array of unknown length. Use it in a ``with`` block."""

    def __init__(self, path: Path, dtype: type):
        self.dtype, self.n = np.dtype(dtype), 0
        self._path, self._buffer = path, bytearray()

    def __enter__(self) -> "ArrayWriter":
        self._file = self._path.open("wb")
        self._write_header(self._file)
        self._start = self._file.tell()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._file:
            if exception[0] is None:
                self._flush()
                self._file.seek(0)
                self._write_header(self._file)
                assert self._file.tell() == self._start  # NumPy reserves space for any length

    def add(self, values: bytes | Array) -> None:
        """Append values, or the bytes of values."""
        content = values if isinstance(values, bytes) else values.astype(self.dtype).tobytes()
        self._buffer += content
        self.n += len(content) // self.dtype.itemsize
        if len(self._buffer) > _BUFFER:
            self._flush()

    def _flush(self) -> None:
        self._file.write(self._buffer)
        self._buffer.clear()

    def _write_header(self, file: BinaryIO) -> None:
        description = np.lib.format.dtype_to_descr(self.dtype)
        header = {"descr": description, "fortran_order": False, "shape": (self.n,)}
        np.lib.format.write_array_header_1_0(file, header)


def create_array(path: Path, dtype: type, shape: tuple[int, ...]) -> Array:
    """A new file of zeros, mapped to be written. Raises OSError if the disk has no space for it."""
    if 0 in shape:
        save_array(path, np.zeros(shape, dtype))
        return np.zeros(shape, dtype)
    mapped = np.lib.format.open_memmap(path, "w+", dtype, shape)
    if hasattr(os, "posix_fallocate"):
        # Without space, writing to a mapped page would end the process (SIGBUS).
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
    return mapped


def hash_array(array: Array) -> str:
    """The SHA-256 of the file of an array, in hexadecimal, without writing it."""
    writer = _HashWriter()
    np.save(writer, array)  # type: ignore[arg-type]
    return writer.hash.hexdigest()


def hash_sample(array: Array) -> str:
    """A hash of all of a small array, or of the beginning, middle and end of a large one. It tells
    arrays of two knowledge bases apart, without reading them."""
    content = array.reshape(-1).view(np.uint8)
    if len(content) > 3 * _SAMPLE:
        middle = content[len(content) // 2 :]
        content = np.concatenate([content[:_SAMPLE], middle[:_SAMPLE], content[-_SAMPLE:]])
    return hashlib.blake2b(content.tobytes(), digest_size=16).hexdigest()


class _HashWriter:
    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return len(data)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise KnowledgeBaseError, with the folder, if files of the block cannot be written."""
    try:
        yield
    except OSError as err:
        raise KnowledgeBaseError(f"{folder} cannot be written: {err}.") from err


def release(array: Array) -> None:
    """Let the system take back the memory of a mapped array; it is read again when it is needed.

    A page that is read makes its neighbours resident, so that scattered lookups would gradually
    make whole files resident. Other threads may be reading.
    """
    owner = getattr(array.base, "_mmap", array.base)
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)


def identity(path: Path) -> tuple[int, ...]:
    """Tells whether a path still names the same unchanged file; empty if it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
