"""What a component does whose encoder others listen to: connect, open, add up, step once."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model, Optimizer

from ..errors import TrainingError
from .encoder import module_of
from .encoder_run import check_gradients
from .listener import UpstreamLink, is_listener
from .transformer_data import WordStates, is_stock_listener
from .word_passes import WordPasses


class Upstream:
    """The listeners of one encoder, and the steps it takes for them.

    Our listeners run the encoder themselves, with gradients only for the batch that :meth:`open`
    named.
    Stock listeners are handed word states. Gradients add up in the encoder's parameters.

    ``spacy train`` finishes all components after their updates. ``nlp.update`` with an optimizer
    finishes each right after its own update, that is before any listener has run: then the
    step is owed, and taken when the listeners are done. A listener that was absent from the last
    batch (excluded, disabled) is not waited for again until it comes back; in the batch in which
    it does, its gradient may arrive after the step, and is part of the next.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.listener_map: dict[str, list[Model]] = {}
        self.passes = WordPasses()
        self._name = ""
        self._waiting: set[int] = set()
        self._absent: set[int] = set()
        self._heard = False
        self._owed: Optimizer | None = None
        self._word_states: WordStates | None = None

    # Connections

    def add(self, listener: Model, component: str) -> None:
        nodes = self.listener_map.setdefault(component, [])
        if listener not in nodes:
            nodes.append(listener)
        if is_listener(listener):
            link: UpstreamLink = listener.attrs["link"]
            link.encoder, link.component = self.model, self._name
            link.report = partial(self._reported, listener)
            link.failed = self.drop_gradients
            link.n_listeners = self._n_listeners
            link.passes = self.passes
        elif not Doc.has_extension("trf_data"):
            Doc.set_extension("trf_data", default=None)
        nO = self.model.maybe_get_dim("nO")
        if nO is not None:
            listener.set_dim("nO", nO, force=True)

    def remove(self, listener: Model, component: str) -> bool:
        nodes = self.listener_map.get(component, [])
        if listener not in nodes:
            return False
        nodes.remove(listener)
        if not nodes:
            del self.listener_map[component]
        if is_listener(listener) and listener.attrs["link"].encoder is self.model:
            listener.attrs["link"].clear()
        return True

    def find(self, component: Any, name: str) -> None:
        """Connect the listeners of a later component that want this upstream, or any. name: that of
        the upstream by now, which spaCy changes if a component is renamed, or sourced under another
        name; its listeners stay its own."""
        self._name = name
        if isinstance(getattr(component, "model", None), Model):
            for node in component.model.walk():
                link = node.attrs["link"] if is_listener(node) else None
                wanted = link.wanted if link is not None else None
                if is_stock_listener(node):
                    wanted = getattr(node, "upstream_name", None)
                if wanted in ("*", name) or link is not None and link.encoder is self.model:
                    self.add(node, component.name)

    @property
    def listeners(self) -> list[Model]:
        return [node for nodes in self.listener_map.values() for node in nodes]

    @property
    def stock(self) -> list[Any]:
        return [node for node in self.listeners if is_stock_listener(node)]

    def _ours(self) -> list[Model]:
        """Our listeners, but for those that a later upstream has taken over."""
        return [
            node
            for node in self.listeners
            if is_listener(node) and node.attrs["link"].encoder is self.model
        ]

    def _n_listeners(self) -> int:
        return len(self._ours())

    def __getstate__(self) -> dict[str, Any]:
        # Listeners are waited for by their identity, which a copy does not share.
        at_rest: dict[str, Any] = {
            "_waiting": set(),
            "_absent": set(),
            "_heard": False,
            "_owed": None,
            "_word_states": None,
        }
        return {**self.__dict__, **at_rest}

    # Updates

    def open(self, examples: Sequence[Example]) -> None:
        """Let gradients of this batch reach the encoder, whose weights will change."""
        docs = [eg.predicted for eg in examples]
        self.passes.clear()
        self._absent = set(self._waiting)
        self.settle()
        for node in self._ours():
            node.attrs["link"].batch = None
        self._waiting = set()
        self._heard = False
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

    def finish(self, sgd: Optimizer) -> None:
        """Take the optimizer step, once for all listeners. If none has run yet, defer it.
        (Gradients cannot tell this: they may be from another sub-batch.)"""
        self._flush()
        if self._waiting and not self._heard:
            self._owed = sgd
        else:
            self.model.finish_update(sgd)

    def settle(self) -> None:
        """Take the step that is owed, if one is: before the next batch, and before saving."""
        self._flush()
        self._step_if_owed()

    def drop_gradients(self) -> None:
        """A listener failed in this batch: what has been added up so far, here and in the heads of
        the other listeners, is half of a gradient. The next batch must not take it for its own."""
        heads = [node.attrs["link"].head for node in self._ours()]
        for module in (module_of(self.model), *heads):
            for parameter in module.parameters() if module is not None else ():
                parameter.grad = None
        self._owed = self._word_states = None
        self._waiting = set()

    def _receiver(self, states: WordStates, node: Model) -> Callable[[Sequence[Any]], list]:
        def receive(d_doc_data: Sequence[Any]) -> list:
            states.receive(d_doc_data)
            self._reported(node)
            return []

        return receive

    def _reported(self, node: Model) -> None:
        """A listener's gradients have arrived."""
        self._heard = True
        self._waiting.discard(id(node))
        self._absent.discard(id(node))
        if not self._waiting - self._absent:
            self._flush()
            self._step_if_owed()

    def _step_if_owed(self) -> None:
        if self._owed is not None:
            self.model.finish_update(self._owed)
            self._owed = None

    def _flush(self) -> None:
        """Let the stock listeners' gradients flow; those that never reported count as zeros."""
        if self._word_states is not None and self._word_states.has_gradient:
            self._word_states.backprop()
            self._word_states = None
            try:
                check_gradients([module_of(self.model)])
            except TrainingError as err:
                self.drop_gradients()
                raise TrainingError(f"A stock component on a shared encoder: {err}") from err
