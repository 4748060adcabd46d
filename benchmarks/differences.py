"""Differences of two rows on the same items, with an interval over documents."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray
_SAMPLES = 2000


def interval(difference: Array, of_doc: Array, seed: int = 0) -> tuple[float, float]:
    """95 % of the mean over samples of documents with replacement."""
    rng = np.random.default_rng(seed)
    docs, numbers = np.unique(of_doc, return_inverse=True)
    sums, sizes = np.bincount(numbers, difference), np.bincount(numbers)
    drawn = rng.integers(0, len(docs), (_SAMPLES, len(docs)))
    means = sums[drawn].sum(1) / sizes[drawn].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def gain(
    ours: Sequence[ArrayLike],
    others: Sequence[ArrayLike],
    docs: Sequence[ArrayLike],
    scale: float = 1.0,
) -> str:
    """Mean difference and interval, as tables show them.

    Each sequence is of runs (seeds, folds), and of their items: values, and numbers of documents,
    which different runs share if they have the same documents. scale: of a value of 1, in points.
    """
    values, theirs, of_doc = (
        np.concatenate([np.asarray(x) for x in y]) for y in (ours, others, docs)
    )
    difference = scale * np.subtract(values, theirs, dtype=float)
    low, high = interval(difference, of_doc)
    return f"{difference.mean():+.1f} [{low:+.1f}, {high:+.1f}]"
