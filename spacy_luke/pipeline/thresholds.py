"""The least score of an answer: by F, or for a wanted precision or recall."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import ConfigError
from ..metrics.answers import Answer, Answers
from ..ties import SCORE_TOLERANCE

Array = np.ndarray

_PRIOR = 10.0
"""Answers that are right as often as their scores say, added to those that were counted: the
precision of a few answers is mostly chance."""
_MARGIN = 0.02
"""The same answer may have a slightly lower score in another batch."""


@dataclass(frozen=True)
class Goal:
    """What thresholds are chosen for: the best F, or with one of the two set, the best of the other
    figure. each_label: reach it for every label, with a threshold of its own."""

    precision: float | None = None
    recall: float | None = None
    each_label: bool = False

    def __post_init__(self) -> None:
        if self.precision is not None and self.recall is not None:
            raise ConfigError("Only one of precision and recall can be wanted.")
        for name in ("precision", "recall"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ConfigError(f"{name} is {value}; it must be between 0 and 1.")
        if self.each_label and self.precision is None and self.recall is None:
            raise ConfigError("each_label requires a wanted precision or recall.")


@dataclass(frozen=True)
class Thresholds:
    """threshold: for all labels that are not in by_label; with ``each_label``, of labels of which
    nothing is known. by_label: None for a label that is never written. unreached: the labels for
    which the goal cannot be reached on the data. without_gold: of ``each_label``, the labels that
    no gold annotation has."""

    threshold: float
    by_label: dict[str, float | None]
    unreached: list[str]
    without_gold: list[str] = field(default_factory=list)


def choose_thresholds(
    answers: Answers,
    goal: Goal,
    labels: Sequence[str],
    least: float = 0.0,
    calibrated: bool = True,
) -> Thresholds | None:
    """None if the goal cannot be reached for all labels together or, with ``each_label``, for any.

    answers: all that have at least the score ``least``. labels: of the component. calibrated:
    whether a score says how often an answer is right; if not, a wanted precision must also be that
    of the answers that are counted. No threshold is below ``least``, because nothing is known of
    what it would accept. For a wanted precision, none is much below both that and the lowest score.
    """
    if not goal.each_label:
        value = _choose(answers.found, answers.n_gold.total(), goal, least, calibrated)
        return None if value is None else Thresholds(value, {}, [])
    of_label: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers.found:
        of_label[answer.label].append(answer)
    with_gold = [x for x in labels if answers.n_gold[x]]
    chosen = {
        x: _choose(of_label[x], answers.n_gold[x], goal, least, calibrated) for x in with_gold
    }
    unreached = [x for x, value in chosen.items() if value is None]
    if len(unreached) == len(chosen):
        return None
    # Of a label without gold nothing is known to be right, and nothing to be missed.
    missed = least if goal.recall is not None else None
    values = {x: missed if chosen.get(x) is None else chosen[x] for x in labels}
    return Thresholds(least, values, unreached, [x for x in labels if x not in chosen])


def highest(
    answers: Answers, goal: Goal, labels: Sequence[str], least: float = 0.0, calibrated: bool = True
) -> float:
    """The highest precision or recall, rounded down to percents, that :func:`choose_thresholds`
    reaches (with ``each_label`` for any label) in place of that of a goal."""
    for percent in range(99, 0, -1):
        wanted = percent / 100
        of_precision = goal.precision is not None
        lower = replace(goal, precision=wanted) if of_precision else replace(goal, recall=wanted)
        if choose_thresholds(answers, lower, labels, least, calibrated) is not None:
            return wanted
    return 0.0


def _choose(
    answers: Sequence[Answer], n_gold: int, goal: Goal, least: float, calibrated: bool
) -> float | None:
    """A threshold, or None if no threshold reaches the goal."""
    if not answers and goal.precision is None and goal.recall is None:
        return least
    scores = np.asarray([x.score for x in answers])
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    right = np.cumsum(np.asarray([x.right for x in answers], dtype=np.float64)[order])
    n = np.arange(1, len(scores) + 1)
    # A threshold separates answers only if their scores differ: [.9, .9, .4] -> [F, T, T].
    apart = scores[:-1] - scores[1:] > 2 * SCORE_TOLERANCE
    separates = np.append(apart, True) if len(scores) else n > 0
    if goal.precision is not None:
        smoothed = (right + _PRIOR * np.cumsum(scores) / n) / (n + _PRIOR)
        # The scores alone cannot promise it.
        counted = right / n >= goal.precision if not calibrated else right > 0
        possible = np.flatnonzero((smoothed >= goal.precision) & counted & separates)
        best = possible[-1:]
    elif goal.recall is not None:
        possible = np.flatnonzero((right >= goal.recall * n_gold) & separates)
        best = possible[:1]
    else:
        f = np.where(separates, 2 * right / (n + max(n_gold, 1)), -1.0)
        best = np.flatnonzero(f == f.max(initial=0.0))[-1:]
    if not len(best):
        return None
    last = int(best[0])
    lowest = least
    if goal.precision is not None:
        # Of scores below the lowest, only those that promise the wanted precision would keep it.
        lowest = max(least, min(scores[-1], goal.precision) - _MARGIN)
    return _below(scores, last, lowest)


def _below(scores: Array, last: int, lowest: float) -> float:
    """A threshold between the last accepted score and the next. Where all are accepted, the next
    may be just below ``lowest``; 0 if that is 0."""
    following = scores[last + 1] if last + 1 < len(scores) else lowest
    # As many digits as JSON keeps, so that a saved pipeline gives the same answers.
    return round(float((scores[last] + following) / 2), 8) if following else 0.0
