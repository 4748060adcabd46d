"""What the task components share."""

from typing import Any

from spacy.pipeline import TrainablePipe
from thinc.api import Model, Optimizer

from ..layers.listener import UpstreamLink, is_listener


class TaskPipe(TrainablePipe):
    """A component whose encoder may be its own or an upstream's."""

    model: Model
    cfg: dict[str, Any]

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the component's own weights, and let an upstream that had to wait for this
        component's gradients take its step (``nlp.update`` with an optimizer finishes every
        component right after its own update)."""
        self.model.finish_update(sgd)
        for node in self.model.walk():
            if is_listener(node):
                link: UpstreamLink = node.attrs["link"]
                if link.settle is not None:
                    link.settle(sgd)
