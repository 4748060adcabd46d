"""The entities whose names have the nearest vectors to those of mentions."""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError, KnowledgeBaseError
from ..validation import Count, Probability, check_settings
from .arrays import Array
from .candidates import DIGITS, CandidateSettings, FoundEntity, best_entities
from .tables import Tables

_NAMES = 32_768
"""Names whose vectors are compared in one matrix product."""
_MENTIONS = 256
_EXACT_ROWS = 2_048
_SLACK = 2e-4
"""Above twice the rounding error of a product of vectors of length 1 in single precision."""


@dataclass(frozen=True)
class NearestSettings:
    """k: maximum number of candidates per mention. min_likeness: of candidates, from 0 to 1."""

    k: Count = CandidateSettings.k
    min_likeness: Probability = 0.0

    def __post_init__(self) -> None:
        check_settings("nearest", NearestSettings, vars(self))


@dataclass(frozen=True)
class _Near:
    """Entities by decreasing cosine, then prior, then in the order of the file; each once.

    rows, forms: (n,) integers. cosines, priors: (n,) float64; cosines are rounded.
    """

    rows: Array
    forms: Array
    cosines: Array
    priors: Array

    @classmethod
    def none(cls) -> "_Near":
        return cls(*(np.zeros(0, kind) for kind in (np.int64, np.int64, float, float)))

    def best(self, others: "_Near", k: int) -> "_Near":
        """The ``k`` best of both."""
        rows, forms, cosines, priors = (
            np.concatenate([mine, theirs])
            for mine, theirs in zip(vars(self).values(), vars(others).values())
        )
        best = best_entities(rows, forms, cosines, priors, k)
        return _Near(rows[best], forms[best], cosines[best], priors[best])


def nearest_candidates(
    tables: Tables, vectors: Array, settings: NearestSettings | None = None
) -> list[list[FoundEntity]]:
    """The candidates of each mention by the cosine of its vector and those of names, the best
    first: by decreasing cosine (rounded), then prior, then in the order of the file. An entity has
    the cosine of its nearest name. The likeness is the cosine, or 0 if that is negative.

    vectors: (n, width) of mentions, of any length; one that is zero has no candidates. Names whose
        vector is zero are not found.

    The search is exact: all names are compared, in blocks. A mention's result does not depend on
    the others. Raises KnowledgeBaseError if the knowledge base has no vectors of names, and
    InputError for vectors of another shape, or with values that are NaN or infinite.
    """
    settings = settings or NearestSettings()
    mentions = _directions(_checked(tables, vectors).astype(np.float64, order="C"))
    results: list[list[FoundEntity]] = []
    for start in range(0, len(mentions), _MENTIONS):
        block = _search(tables, mentions[start : start + _MENTIONS], settings)
        results += [_found(near) for near in block]
    return results


def _checked(tables: Tables, vectors: Array) -> Array:
    if tables.name_vectors is None:
        raise KnowledgeBaseError("The knowledge base has no vectors of names.")
    width = tables.name_vectors.shape[1]
    if vectors.ndim != 2 or vectors.shape[1] != width:
        raise InputError(
            f"The vectors of the mentions have the shape {list(vectors.shape)}; [n, {width}] is "
            "required, as of the names in the knowledge base."
        )
    if not np.isfinite(vectors).all():
        raise InputError("The vectors of the mentions contain values that are NaN or infinite.")
    return vectors


def _search(tables: Tables, mentions: Array, settings: NearestSettings) -> list[_Near]:
    """mentions: (n, width) float64, of length 1 or zero."""
    names = tables.name_vectors
    assert names is not None
    nearest = [_Near.none() for _ in mentions]
    # Below its bound, a name cannot be among the best.
    bounds = np.where(mentions.any(axis=1), settings.min_likeness or -1.0, np.inf)
    single = mentions.astype(np.float32)
    for first in range(0, len(names), _NAMES):
        cosines = _cosines(single, names[first : first + _NAMES].astype(np.float32))
        keys = np.arange(first, first + cosines.shape[1])
        hopeful = (cosines >= (bounds - _SLACK)[:, None]).any(axis=1)
        for i in np.flatnonzero(hopeful).tolist():
            nearest[i], bounds[i] = _extended(
                nearest[i], bounds[i], tables, mentions[i], keys, cosines[i], settings.k
            )
        tables.store.release()
    return nearest


def _cosines(mentions: Array, names: Array) -> Array:
    """(n_mentions, n_names) in single precision; minus infinity for names that are zero."""
    lengths = np.sqrt(np.einsum("nd,nd->n", names, names))
    # Squares of very small or large values have no place in single precision.
    extreme = ~((lengths > 1e-15) & (lengths < 1e15))
    lengths[extreme] = np.linalg.norm(names[extreme].astype(np.float64), axis=1)
    cosines = mentions @ names.T
    cosines /= np.where(lengths > 0, lengths, 1)
    cosines[:, lengths == 0] = -np.inf
    return cosines


def _extended(
    near: _Near, bound: float, tables: Tables, mention: Array, keys: Array, cosines: Array, k: int
) -> tuple[_Near, float]:
    """The best of ``near`` and of the entities of names, and the new bound.

    keys: (n,) rows of the names. cosines: (n,) in single precision.

    The best names are compared first. They may have fewer than ``k`` entities; then more of them
    are compared, until no other name can be better.
    """
    n_best = 2 * k
    while True:
        n_best = min(n_best, len(cosines))
        lowest = float(np.partition(cosines, -n_best)[-n_best])
        chosen = keys[cosines >= max(lowest, bound) - _SLACK]
        extended = near.best(_entities(tables, mention, chosen, bound), k)
        enough = len(extended.rows) == k
        reached = max(bound, float(extended.cosines[-1])) if enough else bound
        if reached >= lowest or n_best == len(cosines):
            return extended, reached
        n_best *= 4


def _entities(tables: Tables, mention: Array, keys: Array, bound: float) -> _Near:
    """The entities of names (n,) whose cosine with a mention (width,) is at least ``bound``."""
    names = tables.name_vectors
    assert names is not None
    cosines = np.zeros(len(keys))
    # In double precision, and not as a matrix product, whose rounding depends on its size.
    for start in range(0, len(keys), _EXACT_ROWS):
        block = names[keys[start : start + _EXACT_ROWS]].astype(np.float64, order="C")
        block = _directions(block)
        cosines[start : start + len(block)] = (block * mention).sum(axis=1)
    cosines = np.round(cosines, DIGITS)
    keys, cosines = keys[cosines >= bound], cosines[cosines >= bound]
    meanings = tables.meanings_of_keys(keys)
    return _Near(meanings.entities, meanings.forms, cosines[meanings.aliases], meanings.priors)


def _directions(vectors: Array) -> Array:
    """Vectors (n, width) of length 1; zeros stay zeros."""
    # The largest value first: squares of small or large values have no place in a float.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scaled = vectors / np.where(largest > 0, largest, 1)
    lengths = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    return scaled / np.where(lengths > 0, lengths, 1)


def _found(near: _Near) -> list[FoundEntity]:
    return [
        FoundEntity(row, form, prior, "nearest", max(0.0, cosine))
        for row, form, cosine, prior in zip(
            near.rows.tolist(), near.forms.tolist(), near.cosines.tolist(), near.priors.tolist()
        )
    ]
