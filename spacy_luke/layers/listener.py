"""Listeners: use an upstream component's encoder instead of one's own.

Entity states depend on which entities are encoded, so sharing means sharing weights, not
outputs: a listener is a way to reach the upstream's encoder node. Gradients of all listeners
add up in its parameters, and the upstream's ``finish_update`` takes the step (``upstream.py``).
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model
from torch.nn import Module

from ..errors import ConfigError
from ..report import LOGGER
from .encoder import ENCODER, Pooling
from .word_passes import WordPasses

LISTENER = "luke-listener"


class UpstreamLink:
    """Where a listener finds its encoder. It does not travel with copies or files.

    wanted: the name of the upstream in the config, or ``*`` for any.
    component: the present name of the upstream. encoder: its ``luke-encoder`` node.
    batch: the examples whose gradients may reach it; an upstream that takes no part in an update
        names none.
    mine: those that the listener's component is about to learn from, if it says so.
    report: tells the upstream that the gradients of its batch have arrived. failed: that they will
        not, because of an error.
    head: that of the listener's component, once it has learned.
    n_listeners: how many use that encoder. passes: what they share at prediction.
    """

    def __init__(self, wanted: str = "*") -> None:
        self.wanted = wanted
        self.component = ""
        self.encoder: Model | None = None
        self.batch: Sequence[Example] | None = None
        self.mine: Sequence[Example] | None = None
        self.head: Module | None = None
        self.report: Callable[[], None] | None = None
        self.failed: Callable[[], None] | None = None
        self.n_listeners: Callable[[], int] = _alone
        self.passes = WordPasses()
        self._told = False

    def clear(self) -> None:
        """Forget the upstream."""
        self.encoder = self.batch = self.mine = self.head = self.report = self.failed = None

    def take(self, docs: Sequence[Doc]) -> bool:
        """Whether gradients of this batch may reach the upstream. Consumes the open batch.

        A batch is known by its examples, which are the same for all components of an update: one of
        these may have put other documents into them. A layer that is given documents alone goes by
        those that the examples hold by now. An upstream that is excluded from an update, frozen or
        disabled opens no batch; then only the layers on its encoder are trained, which is logged
        once.
        """
        batch, self.batch = self.batch, None
        mine, self.mine = self.mine, None
        if batch is not None and mine is not None:
            if any(mine[0] is eg for eg in batch):
                return True
        elif batch is not None and len(docs) and any(docs[0] is eg.predicted for eg in batch):
            return True
        if len(docs) and not self._told:
            self._told = True
            LOGGER.warning(
                "A shared encoder takes no part in an update of a component that listens to it "
                "(frozen, excluded or disabled): only the layers on it are trained. This is said "
                "once."
            )
        return False

    def __deepcopy__(self, memo: Any) -> "UpstreamLink":
        """In the copy of a whole pipeline the link leads to the copied upstream; in the copy of a
        model alone it is open."""
        result = UpstreamLink(self.wanted)
        if self.encoder is not None and id(self.encoder) in memo:
            memo[id(self)] = result
            for name, value in self.__getstate__().items():
                setattr(result, name, deepcopy(value, memo))
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "batch": None,
            "mine": None,
            "head": None,
        }  # pickled with its pipeline, between batches


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
            "pooling": pooling,
            "dropout_rate": 0.1,
            # Not the name by itself: attributes are saved, and would count more than the config.
            "link": UpstreamLink(upstream),
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
            f"A LukeListener found no upstream component {link.wanted!r}: add a 'luke' "
            "component before it, or use spacy-luke.LukeEncoder.v1."
        )
    return link.encoder


def _initialize(model: Model, X: Any = None, Y: Any = None) -> None:
    nO = encoder_node(model).maybe_get_dim("nO")
    if nO is not None:
        model.set_dim("nO", nO, force=True)
