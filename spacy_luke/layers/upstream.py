"""The upstream of listeners: it connects them, adds up their gradients, and takes one step."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer

from ..errors import TrainingError
from ..report import LOGGER
from .encoder import module_of
from .encoder_run import check_gradients
from .listener import UpstreamLink, is_listener
from .transformer_data import WordStates, is_stock_listener, link_of
from .word_passes import WordPasses


class Upstream:
    """The listeners of one encoder, and the optimizer steps that are taken for them.

    Our listeners run the encoder themselves, with gradients only for the batch of :meth:`open`.
    Stock listeners get word states. Gradients are added up in the encoder's parameters.

    ``spacy train`` calls ``finish_update`` of all components after their updates. ``nlp.update``
    with an optimizer calls it after each component's update, so before any listener has run. Then
    the step is deferred until the listeners are done. A listener that was absent from the last
    batch (excluded or disabled) is not waited for. When it is present again, its gradient may
    arrive after the step, and is part of the next.
    """

    def __init__(self, model: Model, is_removed: Callable[[Model], bool]) -> None:
        """is_removed: whether the component was removed from the pipeline of a listener."""
        self.model = model
        self.is_removed = is_removed
        self.listener_map: dict[str, list[Model]] = {}
        self.passes = WordPasses()
        self._name = ""
        self._waiting: set[int] = set()
        self._absent: set[int] = set()
        self._any_gradients = False
        self._deferred: Optimizer | None = None
        self._word_states: WordStates | None = None
        self._told_of_others = False

    # Connections

    def add(self, listener: Model, component: str) -> None:
        nodes = self.listener_map.setdefault(component, [])
        if listener not in nodes:
            nodes.append(listener)
        link = link_of(listener)
        link.encoder, link.component = self.model, self._name
        link.is_left = partial(self.is_removed, listener)
        if is_listener(listener):
            link.on_gradients = partial(self._received, listener)
            link.on_failure = self.drop_gradients
            link.n_listeners = self._n_listeners
            link.passes = self.passes
        elif not Doc.has_extension("trf_data"):
            Doc.set_extension("trf_data", default=None)
        nO = self.model.maybe_get_dim("nO")
        if nO is not None:
            listener.set_dim("nO", nO, force=True)

    def reset(self, connected: dict[str, list[Model]], disabled: Sequence[Any], name: str) -> None:
        """Forget the connections, but for those of disabled components: spaCy connects all others
        again, and these never, also not when they are enabled.

        connected: instead of those that were. name: the upstream's present name.
        """
        before, self._name, self.listener_map = self.listeners, name, connected
        for component in disabled:
            if isinstance(getattr(component, "model", None), Model):
                for node in component.model.walk():
                    if any(node is x for x in before) and self._serves(node):
                        self.add(node, component.name)

    def remove(self, listener: Model, component: str) -> bool:
        nodes = self.listener_map.get(component, [])
        if listener not in nodes:
            return False
        nodes.remove(listener)
        if not nodes:
            del self.listener_map[component]
        if self._serves(listener):
            link_of(listener).clear()
        return True

    def find(
        self,
        component: Any,
        name: str,
        vocab: Vocab,
        later: Sequence[Model] = (),
        has_learned: bool = False,
    ) -> None:
        """Connect the listeners of a later component that name this upstream, or any (``*``).

        later: the encoders between this one and the component that are disabled. A listener that
        is connected to one of them stays so: nothing would connect it again.
        name: the upstream's present name. spaCy changes it if a component is renamed, or sourced
        with another name; the listeners stay connected. vocab: of the upstream's pipeline. A
        component of another one is shared by both (``nlp.add_pipe(..., source=other)``), and has
        one connection. has_learned: whether the component has learned; if its upstream was
        removed, this one is another than it learned on.
        """
        self._name = name
        if isinstance(getattr(component, "model", None), Model):
            for node in component.model.walk():
                if not (is_listener(node) or is_stock_listener(node)):
                    continue
                link = link_of(node)
                if any(link.encoder is x for x in later):
                    continue
                if link.wanted in ("*", name) or link.encoder is self.model:
                    self._tell_if_shared(component.name, link, vocab)
                    if has_learned and link.encoder is not self.model and link.is_left():
                        self._tell_of_removed(component.name, link)
                    link.vocab = vocab
                    self.add(node, component.name)

    def _tell_if_shared(self, listener: str, link: UpstreamLink, vocab: Vocab) -> None:
        """Log that a listener moves to another pipeline, from one that still has it."""
        moves = link.encoder is not None and link.encoder is not self.model
        if moves and link.vocab is not vocab:
            LOGGER.warning(
                "%s is in two pipelines, and listens to one encoder: until now to %r of the other, "
                "from now on, in both, to %r of this one. To give it an encoder of its own, call "
                "nlp.replace_listeners on the pipeline that it was trained in before it is "
                "sourced.",
                listener,
                link.component,
                self._name,
            )

    def _tell_of_removed(self, listener: str, link: UpstreamLink) -> None:
        LOGGER.warning(
            "%s has learned on the encoder of %r, which was removed, and listens to %r from now "
            "on: it gives other results. Give it an encoder of its own before its upstream is "
            "removed: nlp.replace_listeners.",
            listener,
            link.component,
            self._name,
        )

    @property
    def listeners(self) -> list[Model]:
        return [node for nodes in self.listener_map.values() for node in nodes]

    def _serves(self, node: Model) -> bool:
        """Whether a listener is connected to this upstream: not to a later one."""
        return link_of(node).encoder is self.model

    def served(self) -> Iterator[tuple[str, Model]]:
        """The listeners that are connected to this upstream, each after its component's name."""
        for name, nodes in self.listener_map.items():
            yield from ((name, node) for node in nodes if self._serves(node))

    @property
    def stock(self) -> list[Any]:
        """Stock listeners, without those that were connected to a later upstream."""
        return [node for node in self.listeners if is_stock_listener(node) and self._serves(node)]

    def _ours(self) -> list[Model]:
        return [node for node in self.listeners if is_listener(node) and self._serves(node)]

    def _n_listeners(self) -> int:
        return len(self._ours())

    def __getstate__(self) -> dict[str, Any]:
        # In the copy of a pipeline, listeners that were connected to a later upstream would be
        # copied before that, and lose their connection.
        connected = {
            name: list(filter(self._serves, nodes)) for name, nodes in self.listener_map.items()
        }
        # Listeners are waited for by their id, which differs in a copy.
        between_batches: dict[str, Any] = {
            "_waiting": set(),
            "_absent": set(),
            "_any_gradients": False,
            "_deferred": None,
            "_word_states": None,
            "listener_map": {name: nodes for name, nodes in connected.items() if nodes},
        }
        return {**self.__dict__, **between_batches}

    # Updates

    def open(self, examples: Sequence[Example]) -> None:
        """Let gradients of this batch reach the encoder, whose weights will change."""
        docs = [eg.predicted for eg in examples]
        self.passes.clear()
        self._absent = set(self._waiting)
        self.take_deferred_step()
        for node in self._ours():
            node.attrs["link"].batch = None
        self._waiting = set()
        self._any_gradients = False
        if not any(len(doc) for doc in docs):
            return
        for node in self._ours():
            node.attrs["link"].batch = examples
            self._waiting.add(id(node))
        if self.stock:
            self._word_states = WordStates(self.model, docs, is_train=True)
            for node in self.stock:
                self._waiting.add(id(node))
                receive = self._receiver(self._word_states, node)
                node.receive(node.get_batch_id(docs), self._word_states.doc_data, receive)

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Store word states for stock listeners in ``doc._.trf_data``."""
        present = [doc._.trf_data for doc in docs]
        if any(x is not None and not hasattr(x, "is_of_luke") for x in present):
            self._tell_of_others()
        for doc, data in zip(docs, WordStates(self.model, docs, is_train=False).doc_data):
            doc._.trf_data = data

    def _tell_of_others(self) -> None:
        names = {name for name, node in self.served() if is_stock_listener(node)}
        if not self._told_of_others:
            self._told_of_others = True
            LOGGER.warning(
                "%s replaces the states that documents have already (doc._.trf_data, as a "
                "'transformer' component stores them), so %s uses those of %s. If it was trained "
                "on a transformer of this pipeline, name that as the upstream of its listener "
                "instead of *. This warning is logged once.",
                self._name,
                ", ".join(sorted(names)),
                self._name,
            )

    def finish(self, sgd: Optimizer) -> None:
        """Take the optimizer step, once for all listeners. If no listener has run yet, defer it.
        (The presence of gradients does not show this: they may be from another sub-batch.)"""
        self._backprop_stock()
        if self._waiting and not self._any_gradients:
            self._deferred = sgd
        else:
            self.model.finish_update(sgd)

    def take_deferred_step(self) -> None:
        """Take the deferred step, if there is one: before the next batch, and before saving."""
        self._backprop_stock()
        if self._deferred is not None:
            self.model.finish_update(self._deferred)
            self._deferred = None

    def drop_gradients(self) -> None:
        """After the failure of a listener, remove all gradients of this batch, here and in the
        heads of the other listeners. Otherwise they would be added to those of the next batch."""
        heads = [node.attrs["link"].head for node in self._ours()]
        for module in (module_of(self.model), *heads):
            for parameter in module.parameters() if module is not None else ():
                parameter.grad = None
        self._deferred = self._word_states = None
        self._waiting = set()

    def _receiver(self, states: WordStates, node: Model) -> Callable[[Sequence[Any]], list]:
        def receive(d_doc_data: Sequence[Any]) -> list:
            states.receive(d_doc_data)
            self._received(node)
            return []

        return receive

    def _received(self, node: Model) -> None:
        """Called when a listener's gradients have arrived."""
        self._any_gradients = True
        self._waiting.discard(id(node))
        self._absent.discard(id(node))
        if not self._waiting - self._absent:
            self.take_deferred_step()

    def _backprop_stock(self) -> None:
        """Compute the encoder's gradients from those of stock listeners; missing ones are zeros."""
        if self._word_states is not None and self._word_states.has_gradient:
            self._word_states.backprop()
            self._word_states = None
            try:
                check_gradients([module_of(self.model)])
            except TrainingError as err:
                self.drop_gradients()
                raise TrainingError(f"A stock component on a shared encoder: {err}") from err
