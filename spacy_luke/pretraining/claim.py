"""One run at a time in a folder, for one thing."""

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

CLAIM = "stage.json"
_VERSION = 1
_FINISHED = ("part-*/part.json", "checkpoints/checkpoint-*/state.json", "manifest.json")


@contextlib.contextmanager
def claimed(folder: Path, purpose: Mapping[str, Any]) -> Iterator[None]:
    """Have a folder for a purpose, and alone: it is written down there. A folder that is for
    something else is refused, once something is finished in it. Raises ConfigError and StageError,
    also where the disk gets full."""
    try:
        _make(folder)
        with alone(folder):
            _claim(folder, purpose)
            remove_unfinished(folder)
            yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StageError(
                f"The disk of {folder} is full ({error}). Make room and start again: what is "
                "finished is kept."
            ) from error
        raise


def _make(folder: Path) -> None:
    """The folder, or an error if there is something else, before a lock is left in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise ConfigError(f"{folder} is a file; name a folder.") from error
    found = [x.name for x in folder.iterdir() if not x.name.startswith(".")]
    if found and not (folder / CLAIM).exists():  # looked for last: others come after it
        raise ConfigError(f"{folder} is not empty and of no stage; name another.")


def _claim(folder: Path, purpose: Mapping[str, Any]) -> None:
    path = folder / CLAIM
    mine = {"version": _VERSION, **purpose}
    if not path.exists():
        write_json(path, mine)
        return
    theirs = read_json(path, "Name another folder.")
    if any(next(folder.glob(name), None) for name in _FINISHED):
        refuse_other(folder, theirs, mine)
    elif theirs != srsly.json_loads(srsly.json_dumps(mine)):
        # What was wrong with the settings may be what ended that run.
        for before in folder.glob(f".*/{CLAIM}"):  # stages that it had for itself
            shutil.rmtree(before.parent)
        write_json(path, mine)


def refuse_other(path: Path, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Raises ConfigError, naming the first value that differs: ``path`` is of another run."""
    before, now = _flat(theirs), _flat(srsly.json_loads(srsly.json_dumps(mine)))
    for name in {**now, **before}:
        if before.get(name) != now.get(name):
            raise ConfigError(
                f"{path} was begun with {name} = {before.get(name)!r}, this run has "
                f"{now.get(name)!r}. Name another folder, or remove that one."
            )


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(tree, list):
        tree = dict(enumerate(tree))
    if not isinstance(tree, Mapping) or not tree:
        return {prefix.rstrip("."): tree}
    parts = [_flat(value, f"{prefix}{key}.") for key, value in tree.items()]
    return {name: value for part in parts for name, value in part.items()}


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One run at a time in a folder; the lock goes with its process."""
    with (folder / ".lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StageError(f"Another run is at work in {folder}.") from error
        yield
