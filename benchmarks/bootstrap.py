"""Bootstrap of F1, and the paired one of its differences."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .scoring import Item

Array = np.ndarray
_CHUNK = 1000


class Interval(NamedTuple):
    """An F1 or a difference of two, in points, its 95 % interval, and how many seeds it pools."""

    value: float
    low: float
    high: float
    n_seeds: int

    def __str__(self) -> str:
        """As tables show a difference."""
        return f"{self.value:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


class Counts(NamedTuple):
    """What each document has of each class, (n_seeds, n_docs, n_classes): right, predicted, gold.
    With one class, F1 over them is micro, else macro."""

    right: Array
    predicted: Array
    gold: Array


def count(
    runs: Sequence[Sequence[Item]],
    gold: Sequence[Item],
    n_docs: int,
    classes: Sequence[str] | None = None,
) -> Counts:
    """Count what several runs (seeds) found in the same documents. classes: labels that are
    counted apart; by default all are one class."""
    wanted = set(gold)
    names = None if classes is None else {name: i for i, name in enumerate(classes)}

    def per_doc(items: Sequence[Item]) -> Array:
        table = np.zeros((n_docs, 1 if names is None else len(names)))
        for doc, _, _, label in items:
            table[doc, 0 if names is None else names[label]] += 1
        return table

    right = np.stack([per_doc([x for x in run if x in wanted]) for run in runs])
    predicted = np.stack([per_doc(run) for run in runs])
    return Counts(right, predicted, np.broadcast_to(per_doc(gold), right.shape))


def mean_f1(counts: Counts, weights: Array) -> Array:
    """F1 in percent, the mean over classes that the drawn gold has and over seeds. weights:
    (n_samples, n_docs) how often each document is drawn -> (n_samples,)."""

    def drawn(table: Array) -> Array:
        """(n_seeds, n_docs, n_classes) -> (n_samples, n_seeds, n_classes)."""
        return np.tensordot(weights, table, axes=(1, 1))

    gold = drawn(counts.gold)
    f1 = 200.0 * drawn(counts.right) / np.maximum(drawn(counts.predicted) + gold, 1.0)
    known = gold > 0 if gold.shape[-1] > 1 else np.ones_like(gold, dtype=bool)
    return ((f1 * known).sum(-1) / np.maximum(known.sum(-1), 1)).mean(-1)


def paired_bootstrap(a: Counts, b: Counts, n_samples: int = 10_000, seed: int = 0) -> Interval:
    """The interval of F1(b) - F1(a) over documents drawn with replacement.

    Both are scored on the same draw, each as the mean F1 of its seeds; which seeds were trained
    is not drawn, so the interval does not hold their variance.
    """
    return _interval(lambda weights: mean_f1(b, weights) - mean_f1(a, weights), a, n_samples, seed)


def bootstrap(a: Counts, n_samples: int = 10_000, seed: int = 0) -> Interval:
    """The interval of F1(a), drawn in the same way."""
    return _interval(lambda weights: mean_f1(a, weights), a, n_samples, seed)


def _interval(value: Callable[[Array], Array], of: Counts, n_samples: int, seed: int) -> Interval:
    n_seeds, n_docs, _ = of.right.shape
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, n_samples, _CHUNK):
        size = min(_CHUNK, n_samples - start)
        weights = rng.multinomial(n_docs, np.full(n_docs, 1.0 / n_docs), size).astype(float)
        parts.append(value(weights))
    low, high = np.percentile(np.concatenate(parts), [2.5, 97.5])
    return Interval(float(value(np.ones((1, n_docs)))[0]), float(low), float(high), n_seeds)
