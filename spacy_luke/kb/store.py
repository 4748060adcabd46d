"""The arrays of a knowledge base: read from files or bytes, written, linked and checked."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import srsly

from ..errors import KnowledgeBaseError, LukeError
from ..files import sha256_of, whole_folder
from ..json_file import read_object, write_object
from .arrays import Array, identity, map_array, release, save_array
from .layout import FORMAT, META, NAME_VECTORS, VERSION, check_layout

_OWN = (META, "contents", "strings.json")
"""Files, besides arrays, of our knowledge bases and of spaCy's."""


class Store:
    """meta: the content of ``kb.json``. arrays: by name, in memory or mapped. paths: the file of an
    array and its identity, if it was read from one."""

    def __init__(
        self,
        meta: Mapping[str, Any],
        arrays: Mapping[str, Array],
        source: str,
        paths: Mapping[str, tuple[Path, tuple[int, ...]]] | None = None,
    ):
        self.meta, self.arrays, self.source = dict(meta), dict(arrays), source
        self._paths = dict(paths or {})
        check_layout(self.meta, self.arrays, source)

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Map the files of a folder into memory. Sizes and types are checked, contents are not (see
        :func:`verify`). Raises KnowledgeBaseError, with the file, if one is missing or damaged."""
        meta = read_meta(folder)
        arrays, paths = {}, {}
        for name in meta["arrays"]:
            path = folder / f"{name}.npy"
            before = identity(path)
            arrays[name] = map_array(path, scattered=name != NAME_VECTORS)
            paths[name] = path, before
        if read_meta(folder) != meta:
            return cls.open(folder)  # it was replaced in between
        return cls(meta, arrays, str(folder), paths)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Store":
        try:
            content = srsly.msgpack_loads(data)
            meta = json.loads(content["meta"])
            arrays = {
                name: np.frombuffer(content["arrays"][name], entry["dtype"]).reshape(entry["shape"])
                for name, entry in meta["arrays"].items()
            }
        except (ValueError, TypeError, KeyError, AttributeError) as err:
            raise KnowledgeBaseError(f"These bytes are not a knowledge base: {err!r}.") from err
        return cls(meta, arrays, "The knowledge base")

    def to_bytes(self) -> bytes:
        arrays = {name: array.tobytes() for name, array in self.arrays.items()}
        return srsly.msgpack_dumps({"meta": json.dumps(self.meta), "arrays": arrays})

    def save(self, folder: Path) -> None:
        """Write the files; they replace those of an earlier save. A file that was not changed since
        it was opened is linked, if the file system allows it."""
        check_replaceable(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(folder) as temporary:
            for name, array in self.arrays.items():
                target = temporary / f"{name}.npy"
                if not self._link(name, target):
                    save_array(target, array)
            write_object(temporary / META, self.meta)

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
        for name in self._paths:
            release(self.arrays[name])

    def replaced(self, name: str, array: Array, **meta: Any) -> "Store":
        """The same store with one array, and values of the meta data, replaced."""
        entry = {"dtype": array.dtype.str, "shape": list(array.shape)}
        changed = {**self.meta, **meta, "arrays": {**self.meta["arrays"], name: entry}}
        paths = {k: v for k, v in self._paths.items() if k != name}
        return Store(changed, {**self.arrays, name: array}, self.source, paths)


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
    if meta.get("format") != FORMAT:
        raise KnowledgeBaseError(f"{path}: format is {meta.get('format')!r}, not {FORMAT!r}.")
    if meta.get("version") != VERSION:
        raise KnowledgeBaseError(
            f"{path}: version is {meta.get('version')!r}; this version of spacy-luke reads "
            f"{VERSION}. Build the knowledge base again."
        )
    if not isinstance(meta.get("arrays"), dict):
        raise KnowledgeBaseError(f"{path}: arrays is {meta.get('arrays')!r}, not an object.")
    return meta


def write_meta(folder: Path, **values: Any) -> None:
    """Write ``kb.json`` for the arrays in a folder, with their types, shapes and hashes."""
    arrays = {}
    for path in sorted(folder.glob("*.npy")):
        mapped = map_array(path)
        arrays[path.stem] = {
            "dtype": mapped.dtype.str,
            "shape": list(mapped.shape),
            "sha256": sha256_of(path),
        }
    write_object(folder / META, {"format": FORMAT, "version": VERSION, **values, "arrays": arrays})


def verify(folder: Path) -> None:
    """Compare all files with their hashes. Raises KnowledgeBaseError, with the file."""
    for name, entry in read_meta(folder)["arrays"].items():
        path = folder / f"{name}.npy"
        expected = entry.get("sha256")
        if not path.is_file() or (expected and sha256_of(path) != expected):
            raise KnowledgeBaseError(f"{path} is missing or damaged: its SHA-256 differs.")
