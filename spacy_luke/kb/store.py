"""The arrays of a knowledge base: read from files or bytes, written, linked and checked."""

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import srsly

from ..errors import KnowledgeBaseError, LukeError
from ..files import sha256_of, whole_folder
from ..json_file import read_object, write_object
from .arrays import (
    Array,
    hash_array,
    hash_sample,
    identity,
    map_array,
    release,
    save_array,
    writing,
)
from .layout import DTYPES, FORMAT, META, NAME_VECTORS, VECTORS, VERSION, check_layout

_OWN = (META, "contents", "strings.json")
"""Files, besides arrays, of our knowledge bases and of spaCy's."""
_GAP = 0.02
"""Seconds; above the time in which a folder that is replaced has no name."""


class Store:
    """meta: the content of ``kb.json``. arrays: by name, in memory or mapped. paths: the file of an
    array and its identity, if it was read from one.

    An array that is not in a file is written by the first :meth:`save`; the next one links that
    file.
    """

    def __init__(
        self,
        meta: Mapping[str, Any],
        arrays: Mapping[str, Array],
        source: str,
        paths: Mapping[str, tuple[Path, tuple[int, ...]]] | None = None,
    ):
        self.meta, self.arrays, self.source = dict(meta), dict(arrays), source
        self._mapped = tuple(paths or {})
        self._paths = dict(paths or {})
        check_layout(self.meta, self.arrays, source)

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Map the files of a folder into memory. Sizes, types and a sample of each content are
        checked; :func:`verify` checks all of it. Raises KnowledgeBaseError, with the file, if one
        is missing or damaged."""
        while True:
            opened = identity(folder)
            try:
                return cls._open(folder)
            except KnowledgeBaseError:
                if not opened:
                    time.sleep(_GAP)
                if identity(folder)[:2] == opened[:2]:
                    raise
                # Another process has replaced it while it was read.

    @classmethod
    def _open(cls, folder: Path) -> "Store":
        meta = read_meta(folder)
        arrays, paths = {}, {}
        for name in meta["arrays"]:
            path = (folder / f"{name}.npy").resolve()
            before = identity(path)
            arrays[name] = map_array(path, scattered=name != NAME_VECTORS)
            paths[name] = path, before
        if read_meta(folder) != meta:
            return cls._open(folder)  # it was replaced in between
        return cls(meta, arrays, str(folder), paths)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Store":
        try:
            content = srsly.msgpack_loads(data)
            meta = check_meta(json.loads(content["meta"]), "These bytes")
            arrays = {
                name: np.frombuffer(content["arrays"][name], entry["dtype"]).reshape(entry["shape"])
                for name, entry in meta["arrays"].items()
            }
            damaged = [x for x, y in arrays.items() if hash_array(y) != meta["arrays"][x]["sha256"]]
        except KnowledgeBaseError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as err:
            raise KnowledgeBaseError(f"These bytes are not a knowledge base: {err!r}.") from err
        if damaged:
            raise KnowledgeBaseError(f"These bytes are damaged: {damaged[0]} has another SHA-256.")
        return cls(meta, arrays, "The knowledge base")

    def to_bytes(self) -> bytes:
        arrays = {name: array.tobytes() for name, array in self.arrays.items()}
        return srsly.msgpack_dumps({"meta": json.dumps(self.meta), "arrays": arrays})

    def save(self, folder: Path) -> None:
        """Write the files; they replace those of an earlier save. A file that was not changed since
        it was opened is linked, if the file system allows it."""
        folder = folder.resolve()  # a link keeps pointing to it
        check_replaceable(folder)
        written = {}
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with whole_folder(folder) as temporary:
                for name, array in self.arrays.items():
                    target = temporary / f"{name}.npy"
                    if not self._link(name, target):
                        save_array(target, array)
                        written[name] = folder / target.name, identity(target)
                write_object(temporary / META, self.meta)
        self._paths.update(written)

    def _link(self, name: str, target: Path) -> bool:
        path, opened = self._paths.get(name, (target, ()))
        # Another knowledge base may have been saved to the same place.
        if not opened or identity(path) != opened:
            return False
        try:
            os.link(path, target)
        except OSError:
            return False
        return identity(target)[:3] == opened[:3]

    def release(self) -> None:
        """Let the system take back the memory of the files that were mapped by :meth:`open`."""
        for name in self._mapped:
            release(self.arrays[name])

    def replaced(self, name: str, array: Array, **meta: Any) -> "Store":
        """The same store with one array, and values of the meta data, replaced."""
        array = np.ascontiguousarray(array)
        entry = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sample": hash_sample(array),
            "sha256": hash_array(array),
        }
        changed = {**self.meta, **meta, "arrays": {**self.meta["arrays"], name: entry}}
        store = Store(changed, {**self.arrays, name: array}, self.source)
        store._mapped = tuple(x for x in self._mapped if x != name)
        store._paths = {k: v for k, v in self._paths.items() if k != name}
        return store


def open_temporary(write: Callable[[Path], object]) -> Store:
    """Open a folder that ``write`` writes, and remove it. The mapped files exist as long as they
    are mapped."""
    with TemporaryDirectory(prefix="spacy-luke-kb-", ignore_cleanup_errors=True) as name:
        write(Path(name) / "kb")
        return Store.open(Path(name) / "kb")


def check_replaceable(folder: Path) -> None:
    """Raise KnowledgeBaseError if there is anything else in a folder than a knowledge base, ours or
    spaCy's: writing one replaces the folder."""
    names = [x.name for x in folder.iterdir()] if folder.is_dir() else []
    others = [x for x in names if not x.endswith(".npy") and x not in _OWN]
    if others or (folder.exists() and not folder.is_dir()):
        raise KnowledgeBaseError(
            f"{folder} exists and is not a knowledge base"
            + (f": it contains {sorted(others)[0]}" if others else "")
            + ". Choose another folder."
        )


def read_meta(folder: Path) -> dict[str, Any]:
    """The content of ``kb.json``. Raises KnowledgeBaseError if the folder has none of ours."""
    path = folder / META
    if not path.is_file():
        raise KnowledgeBaseError(f"{folder} is not a knowledge base: {META} is missing.")
    try:
        meta = read_object(path)
    except LukeError as err:
        raise KnowledgeBaseError(str(err)) from err
    return check_meta(meta, str(path))


def check_meta(meta: Any, source: str) -> dict[str, Any]:
    """The content of ``kb.json``. Raises KnowledgeBaseError, with the field, if it is another
    version, or has arrays that no knowledge base has: their names are names of files."""
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        value = meta.get("format") if isinstance(meta, dict) else meta
        raise KnowledgeBaseError(f"{source}: format is {value!r}, not {FORMAT!r}.")
    if meta.get("version") != VERSION:
        raise KnowledgeBaseError(
            f"{source}: version is {meta.get('version')!r}; this version of spacy-luke reads "
            f"{VERSION}. Build the knowledge base again."
        )
    if not isinstance(meta.get("arrays"), dict):
        raise KnowledgeBaseError(f"{source}: arrays is {meta.get('arrays')!r}, not an object.")
    for name, entry in meta["arrays"].items():
        if name not in (*DTYPES, VECTORS, NAME_VECTORS):
            raise KnowledgeBaseError(f"{source}: arrays has {name!r}, which is not known.")
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
            raise KnowledgeBaseError(f"{source}: arrays[{name!r}] has no sha256.")
    return meta


def write_meta(folder: Path, **values: Any) -> None:
    """Write ``kb.json`` for the arrays in a folder, with their types, shapes and hashes."""
    arrays = {}
    for path in sorted(folder.glob("*.npy")):
        mapped = map_array(path)
        arrays[path.stem] = {
            "dtype": mapped.dtype.str,
            "shape": list(mapped.shape),
            "sample": hash_sample(mapped),
            "sha256": sha256_of(path),
        }
    write_object(folder / META, {"format": FORMAT, "version": VERSION, **values, "arrays": arrays})


def verify(folder: Path) -> None:
    """Compare all files with their hashes. Raises KnowledgeBaseError, with the file."""
    for name, entry in read_meta(folder)["arrays"].items():
        path = folder / f"{name}.npy"
        if not path.is_file() or sha256_of(path) != entry["sha256"]:
            raise KnowledgeBaseError(f"{path} is missing or damaged: its SHA-256 differs.")
