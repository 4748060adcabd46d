"""How often an alias means each of its entities."""

from collections.abc import Callable

import numpy as np

from ..errors import CorpusError
from .arrays import Array
from .entity import Findings, check_count

_TOLERANCE = 1e-4
"""spaCy stores priors in single precision."""


def check_weight(weight: float, key: str, where: str, priors: bool) -> float:
    """A count, or a probability if the knowledge base has ``priors``. Raises CorpusError."""
    number = check_count(weight, key, where)
    if priors and number > 1 + _TOLERANCE:
        raise CorpusError(
            f"{where}: {key} is {weight!r}. This knowledge base has priors of aliases, from 0 to 1."
        )
    return number


def limit_meanings(
    forms: Array, sizes: Array, most: int, text_of: Callable[[int], str], findings: Findings
) -> Array:
    """Which pairs (n,) to keep so that no form means more than ``most`` entities: those of the
    largest sizes, the first ones among equals.

    forms: (n,) the form of each pair. sizes: (n,) how often it means the entity.
    """
    kept = np.ones(len(forms), bool)
    counts = np.bincount(forms) if len(forms) else np.zeros(0, np.int64)
    crowded = np.flatnonzero(counts > most)
    if not len(crowded):
        return kept
    pairs = np.flatnonzero(np.isin(forms, crowded))
    pairs = pairs[np.lexsort((pairs, -sizes[pairs], forms[pairs]))]
    starts = np.flatnonzero(np.diff(forms[pairs], prepend=-1))
    ranks = np.arange(len(pairs)) - np.repeat(starts, counts[crowded])
    kept[pairs[ranks >= most]] = False
    largest = int(crowded[np.argmax(counts[crowded])])
    place = f"{text_of(int(crowded[0]))!r}"
    findings.add(f"aliases that mean more than {most:,} entities", place, len(crowded))
    findings.add(
        "their meanings left out (the least frequent)",
        f"{text_of(largest)!r}, which means {counts[largest]:,}",
        int((~kept).sum()),
    )
    return kept


def count_ambiguous(forms: Array, text_of: Callable[[int], str], findings: Findings) -> None:
    """Report aliases of several entities. forms: (n,) the form of each pair."""
    n_meanings = np.bincount(forms) if len(forms) else np.zeros(0, np.int64)
    several = np.flatnonzero(n_meanings > 1)
    if len(several):
        first = int(several[0])
        example = f"{text_of(first)!r}, which means {n_meanings[first]:,}"
        findings.add("aliases that mean several entities", example, len(several))


def share_priors(forms: Array, weights: Array, findings: Findings) -> Array:
    """Priors (n,) without NaN: pairs without a prior share what the others of their form leave.
    Priors of a form that sum to more than 1 are scaled; counted."""
    n_forms = int(forms.max()) + 1 if len(forms) else 0
    missing = np.isnan(weights)
    given = np.where(missing, 0.0, weights)
    totals = np.bincount(forms, given, n_forms)
    scaled = totals > 1 + _TOLERANCE
    findings.add("aliases whose priors were scaled to a sum of 1", n=int(scaled.sum()))
    n_missing = np.bincount(forms[missing], minlength=n_forms)
    rest = np.maximum(0.0, 1 - totals) / np.maximum(n_missing, 1)
    return np.where(missing, rest[forms], given / np.where(scaled, totals, 1.0)[forms])
