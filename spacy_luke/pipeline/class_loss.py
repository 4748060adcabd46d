"""Losses of classified items, and their gradients: means over the items that are not left out."""

from typing import Any

import numpy as np
from thinc.api import Ops

Array = np.ndarray


Targets = tuple[Array, Array]
"""Gold classes of a query's rows, and which of them are known. The classes: (n,) numbers, or (n, C)
with a 1 for every class that holds. Known: (n,), False leaves a row out of the loss; or (n, C),
False leaves a class of a row out."""


def single_loss(ops: Ops, logits: Any, targets: Array) -> tuple[float, Any]:
    """Cross-entropy. logits: (n, C); targets: (n, C), one or more 1s per row: the possible
    classes. A row of zeros is ignored.

    The loss of a row is -log(sum of the probabilities of its classes).
    """
    xp = ops.xp
    if not len(logits):
        return 0.0, xp.zeros_like(logits)
    gold = xp.asarray(targets, dtype="f")
    known = gold.max(axis=-1, keepdims=True)
    scale = known / max(float(known.sum()), 1.0)
    gold = xp.maximum(gold, 1.0 - known)  # a row that is left out costs nothing in any class
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probabilities = shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))
    of_gold = xp.where(gold > 0, log_probabilities, -xp.inf)
    top = of_gold.max(axis=-1, keepdims=True)
    right = top + xp.log(xp.exp(of_gold - top).sum(axis=-1, keepdims=True))
    d_logits = (xp.exp(log_probabilities) - xp.exp(of_gold - right)) * scale
    return float(-(right * scale).sum()), d_logits


def binary_loss(
    ops: Ops, logits: Any, targets: Array, known: Array | None = None
) -> tuple[float, Any]:
    """Binary cross-entropy, summed over classes. logits, targets: (n, C). known: (n,) False
    leaves an item out, or (n, C) a class of an item."""
    xp = ops.xp
    if not len(logits):
        return 0.0, xp.zeros_like(logits)
    gold = xp.asarray(targets, dtype="f")
    scale: Any = 1.0 / len(logits)
    if known is not None:
        classes = known if known.ndim == 2 else known[:, None]
        scale = xp.asarray(classes, dtype="f") / max(float(classes.any(1).sum()), 1.0)
    # In the form that cannot overflow.
    cost = xp.maximum(logits, 0) - logits * gold + xp.log1p(xp.exp(-xp.abs(logits)))
    return float((cost * scale).sum()), (ops.sigmoid(logits) - gold) * scale
