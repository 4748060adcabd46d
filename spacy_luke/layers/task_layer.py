"""A task layer: a Thinc node with the task's head, and an encoder (or a listener) as its child.

Encoder and head are in one autograd graph. Only scores are converted to NumPy or CuPy, and only
their gradients are converted back.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from weakref import WeakMethod

import torch
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model
from thinc.util import torch2xp

from ..errors import ConfigError
from ..model.packing import Array
from .encoder import module_of, shim_of
from .encoder_module import Encoder
from .encoder_run import EncoderRun
from .listener import encoder_node, is_listener
from .shim import LearnRates, LukeShim
from .task_head import Head, HeadKind, head_format


class OfDocs(Protocol):
    """What all queries have."""

    @property
    def docs(self) -> Sequence[Doc]: ...


Query = TypeVar("Query", bound=OfDocs)
Scores = TypeVar("Scores", bound=tuple)


class Scorer(ABC, Generic[Query, Scores]):
    """The computation of a task layer. A subclass is a dataclass of the layer's settings.

    A query contains documents and spans. Scores are a named tuple of arrays (which rows of the
    query were scored) and tensors (their scores).
    """

    node: ClassVar[str]
    """The name of the layer's node."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Settings that are part of what a head has learned: they cannot be changed afterwards."""

    @property
    @abstractmethod
    def kind(self) -> HeadKind:
        """The kind of the task's head."""

    def head_config(self, encoder: Encoder) -> dict[str, Any]:
        """The settings of a new head besides ``hidden`` and ``n_classes``."""
        return {}

    @abstractmethod
    def fits(self, encoder: Model, query: Query) -> Array:
        """(n_rows,) whether each row of the query can be scored; the others are too long, or have
        no pieces. encoder: the encoder or listener node."""

    @abstractmethod
    def score(self, run: EncoderRun, head: Head, query: Query) -> Scores:
        """Score a query. Scores and gradients of the layer are arrays; here scores are tensors."""


def task_layer(
    encoder: Model, scorer: Scorer[Query, Scores], rates: LearnRates | None = None
) -> Model[Query, Scores]:
    """The layer of a task. rates: of its head."""
    if is_listener(encoder):
        encoder.attrs["link"].pools = False
    shim = LukeShim(None, head_format(scorer.kind))
    shim.rates = rates or LearnRates()
    return Model(
        scorer.node,
        _forward,
        init=_initialize,
        layers=[encoder],
        dims={"nO": None},
        attrs={"settings": scorer, "dropout_rate": 0.1, "make_query": QueryMaker()},
        shims=[shim],
    )


def _forward(
    model: Model[Query, Scores], inputs: Query | list[Doc], is_train: bool
) -> tuple[Scores, Callable[[Scores], list]]:
    query = _query_of(model, inputs)
    head = head_of(model)
    with EncoderRun(model.layers[0], query.docs, is_train) as run:
        head.train(is_train)
        head.set_dropout(float(model.attrs["dropout_rate"]))
        scores = scorer_of(model).score(run, head, query)
    tensors = {i: x for i, x in enumerate(scores) if isinstance(x, torch.Tensor)}

    def backprop(d_scores: Scores) -> list:
        # The limit of an encoder that is trained also applies to the layers on it.
        limit = shim_of(encoder_node(run.node)).rates.max_rate if run.trains else None
        shim_of_head(model).rates.max_rate = limit
        run.backprop([*tensors.values()], [d_scores[i] for i in tensors], head)
        return []

    values = (torch2xp(x.detach()) if i in tensors else x for i, x in enumerate(scores))
    return type(scores)(*values), backprop


class QueryMaker:
    """How a component makes a query of documents, for tools that call its model with documents, as
    ``spacy debug model`` does. An attribute of the node, not saved; a copy of the node has none."""

    def __init__(self, make: Callable[[Sequence[Doc]], Any] | None = None) -> None:
        # The component has the node, so the node must not keep the component.
        self._make = None if make is None else WeakMethod(make)

    def __reduce__(self) -> tuple[type["QueryMaker"], tuple[()]]:
        return QueryMaker, ()

    def __call__(self, docs: Sequence[Doc]) -> Any:
        make = None if self._make is None else self._make()
        if make is None:
            raise TypeError("The input must be a query: only a component makes it of documents.")
        return make(docs)


def _query_of(model: Model, inputs: Any) -> Any:
    """A query as it is, or that of a list of documents."""
    return model.attrs["make_query"](inputs) if isinstance(inputs, list) else inputs


def _initialize(model: Model, X: Any = None, Y: Any = None) -> None:
    n_classes = Y.shape[1] if Y is not None else model.maybe_get_dim("nO")
    if not n_classes:
        raise ConfigError(f"{model.name} needs labels before it can be initialised.")
    model.layers[0].initialize()
    initialize_head(model, n_classes)


# Functions for components. Their model is a task layer, or a wrapper with a reference "network" to
# it.


def task_node(model: Model) -> Model:
    """The task layer of a component's model."""
    return model.maybe_get_ref("network") or model


def scorer_of(model: Model) -> Any:
    """The settings of the task layer."""
    return task_node(model).attrs["settings"]


def encoder_below(model: Model) -> Model:
    """The encoder or listener node of the task layer."""
    return task_node(model).layers[0]


def encoder_of(model: Model) -> Encoder:
    """The encoder that the task layer uses. Raises ConfigError if it has no weights yet."""
    return module_of(encoder_node(encoder_below(model)))


def encoder_steps(model: Model) -> tuple[int, int] | None:
    """Which encoder the task layer has, and how many optimizer steps it has taken; None for a
    listener that is not connected. Weights that were loaded count as another encoder."""
    node = encoder_below(model)
    node = node.attrs["link"].encoder if is_listener(node) else node
    return None if node is None else (shim_of(node).id, shim_of(node).n_steps)


def shim_of_head(model: Model) -> LukeShim:
    shim = task_node(model).shims[0]
    assert isinstance(shim, LukeShim)
    return shim


def has_head(model: Model) -> bool:
    """Whether the task layer was initialised, or loaded."""
    return shim_of_head(model).module is not None


def head_of(model: Model) -> Head:
    """The head of the task layer. Raises ConfigError if it was not initialised."""
    module = shim_of_head(model).module
    if module is None:
        raise ConfigError(f"{task_node(model).name} has no weights yet: call nlp.initialize().")
    assert isinstance(module, Head)
    return module


def set_query_maker(model: Model, make: Callable[[Sequence[Doc]], Any]) -> None:
    """make: a method of the component that has the model."""
    task_node(model).attrs["make_query"] = QueryMaker(make)


def learn_from(model: Model, examples: Sequence[Example]) -> None:
    """Register the examples of the next update: a shared encoder identifies its batch by them."""
    below = encoder_below(model)
    if is_listener(below):
        below.attrs["link"].own_examples = examples
        below.attrs["link"].head = head_of(model)


def drop_gradients(model: Model) -> None:
    """After an error, remove the gradients of this batch from the head and the encoder."""
    if has_head(model):
        _drop(head_of(model))
    below = encoder_below(model)
    if not is_listener(below):
        _drop(module_of(below))
    elif below.attrs["link"].on_failure is not None:
        below.attrs["link"].on_failure()


def _drop(module: torch.nn.Module) -> None:
    for parameter in module.parameters():
        parameter.grad = None


def set_head(model: Model, head: Head) -> None:
    shim_of_head(model).set(head)
    for sized in (task_node(model), model):
        sized.set_dim("nO", head.n_classes, force=True)


@torch.inference_mode(False)  # its tensors could not be trained later
def initialize_head(model: Model, n_classes: int, **config: Any) -> None:
    """Initialise a new head. The encoder must have its weights. config: settings of the kind of
    head, besides those of the scorer."""
    encoder, scorer = encoder_of(model), scorer_of(model)
    config.update(scorer.head_config(encoder))
    hidden = encoder.hidden_size
    set_head(model, Head(scorer.kind, hidden=hidden, n_classes=n_classes, **config))


def begin_at(model: Model, logits: Array) -> None:
    """Let a new classifier begin with these logits, (n_classes,). One without a bias, as
    of published pairs, or with one that was read from a checkpoint stays as it is."""
    bias = head_of(model).classifier.bias
    if bias is not None and not bias.any():
        with torch.no_grad():
            bias.copy_(torch.from_numpy(logits))


def fits(model: Model[Query, Scores], query: Query) -> Array:
    """(n_rows,) whether the task layer can score each row of a query."""
    return scorer_of(model).fits(encoder_below(model), query)
