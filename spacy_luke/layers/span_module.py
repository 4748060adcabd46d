"""The trainable part of the span network: head and filter."""

from typing import ClassVar

from torch import nn

from ..checkpoint.classes import ENTITY_SPANS
from ..model.heads import SpanFilter, SpanHead
from .head_module import HeadModule, fresh_weights

NIL = "NIL"
"""The published name of "no entity"; in our class order it comes last, as in ``spancat``."""

_MAX_WIDTH = 32
# A fresh filter should call few spans entities, or the first steps are spent unlearning it.
_FILTER_BIAS = -2.0


class SpanModule(HeadModule):
    """The span head and, in two-stage mode, the filter."""

    architecture: ClassVar[str] = ENTITY_SPANS.name
    width: ClassVar[int] = ENTITY_SPANS.n_states
    negative: ClassVar[str] = NIL

    def __init__(self, hidden: int, n_classes: int, filter_size: int):
        super().__init__(hidden=hidden, n_classes=n_classes, filter_size=filter_size)
        self.head = SpanHead(hidden, n_classes)
        self.filter = SpanFilter(hidden, filter_size, _MAX_WIDTH) if filter_size else None
        fresh_weights(self)
        if self.filter is not None:
            nn.init.constant_(self.filter.output.bias, _FILTER_BIAS)

    @property
    def classifier(self) -> nn.Linear:
        return self.head.classifier
