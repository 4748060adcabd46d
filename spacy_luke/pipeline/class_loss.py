"""Losses of classified rows, and their gradients: means over the rows that count."""

from typing import Any

import numpy as np
from thinc.api import Ops

Array = np.ndarray

Targets = tuple[Array, Array]
"""Gold classes of a query's rows, and which of them are known.

Classes: (n,) class numbers, or (n, C) with a 1 for every gold class. Known: (n,), False excludes a
row from the loss; or (n, C), False excludes one class of a row."""


def single_loss(ops: Ops, logits: Any, targets: Array) -> tuple[float, Any]:
    """Cross-entropy, and its gradient for the logits.

    logits: (n, C). targets: (n, C), a 1 for every class that is possible; a row of zeros is
    ignored. The loss of a row is -log(sum of the probabilities of its possible classes).
    """
    xp = ops.xp
    if not len(logits):
        return 0.0, xp.zeros_like(logits)
    gold = xp.asarray(targets, dtype="f")
    known = gold.max(axis=-1, keepdims=True)
    scale = known / max(float(known.sum()), 1.0)
    # An ignored row gets all classes: their probabilities sum to 1, and its loss is 0.
    gold = xp.maximum(gold, 1.0 - known)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probabilities = shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))
    of_gold = xp.where(gold > 0, log_probabilities, -xp.inf)
    top = of_gold.max(axis=-1, keepdims=True)
    log_sum = top + xp.log(xp.exp(of_gold - top).sum(axis=-1, keepdims=True))
    d_logits = (xp.exp(log_probabilities) - xp.exp(of_gold - log_sum)) * scale
    return float(-(log_sum * scale).sum()), d_logits


def binary_loss(
    ops: Ops, logits: Any, targets: Array, known: Array | None = None
) -> tuple[float, Any]:
    """Binary cross-entropy, summed over classes, and its gradient for the logits.

    logits, targets: (n, C). known: (n,), False excludes a row; or (n, C), False excludes one class
    of a row; by default all count.
    """
    xp = ops.xp
    if not len(logits):
        return 0.0, xp.zeros_like(logits)
    gold = xp.asarray(targets, dtype="f")
    scale: Any = 1.0 / len(logits)
    if known is not None:
        classes = known if known.ndim == 2 else known[:, None]
        scale = xp.asarray(classes, dtype="f") / max(float(classes.any(1).sum()), 1.0)
    # softplus(x) - x * gold, in the form that cannot overflow.
    cost = xp.maximum(logits, 0) - logits * gold + xp.log1p(xp.exp(-xp.abs(logits)))
    return float((cost * scale).sum()), (ops.sigmoid(logits) - gold) * scale
