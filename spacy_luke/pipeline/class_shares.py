"""Where a new classifier begins: at the shares of its classes in the data.

Otherwise all classes begin alike, and where most rows have none of the labels, as most pairs of
entities have no relation, the first hundreds of updates learn little else (Lin et al. 2017, "Focal
Loss for Dense Object Detection", section 3.3).
"""

from typing import Any

import numpy as np

from .class_loss import Targets

Array = np.ndarray

_UNSEEN = 0.5
"""Added to the gold rows of each class: one that was not seen is improbable, not impossible."""


class ClassShares:
    """Counts the gold classes of rows.

    exclusive: a row has one class. One of which several are possible counts for those that are
    known, as for "no relation" where other labels are not annotated.
    """

    def __init__(self, exclusive: bool) -> None:
        self._exclusive = exclusive
        self._gold: Any = 0.0
        self._rows: Any = 0.0

    def add(self, targets: Targets) -> None:
        classes, known = targets
        known = np.broadcast_to(known if known.ndim == 2 else known[:, None], classes.shape)
        if self._exclusive:  # a row of zeros is not learned from
            known = known & classes.any(1, keepdims=True)
        self._gold = self._gold + (classes * known).sum(0)
        self._rows = self._rows + known.sum(0)

    def logits(self) -> Array | None:
        """(n_classes,) of probabilities that are the shares. None if no row was counted."""
        if not np.any(self._rows):
            return None
        shares = (self._gold + _UNSEEN) / (self._rows + 2 * _UNSEEN)
        return np.log(shares) if self._exclusive else np.log(shares) - np.log1p(-shares)
