"""Global inference: the mentions of a sequence are resolved one after the other, and each resolved
mention shows its entity to the others (Yamada et al. 2022, "confidence order")."""

from collections.abc import Callable

import numpy as np
import torch

from ..calibration import sigmoid
from ..model.packing import Array
from ..ties import likeliest

Accepts = Callable[[Array], Array]
"""From the probabilities (n,) of the best candidates: which are links (n,)."""
EncodeAgain = Callable[[Array, Array], torch.Tensor]
"""From the inputs of all mentions, (n,) rows of the entity table or -1 for [MASK], and the numbers
(m,) of some mentions: the logits (m, 1 + K) of these."""


def resolve(
    first: torch.Tensor,
    rows: Array,
    sequences: Array,
    encode_again: EncodeAgain,
    nil_bias: float,
    max_rounds: int,
    accepts: Accepts | None = None,
) -> tuple[torch.Tensor, int]:
    """Logits (n, 1 + K), each from the pass in which its mention was resolved.

    A round is a pass through the encoder. After it the most certain open mention of each sequence
    is resolved. If its best candidate has a row, this becomes the input of the mention, and the
    sequence is encoded again. Otherwise ("none of the candidates", not probable enough, or no row)
    it stays [MASK], and the next one is resolved without another pass.

    first: logits of the first pass, in which all mentions are [MASK]; of "none of the candidates",
        and of each candidate. rows: (n, K) of candidates in the entity table, or -1.
    sequences: (n,) sequences do not influence each other.
    nil_bias: subtracted from the logit of "none of the candidates" for decisions.
    accepts: default: all are links.

    Also returns the number of mentions that are open after ``max_rounds``; they have the logits of
    the last pass.
    """
    logits = first.clone()
    inputs = np.full(len(rows), -1, dtype=np.int64)
    is_open = np.ones(len(rows), dtype=bool)
    n_rounds = 1
    while True:
        best, certainty = _decide(logits, nil_bias)
        best_rows = np.append(np.full((len(rows), 1), -1), rows, 1)[np.arange(len(rows)), best]
        if accepts is not None:
            best_rows = np.where(accepts(sigmoid(certainty)), best_rows, -1)
        for own in _by_sequence(np.flatnonzero(is_open), sequences):
            resolved = _resolved(certainty[own], best_rows[own])
            is_open[own[resolved]] = False
            inputs[own[resolved]] = best_rows[own[resolved]]
        left = np.flatnonzero(is_open)
        if not len(left) or n_rounds == max_rounds:
            return logits, len(left)
        logits[torch.from_numpy(left).to(logits.device)] = encode_again(inputs, left)
        n_rounds += 1


def _decide(logits: torch.Tensor, nil_bias: float) -> tuple[Array, Array]:
    """(n,) the best class of each mention; (n,) how certain it is: the logarithm of its odds, of
    which small differences count if probabilities are close to 1."""
    values = logits.detach().cpu().numpy().astype(np.float64)
    values[:, 0] -= nil_bias
    best, each = likeliest(values), np.arange(len(values))
    others = values.copy()
    others[each, best] = -np.inf
    return best, values[each, best] - np.logaddexp.reduce(others, axis=1)


def _by_sequence(mentions: Array, sequences: Array) -> list[Array]:
    """The mentions of each sequence, in the order of the text."""
    order = mentions[np.argsort(sequences[mentions], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(sequences[order])) + 1) if len(order) else []


def _resolved(certainty: Array, best_rows: Array) -> list[int]:
    """Which mentions of a sequence are resolved after a pass: the most certain ones, up to the
    first whose best candidate has a row."""
    left, resolved = list(range(len(certainty))), []
    while left:
        i = left.pop(int(likeliest(certainty[left][None])[0]))
        resolved.append(i)
        if best_rows[i] >= 0:
            break
    return resolved
