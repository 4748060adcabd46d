"""Decisions between scores that do not depend on rounding.

The last bits of a score depend on what else was in the batch. Scores that differ by less than
``TOLERANCE`` count as equal, so that order in the text decides, and not those bits.
"""

import numpy as np

Array = np.ndarray

TOLERANCE = 1e-4
"""Of logits: far above what rounding changes, far below what a network means."""


def likeliest(scores: Array) -> Array:
    """(n,) the column of the largest score in each row of (n, m); of equal ones the first."""
    return (scores >= scores.max(-1, keepdims=True) - TOLERANCE).argmax(-1)


def levels(scores: Array, groups: Array) -> Array:
    """(n,) integers in the order of the scores, equal for equal scores of one group.

    scores: (n,). groups: (n,) e.g. the document of each; other groups do not matter to a score.
    """
    # Scores 0.3, 0.1, 0.30001 of one group: sorted 0.1, 0.3, 0.30001 -> levels 0, 1, 1.
    order = np.lexsort((scores, groups))
    ordered, of_group = scores[order], groups[order]
    with np.errstate(invalid="ignore"):  # two infinite scores are equal
        rises = np.diff(ordered) > TOLERANCE
    result = np.empty(len(scores), dtype=np.int64)
    result[order] = np.concatenate([[0], np.cumsum(rises | (np.diff(of_group) != 0))])[
        : len(scores)
    ]
    return result
