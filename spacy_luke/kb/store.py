"""Folders of mapped arrays: read from files or bytes, written, linked and checked."""

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
from ..mapped_array import map_array, save_array
from .arrays import (
    Array,
    hash_array,
    hash_sample,
    identity,
    release,
    writing,
)
from .layout import KNOWLEDGE_BASE, Layout, check_arrays

_GAP, _GAPS = 0.02, 10
"""Seconds; above the time in which a folder that is replaced has no name, on a machine that is
idle; and how often that is waited for on one that is not."""


class Store:
    """meta: the content of the file ``layout.meta`` (``kb.json``). arrays: by name, in memory or
    mapped. paths: the file of an array and its identity, if it was read from one.

    An array that is not in a file is written by the first :meth:`save`; the next one links that
    file.

    opened: the folder that was opened, and the meta data that it had then, or since the last save
    to it; None for a store from elsewhere. A changed store (:meth:`replaced`) has that of the
    earlier one.
    """

    def __init__(
        self,
        meta: Mapping[str, Any],
        arrays: Mapping[str, Array],
        source: str,
        paths: Mapping[str, tuple[Path, tuple[int, ...]]] | None = None,
        layout: Layout = KNOWLEDGE_BASE,
    ):
        self.meta, self.arrays, self.source = dict(meta), dict(arrays), source
        self.layout = layout
        self.opened: tuple[Path, dict[str, Any]] | None = None
        self._mapped = tuple(paths or {})
        self._paths = dict(paths or {})
        check_arrays(layout, self.meta, self.arrays, source)

    @classmethod
    def open(cls, folder: Path, layout: Layout = KNOWLEDGE_BASE) -> "Store":
        """Map the files of a folder into memory. Sizes, types and a sample of each content are
        checked; :func:`verify` checks all of it. Raises KnowledgeBaseError, with the file, if one
        is missing or damaged."""
        while True:
            opened = identity(folder)
            try:
                store = cls._open(folder, layout)
                store.release()  # what was read for the samples
                return store
            except KnowledgeBaseError:
                # Asked once: a folder that is replaced again is missing again.
                present = _identity_after_a_gap(folder)
                if not present or present == opened:
                    raise
                # Another process has replaced it while it was read.

    @classmethod
    def _open(cls, folder: Path, layout: Layout) -> "Store":
        meta = read_meta(folder, layout)
        arrays, paths = {}, {}
        for name in meta["arrays"]:
            path = (folder / f"{name}.npy").resolve()
            before = identity(path)
            arrays[name] = map_array(
                path, KnowledgeBaseError, scattered=name not in layout.read_ahead
            )
            paths[name] = path, before
        if read_meta(folder, layout) != meta:
            return cls._open(folder, layout)  # it was replaced in between
        store = cls(meta, arrays, str(folder), paths, layout)
        store.opened = folder.absolute(), store.meta
        return store

    @classmethod
    def from_bytes(cls, data: bytes, layout: Layout = KNOWLEDGE_BASE) -> "Store":
        try:
            content = srsly.msgpack_loads(data)
            meta = check_meta(json.loads(content["meta"]), "These bytes", layout)
            arrays = {
                name: np.frombuffer(content["arrays"][name], entry["dtype"]).reshape(entry["shape"])
                for name, entry in meta["arrays"].items()
            }
            damaged = [x for x, y in arrays.items() if hash_array(y) != meta["arrays"][x]["sha256"]]
        except KnowledgeBaseError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as err:
            raise KnowledgeBaseError(f"These bytes are not a {layout.what}: {err!r}.") from err
        if damaged:
            raise KnowledgeBaseError(f"These bytes are damaged: {damaged[0]} has another SHA-256.")
        return cls(meta, arrays, f"The {layout.what}", layout=layout)

    def to_bytes(self) -> bytes:
        arrays = {name: array.tobytes() for name, array in self.arrays.items()}
        return srsly.msgpack_dumps({"meta": json.dumps(self.meta), "arrays": arrays})

    def save(self, folder: Path, over: "Store | None" = None) -> None:
        """Write the files; they replace those of an earlier save. A file that was not changed since
        it was opened is linked, if the file system allows it.

        over: a store that may have been opened from this folder. Raises KnowledgeBaseError, and
        changes nothing, if it was, and the folder has other content by now, which would be lost
        (looked at just before it is replaced).
        """
        folder = folder.resolve()  # a link keeps pointing to it
        check_replaceable(folder, self.layout)
        written = {}
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with whole_folder(folder) as temporary:
                for name, array in self.arrays.items():
                    target = temporary / f"{name}.npy"
                    if not self._link(name, target):
                        save_array(target, array)
                        written[name] = folder / target.name, identity(target)
                write_object(temporary / self.layout.meta, self.meta)
                if over is not None:
                    over.check_unchanged(folder)
        self._paths.update(written)
        if self._was_opened_from(folder):
            self.opened = folder, self.meta

    def _was_opened_from(self, folder: Path) -> bool:
        return self.opened is not None and self.opened[0].resolve() == folder

    def check_unchanged(self, folder: Path) -> None:
        """Raise KnowledgeBaseError if this was opened from a folder that has changed since."""
        if self.opened is None or not self._was_opened_from(folder):
            return
        _identity_after_a_gap(folder)
        if read_meta(folder, self.layout) != self.opened[1]:
            raise KnowledgeBaseError(
                f"{folder} was changed after it was opened, and was not replaced. Open it again "
                "and repeat the edit."
            )

    def _link(self, name: str, target: Path) -> bool:
        path, opened = self._paths.get(name, (target, ()))
        # Another one may have been saved to the same place.
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
        entries = {**self.meta["arrays"], name: _entry(array, hash_array(array))}
        changed = {**self.meta, **meta, "arrays": entries}
        store = Store(changed, {**self.arrays, name: array}, self.source, layout=self.layout)
        store.opened = self.opened
        store._mapped = tuple(x for x in self._mapped if x != name)
        store._paths = {k: v for k, v in self._paths.items() if k != name}
        return store


def open_temporary(write: Callable[[Path], object]) -> Store:
    """Open a folder that ``write`` writes, and remove it. The mapped files exist as long as they
    are mapped."""
    with TemporaryDirectory(prefix="spacy-luke-kb-", ignore_cleanup_errors=True) as name:
        write(Path(name) / "kb")
        return Store.open(Path(name) / "kb")


def check_replaceable(folder: Path, layout: Layout = KNOWLEDGE_BASE) -> None:
    """Raise KnowledgeBaseError if there is anything else in a folder than what its layout may
    contain, or arrays without a file ``layout.meta`` of ours: writing replaces the folder."""
    names = sorted(x.name for x in folder.iterdir()) if folder.is_dir() else []
    arrays = [x for x in names if x.endswith(".npy")]
    others = [x for x in names if x not in (layout.meta, *layout.own, *arrays)]
    if not others and not _is_ours(folder / layout.meta, layout):
        others = arrays
    if others or (folder.exists() and not folder.is_dir()):
        raise KnowledgeBaseError(
            f"{folder} exists and is not a {layout.what}"
            + (f": it contains {others[0]}" if others else "")
            + ". Choose another folder."
        )


def _is_ours(path: Path, layout: Layout) -> bool:
    """Whether a file is the ``layout.meta`` of such a folder, which may be damaged."""
    if not path.is_file():
        return False
    try:
        return read_object(path).get("format") == layout.format
    except LukeError:
        return True


def read_meta(folder: Path, layout: Layout = KNOWLEDGE_BASE) -> dict[str, Any]:
    """The content of the file ``layout.meta``. Raises KnowledgeBaseError if the folder has none of
    ours."""
    path = folder / layout.meta
    if not path.is_file():
        raise KnowledgeBaseError(f"{folder} is not a {layout.what}: {layout.meta} is missing.")
    try:
        meta = read_object(path)
    except LukeError as err:
        raise KnowledgeBaseError(str(err)) from err
    return check_meta(meta, str(path), layout)


def check_meta(meta: Any, source: str, layout: Layout = KNOWLEDGE_BASE) -> dict[str, Any]:
    """The content of the file ``layout.meta``. Raises KnowledgeBaseError, with the field, if it is
    another version, or has arrays that the layout does not have: their names are names of files."""
    if not isinstance(meta, dict) or meta.get("format") != layout.format:
        value = meta.get("format") if isinstance(meta, dict) else meta
        raise KnowledgeBaseError(f"{source}: format is {value!r}, not {layout.format!r}.")
    if meta.get("version") != layout.version:
        raise KnowledgeBaseError(
            f"{source}: version is {meta.get('version')!r}; this version of spacy-luke reads "
            f"{layout.version}. Build the {layout.what} again."
        )
    if not isinstance(meta.get("arrays"), dict):
        raise KnowledgeBaseError(f"{source}: arrays is {meta.get('arrays')!r}, not an object.")
    for name, entry in meta["arrays"].items():
        if name not in layout.dtypes and name not in layout.optional:
            raise KnowledgeBaseError(f"{source}: arrays has {name!r}, which is not known.")
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
            raise KnowledgeBaseError(f"{source}: arrays[{name!r}] has no sha256.")
    return meta


def write_meta(folder: Path, layout: Layout = KNOWLEDGE_BASE, **values: Any) -> None:
    """Write the file ``layout.meta`` for the arrays in a folder, with their types, shapes and
    hashes."""
    arrays = {}
    for path in sorted(folder.glob("*.npy")):
        arrays[path.stem] = _entry(
            map_array(path, KnowledgeBaseError, scattered=True), sha256_of(path)
        )
    write_object(folder / layout.meta, _meta(layout, values, arrays))


def _identity_after_a_gap(folder: Path) -> tuple[int, ...]:
    """The identity of a folder that another process may be replacing; empty if it stays away."""
    for _ in range(_GAPS):
        if present := identity(folder):
            return present
        time.sleep(_GAP)
    return identity(folder)


def store_of(arrays: Mapping[str, Array], layout: Layout, **values: Any) -> Store:
    """A store of arrays in memory. values: of the meta data."""
    arrays = dict(sorted(arrays.items()))
    entries = {name: _entry(array, hash_array(array)) for name, array in arrays.items()}
    return Store(_meta(layout, values, entries), arrays, f"The {layout.what}", layout=layout)


def _entry(array: Array, sha256: str) -> dict[str, Any]:
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "sample": hash_sample(array),
        "sha256": sha256,
    }


def _meta(layout: Layout, values: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    return {"format": layout.format, "version": layout.version, **values, "arrays": arrays}


def verify(folder: str | Path, layout: Layout = KNOWLEDGE_BASE) -> None:
    """Compare all files with their hashes. Raises KnowledgeBaseError, with the file."""
    folder = Path(folder)
    for name, entry in read_meta(folder, layout)["arrays"].items():
        path = folder / f"{name}.npy"
        if not path.is_file() or sha256_of(path) != entry["sha256"]:
            raise KnowledgeBaseError(f"{path} is missing or damaged: its SHA-256 differs.")
