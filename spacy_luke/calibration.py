"""Calibration: scores that are right as often as they say.

Probabilities of a trained network are too high, more so for some labels than for others. A
:class:`CalibrationTable`, fitted on annotated documents, maps them to the share of answers that are
right (isotonic regression, as in Zadrozny and Elkan 2002, and a shift per label). The order of the
answers of one label stays as it is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from typing_extensions import TypedDict  # pydantic requires this one before Python 3.12

from .errors import ConfigError
from .validation import Name

Array = np.ndarray

N_BINS = 10
"""Bins of equal width in which scores and the shares of right answers are compared."""
LEAST_ANSWERS = 50
"""Fewer answers say too little about the scores."""

_N_FOLDS = 5
_PER_POINT = 50
_MOST_POINTS = 20
_PRIOR = 2.0
"""Answers with the average share of right ones that are added to every point."""
_RIDGE = 5.0
"""Strength that pulls the shift of a label to 0: a label with few answers has nearly none."""
_SLOPES = (0.05, 1.0)
"""Least and largest slope beyond the first and the last point, where it is that between them: the
order of the scores is kept there, too."""
_DISTANCE = 1e-3
"""Least distance of two points in both directions; closer ones are merged."""
_LARGEST_LOGIT = 16.0
_DIGITS = 6


class CalibrationTable(TypedDict):
    """A curve through points, linear in between, and what is added for each label.

    probabilities, scores: (n_points,) their logits; both ascend. shifts: label -> what is added to
    the logit of its scores.
    """

    probabilities: list[float]
    scores: list[float]
    shifts: dict[Name, float]


class Bin(NamedTuple):
    """Answers with scores of one bin. low: its lower limit. score: their mean."""

    low: float
    n: int
    score: float
    right: float


def logit(probabilities: Array) -> Array:
    p = np.asarray(probabilities, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p) - np.log1p(-p), -_LARGEST_LOGIT, _LARGEST_LOGIT)


def sigmoid(logits: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(logits, -50, 50)))


def calibrate(
    table: CalibrationTable, labels: Sequence[str], of_label: Array, probabilities: Array
) -> Array:
    """(n,) scores. labels: all labels; of_label: (n,) the number of each answer's label.

    Raises ConfigError if the points do not ascend.
    """
    x, y = (np.asarray(table[name]) for name in ("probabilities", "scores"))
    if not len(x) or len(x) != len(y) or (np.diff(x) <= 0).any() or (np.diff(y) < 0).any():
        raise ConfigError("The points of a calibration must ascend.")
    shift = np.asarray([table["shifts"].get(label, 0.0) for label in labels])
    return sigmoid(_along(x, y, logit(probabilities)) + shift[of_label])


def _along(x: Array, y: Array, logits: Array) -> Array:
    slope = (y[-1] - y[0]) / (x[-1] - x[0]) if len(x) > 1 else _SLOPES[0]
    beyond = logits - np.clip(logits, x[0], x[-1])
    return np.interp(logits, x, y) + np.clip(slope, *_SLOPES) * beyond


def fit_calibration(
    labels: Sequence[str],
    probabilities: Sequence[float] | Array,
    right: Sequence[bool],
    least: float = 0.0,
) -> CalibrationTable | None:
    """labels, probabilities, right: of each answer. least: less probable answers were left out; at
    this probability, where they begin, the curve is not above it. None for fewer than LEAST_ANSWERS
    answers."""
    if len(labels) < LEAST_ANSWERS:
        return None
    x, is_right = logit(np.asarray(probabilities)), np.asarray(right, dtype=np.float64)
    knots, values = _fit_points(x, is_right)
    start = float(logit(np.asarray(least)))
    if least and start < knots[0] - _DISTANCE:
        first = min(start, float(values[0]) - _DISTANCE)
        knots, values = np.append(start, knots), np.append(first, values)
    names = sorted(set(labels))
    of_label = np.searchsorted(names, labels)
    shifts = _fit_shifts(_along(knots, values, x), is_right, of_label, len(names))
    # As many digits as JSON keeps, so that a saved pipeline gives the same scores.
    return {
        "probabilities": [round(x, _DIGITS) for x in knots.tolist()],
        "scores": [round(x, _DIGITS) for x in values.tolist()],
        "shifts": {name: round(x, _DIGITS) for name, x in zip(names, shifts.tolist())},
    }


class _Pool(NamedTuple):
    """Answers of similar probability: their number, the sum of their logits, and how many are
    right."""

    n: float
    logits: float
    right: float


def _fit_points(x: Array, right: Array) -> tuple[Array, Array]:
    """Logits of probabilities and of shares of right answers, (n_points,) each: means of pools of
    answers, of which neighbours are merged until both ascend ("pool adjacent violators").

    Every pool has as large a part of the right answers and of the wrong ones together: if one kind
    is rare, pools are small where it is.
    """
    order = np.argsort(x, kind="stable")
    x, right = x[order], right[order]
    n, n_right = len(x), right.sum()
    n_wrong = n - n_right
    mean = (n_right + 0.5) / (n + 1)
    mass = np.cumsum(right / max(n_right, 1) + (1 - right) / max(n_wrong, 1))
    # As many answers as there would be with half of them right.
    n_points = int(np.clip(4 * n_right * n_wrong / n // _PER_POINT, 2, _MOST_POINTS))
    bounds = np.searchsorted(mass, mass[-1] * np.arange(1, n_points) / n_points)

    def share(pool: _Pool) -> float:
        return (pool.right + _PRIOR * mean) / (pool.n + _PRIOR)

    def ascend(one: _Pool, two: _Pool) -> bool:
        dx = two.logits / two.n - one.logits / one.n
        dy = logit(np.asarray(share(two))) - logit(np.asarray(share(one)))
        return bool(dx >= _DISTANCE and dy >= _DISTANCE)

    pools: list[_Pool] = []
    for part, of_part in zip(np.split(x, bounds), np.split(right, bounds)):
        if not len(part):
            continue
        pools.append(_Pool(len(part), float(part.sum()), float(of_part.sum())))
        while len(pools) > 1 and not ascend(*pools[-2:]):
            last, before = pools.pop(), pools.pop()
            pools.append(_Pool(*(a + b for a, b in zip(before, last))))
    knots = np.asarray([pool.logits / pool.n for pool in pools])
    return knots, logit(np.asarray([share(pool) for pool in pools]))


def _fit_shifts(logits: Array, right: Array, of_label: Array, n_labels: int) -> Array:
    """(n_labels,) by Newton's method: logistic regression with a ridge. Each shift depends only on
    the answers of its label; the steps are limited because far from 0 the curve is flat."""
    shifts = np.zeros(n_labels)
    for _ in range(50):
        p = sigmoid(logits + shifts[of_label])
        slope = np.bincount(of_label, p - right, n_labels) + _RIDGE * shifts
        curvature = np.bincount(of_label, p * (1 - p), n_labels) + _RIDGE
        shifts -= np.clip(slope / curvature, -1, 1)
    return shifts


def reliability(scores: Sequence[float], right: Sequence[bool]) -> list[Bin]:
    """The bins that contain answers."""
    score, is_right = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
    numbers = np.minimum((score * N_BINS).astype(int), N_BINS - 1)
    return [
        Bin(int(i) / N_BINS, len(rows), float(score[rows].mean()), float(is_right[rows].mean()))
        for i in np.unique(numbers)
        for rows in [np.flatnonzero(numbers == i)]
    ]


def calibration_error(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    """The mean distance of score and share of right answers over the bins, weighted by answers
    ("expected calibration error", Guo et al. 2017). None without answers."""
    bins = reliability(scores, right)
    return sum(x.n * abs(x.score - x.right) for x in bins) / len(scores) if bins else None


def error_by_chance(scores: Sequence[float]) -> float:
    """The error to expect of so many answers if every score is exactly right."""
    score = np.asarray(scores, dtype=np.float64)
    numbers = np.minimum((score * N_BINS).astype(int), N_BINS - 1)
    variances = np.bincount(numbers, score * (1 - score), N_BINS)
    return float(np.sqrt(2 / np.pi * variances).sum() / max(len(score), 1))


def held_out_scores(
    labels: Sequence[str],
    probabilities: Sequence[float],
    right: Sequence[bool],
    least: float = 0.0,
) -> Array | None:
    """(n,) scores if every fifth of the answers is calibrated by a fit on the others; None if these
    are too few. For the arguments see :func:`fit_calibration`."""
    names = sorted(set(labels))
    of_label, p = np.searchsorted(names, labels), np.asarray(probabilities)
    scores, rows = np.zeros(len(p)), np.arange(len(p))
    for held in np.array_split(rows, _N_FOLDS):
        others = np.delete(rows, held).tolist()
        of_others = [labels[i] for i in others], p[others], [right[i] for i in others]
        table = fit_calibration(*of_others, least)
        if table is None:
            return None
        scores[held] = calibrate(table, names, of_label[held], p[held])
    return scores
