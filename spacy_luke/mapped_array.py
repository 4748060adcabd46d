"""Arrays in ``.npy`` files, mapped into memory."""

import errno
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from .errors import LukeError

_TRIES = 20


def map_array(path: Path, error: type[LukeError], scattered: bool) -> np.ndarray:
    """Memory-map a file. Raises ``error``, with the file, if it is missing or damaged.

    scattered: reads are lookups, so the system reads nothing ahead.
    """
    try:
        mapped = _load(path)
    except Exception as err:  # a damaged header may raise anything
        raise error(f"{path} cannot be read: {err}.") from err
    if scattered and hasattr(mmap, "MADV_RANDOM") and mapped.size:
        mapped._mmap.madvise(mmap.MADV_RANDOM)
    return mapped.view(np.ndarray)


def save_array(path: Path, array: np.ndarray) -> None:
    """Write a file. Raises OSError if the disk has no space for all of it: NumPy does not notice
    that if it is the end that is missing."""
    with path.open("wb") as file:
        np.save(file, array)
        n_bytes = file.tell()
    if path.stat().st_size != n_bytes:
        raise OSError(errno.ENOSPC, "No space for the whole file", str(path))


def _load(path: Path) -> Any:  # a np.memmap, whose `_mmap` has no type
    # NumPy parses the header with `ast`, in which Python 3.11 before 3.11.8 may raise a SystemError
    # ("AST constructor recursion depth mismatch") if another thread parses something at the same
    # time (python/cpython#106905). The next try hardly ever meets it again.
    for _ in range(_TRIES - 1):
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except SystemError:
            continue
    return np.load(path, mmap_mode="r", allow_pickle=False)
