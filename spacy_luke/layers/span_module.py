"""The trainable part of the span network: head and filter, how they start, grow and are saved."""

from collections.abc import Sequence

import torch
from thinc.api import Model
from torch import nn

from ..errors import CheckpointError, ConfigError
from ..model.encoder import init_weights
from ..model.heads import SpanFilter, SpanHead
from .blob import from_blob, to_blob
from .encoder import module_of, published_head
from .listener import encoder_node
from .shim import LukeShim

NIL = "NIL"
"""The published name of "no entity"; in our class order it comes last, as in ``spancat``."""

_MAX_WIDTH = 32
# A fresh filter should call few spans entities, or the first steps are spent unlearning it.
_FILTER_BIAS = -2.0


class SpanModule(nn.Module):
    """The span head and, in two-stage mode, the filter."""

    def __init__(self, hidden: int, n_classes: int, filter_size: int):
        super().__init__()
        self.config = {"hidden": hidden, "n_classes": n_classes, "filter_size": filter_size}
        self.head = SpanHead(hidden, n_classes)
        self.filter = SpanFilter(hidden, filter_size, _MAX_WIDTH) if filter_size else None
        init_weights(self, 0.02)
        if self.filter is not None:
            nn.init.constant_(self.filter.output.bias, _FILTER_BIAS)

    @property
    def n_classes(self) -> int:
        return self.config["n_classes"]

    def set_dropout(self, rate: float) -> None:
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate

    def resize(self, rows: Sequence[int | None]) -> "SpanModule":
        """A module whose class i is the present class rows[i], or fresh where that is None."""
        config = {**self.config, "n_classes": len(rows)}
        result = SpanModule(**config)
        kept = [(new, old) for new, old in enumerate(rows) if old is not None]
        with torch.no_grad():
            for new, old in kept:
                result.head.classifier.weight[new] = self.head.classifier.weight[old]
                result.head.classifier.bias[new] = self.head.classifier.bias[old]
        if self.filter is not None and result.filter is not None:
            result.filter.load_state_dict(self.filter.state_dict())
        return result


def span_module(network: Model) -> SpanModule:
    """The span module of a network node. Raises ConfigError where it was not initialised."""
    shim = network.shims[0]
    assert isinstance(shim, LukeShim)
    if shim.module is None:
        raise ConfigError("The span scorer has no weights yet: call nlp.initialize().")
    assert isinstance(shim.module, SpanModule)
    return shim.module


def set_span_module(network: Model, module: SpanModule) -> None:
    shim = network.shims[0]
    assert isinstance(shim, LukeShim)
    shim.set(module)
    network.set_dim("nO", module.n_classes, force=True)


def load_published_head(network: Model, labels: Sequence[str]) -> list[str]:
    """Copy the rows of a published span classifier for ``labels`` and NIL (our last class).

    Returns the labels found in the checkpoint; none where it has no such head. Raises
    CheckpointError where the head does not fit its own configuration.
    """
    published = published_head(encoder_node(network.layers[0])).weights
    weight, bias = published.get("classifier.weight"), published.get("classifier.bias")
    classes = published_labels(network)
    module = span_module(network)
    if weight is None or bias is None or not classes:
        return []
    if weight.shape != (len(classes), 3 * module.config["hidden"]):
        raise CheckpointError(
            f"classifier.weight has the shape {list(weight.shape)}; a span classifier with "
            f"{len(classes)} labels in id2label needs "
            f"{[len(classes), 3 * module.config['hidden']]}."
        )
    found = [label for label in labels if label in classes]
    with torch.no_grad():
        for i, label in enumerate([*labels, NIL]):
            if label in classes:
                row = classes.index(label)
                module.head.classifier.weight[i] = weight[row]
                module.head.classifier.bias[i] = bias[row]
    return found


def published_labels(network: Model) -> list[str]:
    """The classes of the span classifier in the checkpoint just read, NIL included; or none."""
    head = published_head(encoder_node(network.layers[0]))
    names = head.raw_config.get("id2label") or {}
    classes = [str(names[key]) for key in sorted(names, key=int)]
    return classes if "classifier.weight" in head.weights and NIL in classes else []


def initialize_head(network: Model, n_classes: int) -> None:
    """Draw a fresh head (and filter) for an encoder that has its weights."""
    hidden = module_of(encoder_node(network.layers[0])).hidden_size
    filter_width = network.attrs["settings"].filter_width
    set_span_module(network, SpanModule(hidden, n_classes, filter_width))


def save_span_module(module: SpanModule) -> bytes:
    return to_blob("span head", module.config, module.state_dict())


def load_span_module(data: bytes) -> SpanModule:
    config, tensors, _ = from_blob("span head", data)
    module = SpanModule(**config)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as err:
        raise CheckpointError(f"The saved span head does not fit its sizes: {err}") from err
    return module
