"""Decisions between equal scores that do not depend on rounding.

The last bits of a score depend on what else was in the batch. Scores that differ by less than
``TOLERANCE`` count as equal, so that order in the text decides, and not those bits. (Where scores
lie so densely that this would make different ones equal, they are compared as they are.)
"""

from typing import Any

import numpy as np

Array = np.ndarray

TOLERANCE = 1e-4
"""Of logits: far above what rounding changes, far below what a network means."""
SCORE_TOLERANCE = TOLERANCE / 4
"""The most that a score (from 0 to 1) changes if a logit changes by ``TOLERANCE``."""


def reaches(score: Any, least: Any) -> Any:
    """Whether a score is at least as high as a threshold; also of arrays. A threshold may be
    infinite: no score reaches it."""
    return score >= least - SCORE_TOLERANCE


def likeliest(scores: Array) -> Array:
    """(n,) the column of the largest score in each row of (n, m); of equal ones the first."""
    return (scores >= scores.max(-1, keepdims=True) - TOLERANCE).argmax(-1)


def levels(scores: Array, groups: Array) -> Array:
    """(n,) integers in the order of the scores, equal for equal scores of one group.

    scores: (n,). groups: (n,) e.g. the document of each; other groups do not matter to a score.
    """
    if not len(scores):
        return np.zeros(0, dtype=np.int64)
    # Scores 0.3, 0.1, 0.30001 of one group: sorted 0.1, 0.3, 0.30001 -> levels 1, 2, 2.
    order = np.lexsort((scores, groups))
    ordered, of_group = scores[order], groups[order]
    with np.errstate(invalid="ignore"):  # two infinite scores are equal
        rises = np.diff(ordered, prepend=-np.inf) > TOLERANCE
        rises |= np.diff(of_group, prepend=-1) != 0
        first = np.flatnonzero(rises)
        last = np.append(first[1:], len(ordered)) - 1
        # Small steps may lead to a different score: then each is a level of its own.
        dense = (ordered[last] - ordered[first] > TOLERANCE)[np.cumsum(rises) - 1]
    rises[dense] = True
    result = np.empty(len(scores), dtype=np.int64)
    result[order] = np.cumsum(rises)
    return result
