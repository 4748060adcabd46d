"""Files and folders that appear whole or not at all, and hashes of files.

What is written gets a hidden name of its own beside its target and is renamed when it is complete.
So any number of processes may write to one place, and a file that is open or mapped elsewhere is
replaced, never written over.
"""

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_BLOCK = 1 << 20
_N_DIGITS = 8
_N_OF_NAME = 50
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A hidden name in the folder of ``path`` that no other process uses. If there is a file or a
    folder of that name when the block ends, it is removed."""
    # Of a long name a part: this one has to fit, too.
    temporary = path.with_name(f".{path.name[:_N_OF_NAME]}.{uuid.uuid4().hex[:_N_DIGITS]}")
    try:
        yield temporary
    finally:
        _remove(temporary)


@contextmanager
def whole_file(path: Path, durable: bool = False) -> Iterator[Path]:
    """The name under which to write a file. It replaces ``path`` when the block ends; after an
    error ``path`` is what it was. Of a link, the file to which it leads is replaced. What is no
    file, such as a pipe, is written to directly.

    durable: content and name are on the disk when this ends, so that a power failure after it
    leaves the file.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = path.resolve()
    with beside(path) as temporary:
        yield temporary
        if path.exists():
            shutil.copymode(path, temporary)
        if durable:
            _sync(temporary)
        temporary.replace(path)
        if durable:
            _sync(path.parent)


@contextmanager
def whole_folder(
    path: Path, durable: bool = False, keep: Callable[[], bool] = lambda: False
) -> Iterator[Path]:
    """An empty folder to write to. It replaces ``path`` when the block ends; after an error
    ``path`` is what it was. If it is a link, the folder to which it leads is replaced.

    durable: as for ``whole_file``. keep: called last; if it returns true, ``path`` stays as it is.
    """
    path = path.resolve()
    with beside(path) as temporary:
        temporary.mkdir()
        yield temporary
        if durable:
            for written in (*temporary.rglob("*"), temporary):
                _sync(written)
        if not keep():
            _move(temporary, path)
        if durable:
            _sync(path.parent)


def _move(folder: Path, path: Path) -> None:
    """Rename a folder to ``path``, in place of what is there."""
    while True:
        with beside(path) as replaced:
            try:
                with suppress(FileNotFoundError):
                    path.rename(replaced)
                folder.rename(path)
                return
            except BaseException as error:
                if isinstance(error, OSError) and error.errno in _NOT_EMPTY:
                    continue  # another process has put its folder there in between
                if replaced.exists():
                    replaced.rename(path)
                raise


def remove_folder(folder: Path) -> None:
    """Remove a folder so that it is gone at once: one that is half removed has no name."""
    with beside(folder) as away:
        folder.rename(away)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes left in a folder. Only for a folder to which no other process
    writes."""
    for path in folder.glob(".*." + "[0-9a-f]" * _N_DIGITS):
        _remove(path)


def sha256_of(*paths: Path) -> str:
    """The SHA-256 of files, one after the other, in hexadecimal."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Flush the content of a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_hidden(path: Path, folder: Path) -> bool:
    """Whether a file of a folder, or a folder that contains it there, begins with a dot, as the
    copies of macOS and editors do."""
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
