"""Type biases: which type of candidate is right more often, learned from gold links."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from ..report import LOGGER
from .class_loss import Targets
from .link_query import LinkQuery

Array = np.ndarray

_SHRINK = 1.0
"""Of a penalty on squares: a bias is as if drawn from a standard normal distribution."""
_MAX_ROUNDS, _LEAST_STEP = 3000, 1e-4
_N_SHOWN = 10
_ENOUGH = 20_000
"""Mentions; more would change little, and take minutes."""


def _distinct(biases: dict[str, float]) -> dict[str, float]:
    counts = Counter(name.casefold() for name in biases)
    twice = sorted(name for name in biases if counts[name.casefold()] > 1)
    if twice:
        raise ValueError(f"{' and '.join(map(repr, twice))} are the same type: case is ignored.")
    return biases


TypeBias = Annotated[dict[str, float], AfterValidator(_distinct)]
"""Type -> bias; no two types differ only in case, because they are compared without it."""


class TypeChoices:
    """Mentions with candidates of several types, the right one among them.

    The biases are those of a conditional logit: added to the logits of candidates by type, they
    make the right candidates of all mentions most probable.
    """

    def __init__(self) -> None:
        self._types: list[str] = []
        self._logits: list[Array] = []
        self._right: list[Array] = []

    def add(self, types: Sequence[str], logits: Array, right: Array) -> None:
        """The candidates of one mention. logits: (n,) without a bias. right: (n,) True or False."""
        n_types = len({x.casefold() for x in types})
        if len(self._logits) < _ENOUGH and n_types > 1 and right.any():
            self._types += types
            self._logits.append(logits)
            self._right.append(right)

    def biases(self) -> dict[str, float]:
        """Type -> bias; empty if no mention tells types apart. Types that are no better and no
        worse than others are near 0. Types that differ only in case are one, as where biases are
        looked up, with the spelling that was added last."""
        if not self._types:
            return {}
        spelled = {x.casefold(): x for x in self._types}
        names, of = np.unique([x.casefold() for x in self._types], return_inverse=True)
        sizes = np.asarray([len(x) for x in self._logits])
        starts, mention = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
        logits, right = np.concatenate(self._logits), np.concatenate(self._right)
        n_mentions = np.bincount(np.unique(mention * len(names) + of) % len(names))
        bias = np.zeros(len(names))
        for _ in range(_MAX_ROUNDS):
            total = logits + bias[of]
            p = np.exp(total - np.maximum.reduceat(total, starts)[mention])
            p /= np.add.reduceat(p, starts)[mention]
            p_right = p * right
            p_right /= np.add.reduceat(p_right, starts)[mention]
            gradient = np.bincount(of, p_right - p) - _SHRINK * bias
            step = gradient / (n_mentions / 2 + _SHRINK)  # below the curvature: it cannot diverge
            bias += step
            if np.abs(step).max() < _LEAST_STEP:
                break
        return {spelled[str(name)]: round(float(x), 2) for name, x in zip(names, bias)}


def add_choices(choices: TypeChoices, query: LinkQuery, targets: Targets) -> None:
    """Add the mentions of a query, with the terms of their logits that need no text."""
    types = query.kb.tables.types
    for rows, features, right in zip(query.rows, query.features, targets[0][:, 1:]):
        exists = rows >= 0
        names = [types[row] for row in rows[exists].tolist()]
        choices.add(names, features[exists].sum(-1), right[exists] > 0)


def log_biases(name: str, learned: Mapping[str, float]) -> None:
    """Log the largest biases that a component learned."""
    shown = sorted(learned.items(), key=lambda x: -abs(x[1]))[:_N_SHOWN]
    LOGGER.info(
        "%s: type biases learned from the data (setting type_bias): %s.",
        name,
        ", ".join(f"{kind or 'none'} {bias:+.1f}" for kind, bias in shown),
    )
