"""The trainable part of a task layer: its node, how its classes start and grow, how it is saved."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from thinc.api import Model
from torch import nn

from ..checkpoint.names import CLASSIFIER_BIAS, CLASSIFIER_WEIGHT
from ..errors import CheckpointError, ConfigError
from ..model.config import LukeConfig
from ..model.encoder import init_weights
from .blob import Blob
from .encoder import module_of
from .listener import encoder_node
from .shim import Format, LearnRates, LukeShim

INITIAL_STD = 0.02
Head = TypeVar("Head", bound="HeadModule")


class HeadModule(nn.Module):
    """A classifier on states, and whatever goes with it.

    config: the constructor's keyword arguments, ``hidden`` and ``n_classes`` among them.
    architecture: whose classifier in published files this is; empty where none has this form.
    width: how many states a row of that classifier reads.
    negative: our name of its class 0, "none of the labels", where no class has that name; empty
        where published files agree on one.
    """

    architecture: ClassVar[str] = ""
    width: ClassVar[int] = 1
    negative: ClassVar[str] = ""

    def __init__(self, **config: Any):
        super().__init__()
        self.config = config

    @property
    def classifier(self) -> nn.Linear:
        """The layer with a row for every class."""
        raise NotImplementedError

    @property
    def n_classes(self) -> int:
        return self.config["n_classes"]

    def set_dropout(self, rate: float) -> None:
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate

    def resize(self: Head, rows: Sequence[int | None]) -> Head:
        """A module whose class i is the present class rows[i], or fresh where that is None."""
        result = type(self)(**{**self.config, "n_classes": len(rows)})
        old, new = self.classifier, result.classifier
        of_classes = {id(parameter) for parameter in old.parameters()}
        fresh = dict(result.named_parameters())
        kept = [(i, row) for i, row in enumerate(rows) if row is not None]
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if id(parameter) not in of_classes:
                    fresh[name].copy_(parameter)
            for i, row in kept:
                new.weight[i] = old.weight[row]
                if old.bias is not None:
                    new.bias[i] = old.bias[row]
        return result


class TaskSettings(Protocol):
    """What every task layer's settings say about its head."""

    @property
    def head_type(self) -> type[HeadModule]: ...

    def head_config(self, network: Model) -> dict[str, Any]:
        """Keyword arguments of a fresh head beside ``hidden`` and ``n_classes``."""
        ...


def task_node(
    name: str, encoder: Model, settings: TaskSettings, forward: Callable, rates: LearnRates
) -> Model:
    """A task layer: one encoder (or listener) node, and a shim with the head."""
    shim = LukeShim(None, Format(_save, partial(_load, settings.head_type)))
    shim.rates = rates
    return Model(
        name,
        forward,
        init=_initialize,
        layers=[encoder],
        dims={"nO": None},
        attrs={"settings": settings, "dropout_rate": 0.1},
        shims=[shim],
    )


def head_of(network: Model) -> Any:
    """The head of a task layer. Raises ConfigError where it was not initialised."""
    shim = network.shims[0]
    assert isinstance(shim, LukeShim)
    if shim.module is None:
        raise ConfigError(f"{network.name} has no weights yet: call nlp.initialize().")
    return shim.module


def set_head(network: Model, module: HeadModule) -> None:
    shim = network.shims[0]
    assert isinstance(shim, LukeShim)
    shim.set(module)
    network.set_dim("nO", module.n_classes, force=True)


def initialize_head(network: Model, n_classes: int) -> None:
    """Draw a fresh head for an encoder that has its weights."""
    hidden = module_of(encoder_node(network.layers[0])).hidden_size
    settings: TaskSettings = network.attrs["settings"]
    extra = settings.head_config(network)
    set_head(network, settings.head_type(hidden=hidden, n_classes=n_classes, **extra))


def _initialize(model: Model, X: Any = None, Y: Any = None) -> None:
    n_classes = Y.shape[1] if Y is not None else model.maybe_get_dim("nO")
    if not n_classes:
        raise ConfigError(f"{model.name} needs labels before it can be initialised.")
    model.layers[0].initialize()
    initialize_head(model, n_classes)


# Heads of published checkpoints

_NONE = ("o", "nil", "none", "null", "no_entity")  # how checkpoints call what is no entity


def class_names(config: LukeConfig, head: type[HeadModule]) -> dict[str, str]:
    """Our name of each class of a checkpoint with such a head -> its name there, in its order."""
    listed = config.extra.get("id2label") or {
        "0": "LABEL_0",
        "1": "LABEL_1",
    }  # what files leave out
    try:
        theirs = [str(listed[key]) for key in sorted(listed, key=int)]
    except (TypeError, ValueError, KeyError, AttributeError) as err:
        raise CheckpointError(
            f"id2label of the checkpoint's configuration is {listed!r}; expected an object."
        ) from err
    if len({*theirs}) < len(theirs):
        raise CheckpointError(f"id2label of the checkpoint names a class twice: {theirs}.")
    ours = list(theirs)
    if head.negative and head.negative not in theirs:
        misplaced = [name for name in theirs[1:] if name.lower() in _NONE]
        if misplaced and theirs[0].lower() not in _NONE:
            raise CheckpointError(
                f"id2label of the checkpoint has {misplaced[0]!r} behind {theirs[0]!r}: what is no "
                f"entity has to be the first class, or to be called {head.negative}."
            )
        ours[:1] = [head.negative]
    return dict(zip(ours, theirs))


def published_labels(network: Model) -> list[str]:
    """The classes of the classifier that came with the encoder's checkpoint, by our names and in
    its order; none where it has no classifier of this task."""
    encoder = module_of(encoder_node(network.layers[0]))
    head = network.attrs["settings"].head_type
    names = class_names(encoder.network.config, head)
    weight = encoder.others.get(CLASSIFIER_WEIGHT)
    architecture = encoder.source.architecture or head.architecture
    if weight is None or not head.architecture or head.architecture != architecture:
        return []
    if weight.shape[1:] != (head.width * encoder.hidden_size,):
        raise CheckpointError(
            f"{encoder.source.name}: {CLASSIFIER_WEIGHT} has the shape {list(weight.shape)}; the "
            f"classifier of {head.architecture} reads {head.width} states of {encoder.hidden_size}."
        )
    if len(names) != len(weight):
        listed = encoder.network.config.extra.get("id2label") or ()
        raise CheckpointError(
            f"{encoder.source.name}: {CLASSIFIER_WEIGHT} has {len(weight)} rows, and id2label of "
            f"config.json (metadata.json: model_config) names {len(listed)}. Add the labels there."
        )
    return list(names)


def has_published_bias(network: Model) -> bool:
    """Whether the encoder's checkpoint has a classifier with a bias."""
    return CLASSIFIER_BIAS in module_of(encoder_node(network.layers[0])).others


def load_published_head(network: Model, classes: Sequence[str]) -> list[str]:
    """Copy the rows of a published classifier; ``classes`` are ours, in order.

    Returns the classes found in the checkpoint; none where it has no such head. Raises
    CheckpointError where the head does not fit its own configuration.
    """
    theirs = published_labels(network)
    found = [name for name in classes if name in theirs]
    if not found:
        return []
    encoder = module_of(encoder_node(network.layers[0]))
    published = encoder.others
    ours, bias = head_of(network).classifier, published.get(CLASSIFIER_BIAS)
    if (bias is None) != (ours.bias is None) or (bias is not None and len(bias) != len(theirs)):
        raise CheckpointError(
            f"{encoder.source.name}: the classifier has {'no' if bias is None else 'a'} bias; "
            f"{network.name} expects {'none' if ours.bias is None else 'one'}."
        )
    with torch.no_grad():
        for i, name in enumerate(classes):
            if name in theirs:
                row = theirs.index(name)
                ours.weight[i] = published[CLASSIFIER_WEIGHT][row]
                if bias is not None:
                    ours.bias[i] = bias[row]
    return found


# Files


def _save(module: HeadModule) -> bytes:
    return Blob("head", module.config, module.state_dict()).to_bytes()


def _load(head: type[HeadModule], data: bytes) -> HeadModule:
    blob = Blob.from_bytes("head", data)
    module = head(**blob.config)
    try:
        module.load_state_dict(blob.tensors)
    except RuntimeError as err:
        raise CheckpointError(f"The saved head does not fit its sizes: {err}") from err
    return module


def fresh_weights(module: HeadModule) -> None:
    """Draw weights as for a new BERT head (std 0.02)."""
    init_weights(module, INITIAL_STD)
