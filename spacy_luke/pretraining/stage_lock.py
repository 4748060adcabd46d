"""Lock and settings record of a stage folder."""

import contextlib
import errno
import fcntl
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import srsly

from ..errors import ConfigError, StageError
from ..files import remove_unfinished
from .disk import read_json, write_json

RECORD = "stage.json"
_VERSION = 1
_FINISHED = ("part-*/part.json", "checkpoints/checkpoint-*/state.json", "manifest.json")


@contextlib.contextmanager
def locked(folder: Path, record: Mapping[str, Any]) -> Iterator[None]:
    """Lock a folder for one run and record its stage, settings and inputs in it.

    Raises ConfigError if the folder contains finished parts of a run with another record, or is not
    a stage folder. Raises StageError if another run holds the lock, or the disk becomes full.
    """
    try:
        _make(folder)
        with lock(folder):
            _record(folder, record)
            remove_unfinished(folder)
            yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StageError(
                f"The disk of {folder} is full ({error}). Free space and start again: finished "
                "parts are kept."
            ) from error
        raise


def _make(folder: Path) -> None:
    """Create the folder. Raises ConfigError if it is a file or not a stage folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise ConfigError(f"{folder} is a file; choose a folder.") from error
    # Checked in this order: a run that starts now writes its record before other files.
    is_empty = all(path.name.startswith(".") for path in folder.iterdir())
    if not is_empty and not (folder / RECORD).exists():
        raise ConfigError(
            f"{folder} is not empty and was not made by a pretraining stage; choose another folder."
        )


def _record(folder: Path, record: Mapping[str, Any]) -> None:
    path = folder / RECORD
    new = {"version": _VERSION, **record}
    if not path.exists():
        write_json(path, new)
        return
    existing = read_json(path, "Choose another folder.")
    if any(next(folder.glob(name), None) for name in _FINISHED):
        check_same(folder, existing, new)
    elif existing != srsly.json_loads(srsly.json_dumps(new)):
        # Nothing is finished: the settings may have been corrected after an error.
        for inner in folder.glob(f".*/{RECORD}"):  # stages within the stage
            shutil.rmtree(inner.parent)
        write_json(path, new)


def check_same(path: Path, existing: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise ConfigError, with the first value that differs, if the records differ."""
    different = first_difference(existing, new)
    if different:
        name, before, now = different
        raise ConfigError(
            f"{path} was started with {name} = {before!r}, this run has {now!r}. "
            "Choose another folder, or remove that one."
        )


def first_difference(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[str, Any, Any] | None:
    """The name and both values of what differs first between two records, compared as JSON."""
    old, new = (_flat(srsly.json_loads(srsly.json_dumps(x))) for x in (before, now))
    for name in {**new, **old}:
        if old.get(name) != new.get(name):
            return name, old.get(name), new.get(name)
    return None


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}, "c": [2]} -> {"a.b": 1, "c.0": 2}"""
    if isinstance(tree, list):
        tree = dict(enumerate(tree))
    if not isinstance(tree, Mapping) or not tree:
        return {prefix.rstrip("."): tree}
    parts = [_flat(value, f"{prefix}{key}.") for key, value in tree.items()]
    return {name: value for part in parts for name, value in part.items()}


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock a folder. The lock is released when the process ends. Raises StageError if another
    process holds it.

    A folder that cannot be written to is locked by an existing lock file, which a finished stage
    has; any number of processes may read it at once.
    """
    path, kind = folder / ".lock", fcntl.LOCK_EX
    try:
        file = path.open("a")
    except OSError:
        if not path.is_file():
            raise
        file, kind = path.open(), fcntl.LOCK_SH
    with file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except OSError as error:
            raise StageError(f"Another run is using {folder}.") from error
        yield
