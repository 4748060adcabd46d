"""Losses of classified items, and their gradients: means over the items that are not left out."""

from typing import Any

import numpy as np
from thinc.api import Ops

Array = np.ndarray


Targets = tuple[Array, Array]
"""Gold classes of a query's rows, and which of them are known. The classes: (n,) numbers, or (n, C)
with a 1 for every class that holds. Known: (n,), False leaves a row out of the loss."""


def single_loss(ops: Ops, logits: Any, targets: Array) -> tuple[float, Any]:
    """Cross-entropy. logits: (n, C); targets: (n, C), one 1 in a row, or none in a row that is to
    be left out."""
    xp = ops.xp
    if not len(logits):
        return 0.0, xp.zeros_like(logits)
    gold = xp.asarray(targets, dtype="f")
    known = gold.sum(axis=-1, keepdims=True)
    scale = known / max(float(known.sum()), 1.0)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_chances = shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))
    return float(-(log_chances * gold * scale).sum()), (xp.exp(log_chances) - gold) * scale


def binary_loss(
    ops: Ops, logits: Any, targets: Array, known: Array | None = None
) -> tuple[float, Any]:
    """Binary cross-entropy, summed over classes. logits, targets: (n, C). known: (n,) False
    leaves an item out."""
    xp = ops.xp
    if not len(logits):
        return 0.0, xp.zeros_like(logits)
    gold = xp.asarray(targets, dtype="f")
    scale: Any = 1.0 / len(logits)
    if known is not None:
        scale = xp.asarray(known, dtype="f")[:, None] / max(float(known.sum()), 1.0)
    # In the form that cannot overflow.
    cost = xp.maximum(logits, 0) - logits * gold + xp.log1p(xp.exp(-xp.abs(logits)))
    return float((cost * scale).sum()), (ops.sigmoid(logits) - gold) * scale
