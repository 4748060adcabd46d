"""The arrays of a knowledge base, and checks that they fit together."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import KnowledgeBaseError
from .arrays import Array, hash_sample

META, VECTORS, NAME_VECTORS = "kb.json", "vectors", "name_vectors"
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
"""All arrays but the vectors, which are optional; the numbers of their rows are in :func:`_sizes`.

Entities have rows in the order of the file. A *form* is a distinct alias as it is written; a *key*
is a distinct normalised alias. The forms of a key are consecutive (``key_forms``, n + 1 bounds),
and so are the *pairs* of a form (``form_pairs``): an entity that it means (``pair_entities``), and
how often (``pair_weights``; NaN: as often as the entity is mentioned). ``pairs_of_entities`` are
the pairs in the order of the file; ``entity_pairs`` bounds those of an entity. ``vectors`` has a
row per entity, ``name_vectors`` a row per key.
"""


def hash_of(vectors: str) -> str:
    """The entry of ``kb.json`` that identifies what made the vectors of an array."""
    return f"{vectors}_hash"


@dataclass(frozen=True)
class Layout:
    """What a folder of mapped arrays consists of.

    what: its name in error messages. format, version: recorded in the file ``meta``. dtypes: the
    required flat arrays. optional: names of further arrays. own: other files that the folder may
    contain when it is replaced. read_ahead: arrays that are read from one end to the other.
    check: called with the content of ``meta``, the arrays and their source, once each of the arrays
    is known to be as it was written; raises KnowledgeBaseError if they do not fit together.
    """

    what: str
    format: str
    version: int
    meta: str
    dtypes: Mapping[str, type]
    check: Callable[[Mapping[str, Any], Mapping[str, Array], str], None]
    optional: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    read_ahead: tuple[str, ...] = ()


def check_arrays(
    layout: Layout, meta: Mapping[str, Any], arrays: Mapping[str, Array], source: str
) -> None:
    """Raise KnowledgeBaseError, with the array, if one is missing, was changed or does not fit the
    others."""
    for name, dtype in layout.dtypes.items():
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
                f"{source} is damaged: {name} has the shape {list(array.shape)}, and "
                f"{layout.meta} does not say so."
            )
        if entry.get("sample") != hash_sample(array):
            raise KnowledgeBaseError(
                f"{source} is damaged: {name} was changed, or is of another {layout.what}."
            )
    layout.check(meta, arrays, source)


def _check_fit(meta: Mapping[str, Any], arrays: Mapping[str, Array], source: str) -> None:
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
    rows = ((VECTORS, "entities", arrays["counts"]), (NAME_VECTORS, "names", arrays["keys.rows"]))
    for name, of, expected in rows:
        if name not in arrays:
            continue
        vectors = arrays[name]
        if vectors.dtype not in (np.float32, np.float16) or vectors.ndim != 2:
            raise KnowledgeBaseError(
                f"{source} is damaged: {name} is not a matrix of float32 or float16."
            )
        if len(vectors) != len(expected):
            raise KnowledgeBaseError(
                f"{source} has {len(expected)} {of} and {len(vectors)} rows of {name}: they were "
                "made for another knowledge base."
            )
        if not isinstance(meta.get(hash_of(name)), str):
            raise KnowledgeBaseError(f"{source} is damaged: {hash_of(name)} is missing in {META}.")


KNOWLEDGE_BASE = Layout(
    what="knowledge base",
    format="spacy-luke knowledge base",
    version=3,
    meta=META,
    dtypes=DTYPES,
    check=_check_fit,
    optional=(VECTORS, NAME_VECTORS),
    own=("contents", "strings.json"),  # spaCy's
    read_ahead=(NAME_VECTORS,),
)
