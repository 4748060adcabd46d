"""The loss of scored candidate spans, and its gradient."""

import numpy as np
from thinc.api import Ops

from ..layers.span_network import SpanScores

Array = np.ndarray


def span_loss(
    ops: Ops, scores: SpanScores, targets: Array, annotated: Array, nil: int, n_tokens: int
) -> tuple[float, SpanScores]:
    """Cross-entropy of the scored candidates plus binary cross-entropy of the filter.

    targets: (n_candidates,) class numbers, ``nil`` for no entity. annotated: (n_candidates,), False
    excludes a candidate from the loss. Both terms are sums divided by ``n_tokens``. Returns the
    loss and its gradient for every score.
    """
    xp = ops.xp
    scale = 1.0 / max(n_tokens, 1)
    weights = xp.asarray(annotated[scores.rows], dtype="f") * scale
    classes = xp.asarray(targets[scores.rows])
    rows = xp.arange(len(classes))
    d_logits = ops.softmax(scores.logits) if len(classes) else xp.zeros_like(scores.logits)
    of_gold = d_logits[rows, classes]  # probabilities
    loss = -(xp.log(xp.maximum(of_gold, 1e-30)) * weights).sum()
    d_logits[rows, classes] -= 1.0
    d_logits *= weights[:, None]

    positive = xp.asarray(targets[scores.filtered] != nil, dtype="f")
    filter_weights = xp.asarray(annotated[scores.filtered], dtype="f") * scale
    x = scores.filter_logits
    # softplus(x) - x * positive, in the form that cannot overflow.
    cost = xp.maximum(x, 0) - x * positive + xp.log1p(xp.exp(-xp.abs(x)))
    loss = loss + (cost * filter_weights).sum()
    d_filter = (ops.sigmoid(x) - positive) * filter_weights
    return float(loss), scores._replace(logits=d_logits, filter_logits=d_filter)
