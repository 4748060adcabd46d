"""Calibration: scores that are right as often as they say.

Probabilities of a trained network are too high, more so for some labels than for others. A
:class:`CalibrationTable`, fitted on annotated documents, maps them to the share of answers that are
right: a line in logits for every label (Platt 1999), near that of all answers where a label has
few. The order of the answers of one label stays as it is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from typing_extensions import TypedDict  # pydantic requires this one before Python 3.12

from .validation import Name, Positive, Probability

Array = np.ndarray

N_BINS = 10
"""Bins of equal width in which scores and the shares of right answers are compared."""
LEAST_ANSWERS = 50
"""Fewer answers say too little about scores and thresholds."""

_N_FOLDS = 5
_RIDGES = np.asarray([2.0, 20.0])
"""Strengths that pull shift and slope of a label to those of all: a label with few answers has
nearly these."""
_SLOPE_RIDGE = 1.0
"""Strength that pulls the slope of all to 1, where the answers do not tell it."""
_LEAST_SLOPE = 0.05
_N_STEPS, _LEAST_GAIN, _TINY = 100, 1e-12, 1e-12
_LARGEST_LOGIT = 16.0
_DIGITS = 6


class _Lines(TypedDict):
    slope: Positive
    shift: float
    slopes: dict[Name, Positive]
    shifts: dict[Name, float]
    least: Probability


class CalibrationTable(_Lines, total=False):
    """The logit of a score is slope x logit of the probability + shift.

    slope, shift: of labels that have none of their own. slopes, shifts: label -> its own.
    least: less probable answers were left out of the fit. Their scores are not above their
    probabilities. before: the least score of probabilities that are not calibrated, which the
    component had.
    """

    before: Probability | None


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
    """(n,) scores. labels: all labels; of_label: (n,) the number of each answer's label."""
    slopes, shifts = (
        np.asarray([own.get(label, of_all) for label in labels])[of_label]
        for own, of_all in ((table["slopes"], table["slope"]), (table["shifts"], table["shift"]))
    )
    x = logit(probabilities)
    scores = slopes * x + shifts
    least = logit(np.asarray(table["least"]))
    below = np.minimum(slopes * least + shifts, least) + np.maximum(slopes, 1) * (x - least)
    return sigmoid(np.where(x < least, below, scores))


def fit_calibration(
    labels: Sequence[str],
    probabilities: Sequence[float] | Array,
    right: Sequence[bool],
    least: float = 0.0,
) -> CalibrationTable | None:
    """labels, probabilities, right: of each answer. least: less probable answers were left out.
    None for fewer than LEAST_ANSWERS answers."""
    if len(labels) < LEAST_ANSWERS:
        return None
    names = sorted(set(labels))
    of_label = np.searchsorted(names, labels)
    x, is_right = logit(np.asarray(probabilities)), np.asarray(right, dtype=np.float64)
    lines = _fit_lines(x, is_right, of_label, len(names))
    # As many digits as JSON keeps, so that a saved pipeline gives the same scores.
    (shift, slope), *of_labels = np.round(lines, _DIGITS).tolist()
    return {
        "slope": slope,
        "shift": shift,
        "slopes": {name: x for name, (_, x) in zip(names, of_labels)},
        "shifts": {name: x for name, (x, _) in zip(names, of_labels)},
        "least": least,
    }


def _fit_lines(x: Array, right: Array, of_label: Array, n_labels: int) -> Array:
    """(1 + n_labels, 2) shift and slope of all answers, and of each label: logistic regression by
    Newton's method, with ridges."""
    n_right = right.sum()
    # Targets that are not certain, as in Platt (1999): what is always right has a finite score.
    target = np.where(right > 0, (n_right + 1) / (n_right + 2), 1 / (len(x) - n_right + 2))
    # Around the mean, so that a ridge of slopes does not pull at shifts.
    mean = x.mean()
    features = np.stack([np.ones_like(x), x - mean], axis=1)

    def logits(of_all: Array, own: Array) -> Array:
        return ((of_all + own[of_label]) * features).sum(1)

    def loss(of_all: Array, own: Array) -> float:
        z = logits(of_all, own)
        pulls = _SLOPE_RIDGE * (of_all[1] - 1) ** 2 + (own**2 @ _RIDGES).sum()
        return float((np.logaddexp(0, z) - target * z).sum() + pulls / 2)

    # The line of all, and how far that of each label is from it. It begins where every answer has
    # weight: answers of which a steep line is too sure have none, and steps would be too long.
    of_all, own = np.zeros(2), np.zeros((n_labels, 2))
    for _ in range(_N_STEPS):
        p = sigmoid(logits(of_all, own))
        steps = _newton_steps(of_all, own, p - target, p * (1 - p), features, of_label)
        before, share = loss(of_all, own), 1.0
        nearer = of_all - steps[0], own - steps[1]
        while loss(*nearer) > before and share > _LEAST_GAIN:
            share /= 2
            nearer = of_all - share * steps[0], own - share * steps[1]
        gain = before - loss(*nearer)
        if gain > 0:
            of_all, own = nearer
        if gain <= _LEAST_GAIN * before:
            break
    lines = np.concatenate([of_all[None], of_all + own])
    # Where slopes are raised, the score of the mean answer stays.
    means = np.bincount(of_label, x - mean, n_labels) / np.bincount(of_label, minlength=n_labels)
    slopes = np.maximum(lines[:, 1], _LEAST_SLOPE)
    lines[:, 0] += (lines[:, 1] - slopes) * np.concatenate([[0.0], means]) - slopes * mean
    lines[:, 1] = slopes
    return lines


def _newton_steps(
    of_all: Array, own: Array, error: Array, weight: Array, features: Array, of_label: Array
) -> tuple[Array, Array]:
    """The steps of the line of all and of the labels' distances from it. error, weight:
    (n_answers,) first and second derivative of the loss by the logit.

    The equations of a label contain only its distance and the line of all, so they are solved label
    by label, and what is left of them for that line.
    """
    n_labels = len(own)
    gradient, curvature = np.zeros((n_labels, 2)), np.zeros((n_labels, 2, 2))
    np.add.at(gradient, of_label, error[:, None] * features)
    outer = features[:, :, None] * features[:, None, :]
    np.add.at(curvature, of_label, weight[:, None, None] * outer)
    inverse = np.linalg.inv(curvature + np.diag(_RIDGES))
    own_gradient = gradient + own * _RIDGES
    through_own = curvature @ inverse
    left = (curvature - through_own @ curvature).sum(0) + np.diag([_TINY, _SLOPE_RIDGE])
    rest = (gradient - np.einsum("nij,nj->ni", through_own, own_gradient)).sum(0)
    step = np.linalg.solve(left, rest + [0.0, _SLOPE_RIDGE * (of_all[1] - 1)])
    return step, np.einsum("nij,nj->ni", inverse, own_gradient - curvature @ step)


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
