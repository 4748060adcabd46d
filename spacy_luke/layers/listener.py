"""Listeners: layers that use the encoder of an upstream component.

Entity states depend on the entities that are encoded together, so weights are shared, not outputs:
a listener has a link to the upstream's encoder node. Gradients of all listeners are added up in its
parameters, and the upstream's ``finish_update`` takes the step (``upstream.py``).
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, serialize_attr
from torch.nn import Module

from ..errors import ConfigError
from ..report import LOGGER
from .encoder import ENCODER, Pooling
from .word_passes import WordPasses

LISTENER = "luke-listener"


class UpstreamLink:
    """A listener's link to its encoder. It is not saved, and not copied with a model alone.

    wanted: the name of the upstream in the config, or ``*`` for any. pooling: how pieces become
        tokens; only used if ``pools``, that is, if the listener is a ``tok2vec`` layer.
    component: the present name of the upstream. encoder: its ``luke-encoder`` node. vocab: of its
        pipeline.
    batch: the examples whose gradients may reach the encoder; None if the upstream is not updated.
    own_examples: the examples that the listener's component is about to learn from, if it set them.
    head: the head of the listener's component, after it has learned.
    on_gradients: call it after the gradients of a batch were added.
    on_failure: call it if they cannot be computed because of an error.
    n_listeners: returns the number of listeners to this encoder.
    passes: the word passes that they share at prediction.
    is_copy: whether this is the link of a model that was copied alone, without its upstream.
    is_left: returns whether the upstream was removed from a pipeline that has the listener.
    """

    def __init__(self, wanted: str = "*", pooling: Pooling = "mean") -> None:
        self.wanted = wanted
        self.pooling = pooling
        self.pools = True
        self.component = ""
        self.encoder: Model | None = None
        self.vocab: Vocab | None = None
        self.batch: Sequence[Example] | None = None
        self.own_examples: Sequence[Example] | None = None
        self.head: Module | None = None
        self.on_gradients: Callable[[], None] | None = None
        self.on_failure: Callable[[], None] | None = None
        self.n_listeners: Callable[[], int] = _alone
        self.passes = WordPasses()
        self.is_left: Callable[[], bool] = never
        self.is_copy = False
        self._warned = False

    def clear(self) -> None:
        """Remove the connection to the upstream."""
        self.encoder = self.vocab = self.batch = self.own_examples = self.head = None
        self.on_gradients = self.on_failure = None
        self.is_left = never

    def take_batch(self, docs: Sequence[Doc]) -> bool:
        """Whether gradients of this batch may reach the upstream. Closes the open batch.

        A batch is identified by its examples, which are the same objects for all components of an
        update; a component may replace their documents. A layer that gets only documents compares
        these with the present documents of the examples, and their texts, because spaCy's
        ``entity_linker`` learns from copies. An upstream that is excluded from an
        update, frozen or disabled opens no batch. Then only layers on its encoder are trained, and
        a warning is logged.
        """
        batch, self.batch = self.batch, None
        own_examples, self.own_examples = self.own_examples, None
        if batch is not None and own_examples is not None:
            if any(own_examples[0] is eg for eg in batch):
                return True
        elif batch is not None and len(docs) and any(_is_same(docs[0], eg) for eg in batch):
            return True
        if len(docs):
            self.tell_of_absence()
        return False

    def tell_of_absence(self) -> None:
        """Log once for each listener that the upstream takes no part in an update."""
        if not self._warned:
            self._warned = True
            LOGGER.warning(
                "A shared encoder takes no part in an update of a component that listens to it "
                "(frozen, excluded or disabled): only the layers on it are trained. This warning "
                "is logged once for each such component."
            )

    def __deepcopy__(self, memo: Any) -> "UpstreamLink":
        """In the copy of a whole pipeline the link is to the copied upstream. In the copy of a
        model alone it is not connected."""
        result = UpstreamLink(self.wanted, self.pooling)
        result.pools = self.pools
        if self.encoder is not None and id(self.encoder) in memo:
            memo[id(self)] = result
            for name, value in self.__getstate__().items():
                setattr(result, name, deepcopy(value, memo))
        else:
            result.is_copy = self.is_copy or self.encoder is not None
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "vocab": None,  # only says where a connection was made
            "batch": None,
            "own_examples": None,
            "head": None,
        }  # a pipeline is pickled between batches


def _is_same(doc: Doc, example: Example) -> bool:
    """Whether a document is the predicted one of an example, or a copy of it."""
    other = example.predicted
    return doc is other or (len(doc) == len(other) and doc.text == other.text)


def _alone() -> int:
    return 1


def never() -> bool:
    return False


@serialize_attr.register(UpstreamLink)
def _not_saved(_: UpstreamLink, value: UpstreamLink, name: str, node: Model) -> bytes:
    """Raises TypeError, by which Thinc leaves the attribute out. Stock components save their model
    without asking us, so a lost encoder is noticed here."""
    if value.is_left():
        LOGGER.warning(
            "A component is saved that listens to %r, which was removed from a pipeline with it: "
            "saved so and loaded, that has no encoder. Call nlp.replace_listeners before the "
            "upstream is removed.",
            value.component,
        )
    raise TypeError


def build_listener(upstream: str, pooling: Pooling, forward: Callable) -> Model:
    """A ``luke-listener`` node. forward: its function as a ``tok2vec`` layer."""
    return Model(
        LISTENER,
        forward,
        init=_initialize,
        dims={"nO": None},
        attrs={
            "dropout_rate": 0.1,
            # Not the settings by themselves: attributes are saved, and would count more than the
            # config.
            "link": UpstreamLink(upstream, pooling),
        },
    )


def is_listener(node: Model) -> bool:
    return node.name == LISTENER


def encoder_node(node: Model) -> Model:
    """The ``luke-encoder`` node of an encoder or listener node. Raises ConfigError for another
    node, and for a listener without an upstream."""
    if node.name == ENCODER:
        return node
    if not is_listener(node):
        raise ConfigError(
            f"Expected spacy-luke.LukeEncoder.v1 or LukeListener.v1 as encoder, got {node.name!r}."
        )
    link: UpstreamLink = node.attrs["link"]
    if link.encoder is None and link.is_copy:
        raise ConfigError(
            "A model with a LukeListener was copied without its upstream, as nlp.resume_training "
            "does for nlp.rehearse. Give the component its own encoder first: "
            "nlp.replace_listeners, and call nlp.resume_training again."
        )
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
