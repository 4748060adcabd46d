"""Paired bootstrap of F1 differences."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .scoring import Entity

Array = np.ndarray
_CHUNK = 1000


class Interval(NamedTuple):
    """A difference of F1 in points, its 95 % interval, and how many seeds it pools."""

    difference: float
    low: float
    high: float
    n_seeds: int


class Counts(NamedTuple):
    """Entities of each document, (n_seeds, n_docs): right, predicted, gold."""

    right: Array
    predicted: Array
    gold: Array


def count(runs: Sequence[Sequence[Entity]], gold: Sequence[Entity], n_docs: int) -> Counts:
    """Count the entities of several runs (seeds) on the same documents."""
    wanted = set(gold)

    def per_doc(entities: Sequence[Entity]) -> Array:
        found = Counter(entity.doc for entity in entities)
        return np.asarray([found[i] for i in range(n_docs)], dtype=np.float64)

    right = np.stack([per_doc([x for x in run if x in wanted]) for run in runs])
    predicted = np.stack([per_doc(run) for run in runs])
    return Counts(right, predicted, np.broadcast_to(per_doc(gold), right.shape))


def mean_f1(counts: Counts, weights: Array) -> Array:
    """Micro F1 in percent, mean over seeds. weights: (n_samples, n_docs) how often each
    document is drawn -> (n_samples,)."""
    right = weights @ counts.right.T
    total = weights @ (counts.predicted + counts.gold).T
    return (200.0 * right / np.maximum(total, 1.0)).mean(-1)


def paired_bootstrap(a: Counts, b: Counts, n_samples: int = 10_000, seed: int = 0) -> Interval:
    """The interval of F1(b) - F1(a) over documents drawn with replacement.

    Both are scored on the same draw, each as the mean F1 of its seeds; which seeds were trained
    is not drawn, so the interval does not hold their variance.
    """
    n_docs = a.right.shape[1]
    everything = np.ones((1, n_docs))
    difference = float((mean_f1(b, everything) - mean_f1(a, everything))[0])
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, n_samples, _CHUNK):
        size = min(_CHUNK, n_samples - start)
        weights = rng.multinomial(n_docs, np.full(n_docs, 1.0 / n_docs), size).astype(float)
        parts.append(mean_f1(b, weights) - mean_f1(a, weights))
    low, high = np.percentile(np.concatenate(parts), [2.5, 97.5])
    return Interval(difference, float(low), float(high), len(a.right))
