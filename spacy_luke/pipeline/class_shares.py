"""Where a new classifier of any number of classes per row begins: at their shares in the data.

Otherwise every class begins at a probability of a half, and where most rows have none of the
labels, as most pairs of entities have no relation, the first hundreds of updates learn little else
(Lin et al. 2017, "Focal Loss for Dense Object Detection", section 3.3).
"""

from typing import Any

import numpy as np

from .class_loss import Targets

Array = np.ndarray

_UNSEEN = 0.5
"""Added to the gold rows of each class: one that was not seen is improbable, not impossible."""


class ClassShares:
    """Counts the gold classes of rows."""

    def __init__(self) -> None:
        self._gold: Any = 0.0
        self._rows: Any = 0.0

    def add(self, targets: Targets) -> None:
        classes, known = targets
        known = np.broadcast_to(known if known.ndim == 2 else known[:, None], classes.shape)
        self._gold = self._gold + (classes * known).sum(0)
        self._rows = self._rows + known.sum(0)

    def logits(self) -> Array | None:
        """(n_classes,) of probabilities that are the shares. None if no row was counted."""
        if not np.any(self._rows):
            return None
        shares = (self._gold + _UNSEEN) / (self._rows + 2 * _UNSEEN)
        return np.log(shares) - np.log1p(-shares)
