"""Vectors in a knowledge base: of its entities, and of its normalised names."""

from pathlib import Path

import numpy as np

from ..errors import InputError, KnowledgeBaseError
from .arrays import Array, create_array

_BLOCK = 10_000


def check_vectors(vectors: Array, n: int, of: str) -> None:
    """Raise KnowledgeBaseError unless the vectors are (n, width), float32 or float16, and finite.

    of: what has vectors, for the error.
    """
    if vectors.ndim != 2 or len(vectors) != n or not vectors.shape[1]:
        raise KnowledgeBaseError(
            f"The vectors have the shape {list(vectors.shape)}, and the knowledge base has {n} "
            f"{of}: [{n}, width] is required."
        )
    if vectors.dtype not in (np.float32, np.float16):
        raise KnowledgeBaseError(f"The vectors are {vectors.dtype}; use float32 or float16.")
    for start in range(0, n, _BLOCK):
        finite = np.isfinite(vectors[start : start + _BLOCK]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise KnowledgeBaseError(f"The vector of row {row} of the {of} is NaN or infinite.")


def zero_rows(vectors: Array | None, n: int) -> Array:
    """The rows (m,) of vectors (n, width) that are zero; all if there are no vectors."""
    if vectors is None:
        return np.arange(n)
    blocks = range(0, n, _BLOCK)
    zero = [~np.any(vectors[start : start + _BLOCK], axis=1) for start in blocks]
    return np.flatnonzero(np.concatenate(zero)) if zero else np.arange(0)


def existing(vector: Array, entity: str) -> Array:
    """The vector (width,) of an entity, as float32. Raises InputError if it is zero, and so
    missing: its similarity to anything is NaN, which spaCy takes for the largest."""
    if not vector.any():
        raise InputError(
            f"The entity {entity!r} of the knowledge base has no vector (it is zero): it was added "
            "or changed after vectors were made, or imported without one. Make it: "
            "'spacy luke kb-edit KB --pipeline PIPELINE'."
        )
    return vector.astype(np.float32)


def moved(vectors: Array, rows: Array, path: Path) -> Array:
    """The vectors of ``rows`` (n,), in a new file; zeros for the row -1."""
    result = create_array(path, vectors.dtype.type, (len(rows), vectors.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        kept = block >= 0
        result[start : start + len(block)][kept] = vectors[block[kept]]
    return result
