"""The arrays of a knowledge base: read from files or bytes, written, linked and checked."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import srsly

from ..errors import KnowledgeBaseError, LukeError
from ..files import sha256_of, whole_folder
from ..json_file import read_object, write_object
from .arrays import Array, identity, map_array, save_array

FORMAT, VERSION = "spacy-luke knowledge base", 1
META, VECTORS = "kb.json", "vectors"
COUNTS, PRIORS = "counts", "priors"
TABLES = ("ids", "names", "descriptions", "types", "forms", "keys")
INDEXED = ("ids", "forms", "keys")

DTYPES: dict[str, type] = {
    **{f"{name}.text": np.uint8 for name in TABLES},
    **{f"{name}.starts": np.int64 for name in TABLES},
    **{f"{name}.hashes": np.uint64 for name in INDEXED},
    **{f"{name}.rows": np.int32 for name in INDEXED},
    "counts": np.float64,
    "key_forms": np.int32,
    "form_pairs": np.int32,
    "pair_entities": np.int32,
    "pair_weights": np.float64,
    "entity_pairs": np.int32,
    "pairs_of_entities": np.int32,
    "trigrams.codes": np.int64,
    "trigrams.starts": np.int64,
    "trigrams.texts": np.int32,
    "trigrams.sizes": np.uint16,
}
"""All arrays but the vectors; the sizes of their rows are in :func:`_check_sizes`.

Entities have rows in the order of the file. A *form* is a distinct alias as it is written; a *key*
is a distinct normalised alias. The forms of a key are consecutive (``key_forms``, n + 1 bounds),
and so are the *pairs* of a form (``form_pairs``): an entity that it means (``pair_entities``), and
how often (``pair_weights``; NaN: as often as the entity is mentioned). ``pairs_of_entities`` are
the pairs in the order of the file; ``entity_pairs`` bounds those of an entity.
"""


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
        _check(self.meta, self.arrays, source)

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Map the files of a folder into memory. Sizes and types are checked, contents are not (see
        :func:`verify`). Raises KnowledgeBaseError, with the file, if one is missing or damaged."""
        meta = read_meta(folder)
        arrays, paths = {}, {}
        for name in meta["arrays"]:
            path = folder / f"{name}.npy"
            before = identity(path)
            arrays[name] = map_array(path)
            paths[name] = path, before
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

    def replaced(self, name: str, array: Array, **meta: Any) -> "Store":
        """The same store with one array, and values of the meta data, replaced."""
        entry = {"dtype": array.dtype.str, "shape": list(array.shape)}
        changed = {**self.meta, **meta, "arrays": {**self.meta["arrays"], name: entry}}
        paths = {k: v for k, v in self._paths.items() if k != name}
        return Store(changed, {**self.arrays, name: array}, self.source, paths)


def open_temporary(folder: Path) -> Store:
    """Open a folder and remove it. The mapped files exist until the store is closed."""
    store = Store.open(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return store


def temporary_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="spacy-luke-kb-"))


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


def _check(meta: Mapping[str, Any], arrays: Mapping[str, Array], source: str) -> None:
    for name, dtype in DTYPES.items():
        if name not in arrays:
            raise KnowledgeBaseError(f"{source} is damaged: {name} is missing.")
        array = arrays[name]
        if array.dtype != dtype or array.ndim != 1:
            raise KnowledgeBaseError(
                f"{source} is damaged: {name} is not a flat array of {np.dtype(dtype)}."
            )
    for name, array in arrays.items():
        entry = meta["arrays"].get(name)
        if not isinstance(entry, dict) or entry.get("shape") != list(array.shape):
            raise KnowledgeBaseError(
                f"{source} is damaged: {name} has the shape {list(array.shape)}, and {META} does "
                "not say so."
            )
    if meta.get("weights") not in (COUNTS, PRIORS) or not isinstance(meta.get("lang"), str):
        raise KnowledgeBaseError(f"{source} is damaged: weights or lang is missing in {META}.")
    for name, expected, n in _sizes(arrays):
        if n != expected:
            raise KnowledgeBaseError(f"{source} is damaged: {name} has {n} rows, not {expected}.")
    _check_vectors(meta, arrays, source)


def _sizes(arrays: Mapping[str, Array]) -> Iterator[tuple[str, int, int]]:
    """Name, expected and actual number of rows; offsets have to end where their data ends."""
    n_rows = {name: len(arrays[f"{name}.starts"]) - 1 for name in TABLES}
    n_entities, n_pairs = n_rows["ids"], len(arrays["pair_entities"])
    for name in TABLES:
        yield f"{name}.starts", max(n_rows[name], 0), n_rows[name]
    for name in ("names", "descriptions", "types"):
        yield f"{name}.starts", n_entities, n_rows[name]
    for name in INDEXED:
        yield f"{name}.hashes", n_rows[name], len(arrays[f"{name}.hashes"])
        yield f"{name}.rows", n_rows[name], len(arrays[f"{name}.rows"])
    yield "counts", n_entities, len(arrays["counts"])
    yield "pair_weights", n_pairs, len(arrays["pair_weights"])
    yield "pairs_of_entities", n_pairs, len(arrays["pairs_of_entities"])
    yield "trigrams.sizes", n_rows["keys"], len(arrays["trigrams.sizes"])
    bounds = [(f"{name}.starts", n_rows[name], len(arrays[f"{name}.text"])) for name in TABLES]
    bounds += [
        ("key_forms", n_rows["keys"], n_rows["forms"]),
        ("form_pairs", n_rows["forms"], n_pairs),
        ("entity_pairs", n_entities, n_pairs),
        ("trigrams.starts", len(arrays["trigrams.codes"]), len(arrays["trigrams.texts"])),
    ]
    for name, n, end in bounds:
        yield name, n + 1, len(arrays[name])
        yield f"the data of {name}", int(arrays[name][-1]), end


def _check_vectors(meta: Mapping[str, Any], arrays: Mapping[str, Array], source: str) -> None:
    if VECTORS not in arrays:
        return
    vectors, n_entities = arrays[VECTORS], len(arrays["counts"])
    if vectors.dtype not in (np.float32, np.float16) or vectors.ndim != 2:
        raise KnowledgeBaseError(f"{source}: vectors have the type {vectors.dtype}.")
    if len(vectors) != n_entities:
        raise KnowledgeBaseError(
            f"{source} has {n_entities} entities and {len(vectors)} vectors: they were made for "
            "another knowledge base."
        )
    if not isinstance(meta.get("vectors_hash"), str):
        raise KnowledgeBaseError(f"{source} is damaged: vectors_hash is missing in {META}.")
