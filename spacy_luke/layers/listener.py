"""Listeners: use an upstream component's encoder instead of one's own.

Entity states depend on which entities are encoded, so sharing means sharing weights, not
outputs: a listener is a way to reach the upstream's encoder node. Gradients of all listeners
add up in its parameters, and the upstream's ``finish_update`` takes the step (``upstream.py``).
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from spacy.tokens import Doc
from thinc.api import Model

from ..errors import ConfigError
from .encoder import ENCODER, Pooling
from .word_passes import WordPasses

LISTENER = "luke-listener"


class UpstreamLink:
    """Where a listener finds its encoder. It does not travel with copies or files.

    encoder: the upstream's ``luke-encoder`` node. batch: the first document of the batch whose
    gradients may reach it; a frozen upstream names none. report: tells the upstream that the
    gradients of its batch have arrived. n_listeners: how many use that encoder. passes: what they
    share at prediction.
    """

    def __init__(self) -> None:
        self.encoder: Model | None = None
        self.batch: ref[Doc] | None = None
        self.report: Callable[[], None] | None = None
        self.n_listeners: Callable[[], int] = _alone
        self.passes = WordPasses()

    def take(self, docs: Sequence[Doc]) -> bool:
        """Is this the batch the upstream is open for? It can be asked once."""
        batch, self.batch = self.batch, None
        return batch is not None and len(docs) > 0 and batch() is docs[0]

    def __deepcopy__(self, memo: Any) -> "UpstreamLink":
        return UpstreamLink()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "batch": None}  # pickled with its pipeline, between batches


def _alone() -> int:
    return 1


def build_listener(upstream: str, pooling: Pooling, forward: Callable) -> Model:
    """A ``luke-listener`` node; ``forward`` is what it does as a layer."""
    return Model(
        LISTENER,
        forward,
        init=_initialize,
        dims={"nO": None},
        attrs={
            "upstream": upstream,
            "pooling": pooling,
            "dropout_rate": 0.1,
            "link": UpstreamLink(),
        },
    )


def is_listener(node: Model) -> bool:
    return node.name == LISTENER


def encoder_node(node: Model) -> Model:
    """The ``luke-encoder`` node behind an encoder or listener node. Raises ConfigError."""
    if node.name == ENCODER:
        return node
    if not is_listener(node):
        raise ConfigError(
            f"Expected spacy-luke.LukeEncoder.v1 or LukeListener.v1 as encoder, got {node.name!r}."
        )
    link: UpstreamLink = node.attrs["link"]
    if link.encoder is None:
        raise ConfigError(
            f"A LukeListener found no upstream component {node.attrs['upstream']!r}: add a 'luke' "
            "component before it, or use spacy-luke.LukeEncoder.v1."
        )
    return link.encoder


def _initialize(model: Model, X: Any = None, Y: Any = None) -> None:
    nO = encoder_node(model).maybe_get_dim("nO")
    if nO is not None:
        model.set_dim("nO", nO, force=True)
