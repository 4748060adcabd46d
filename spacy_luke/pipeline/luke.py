"""``luke``: contextual vectors of words and entities, and the encoder others listen to."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model, Optimizer, set_dropout_rate

from ..errors import ConfigError
from ..layers.doc_states import GivenEntities, encode_docs
from ..layers.encoder import ENCODER, module_of
from ..layers.listener import UpstreamLink, is_listener
from ..layers.transformer_data import WordStates, is_stock_listener, receiver
from ..model.encoder import AttentionPattern
from .doc_data import LukeDocData, VectorSource, attach, install_extensions, keep

DEFAULT_CONFIG = Config().from_str(
    """
[luke]
attention = "full"
unknown_entity = "[MASK]"
link_by_text = false
eager = false
keep_vectors = false
vector_hooks = false

[luke.model]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke",
    assigns=["doc._.luke", "span._.luke_vector"],
    requires=["doc.ents"],
    default_config=DEFAULT_CONFIG["luke"],
)
def make_luke(
    nlp: Language,
    name: str,
    model: Model,
    attention: Literal["full", "probe"],
    unknown_entity: Literal["[MASK]", "[UNK]"],
    link_by_text: bool,
    eager: bool,
    keep_vectors: bool,
    vector_hooks: bool,
) -> "Luke":
    """Construct the component.

    model: ``spacy-luke.LukeEncoder.v1``.
    attention: ``full``, as published, or ``probe``, where words do not see entities.
    unknown_entity: what an entity outside the entity vocabulary enters as.
    link_by_text: look up an entity without a ``kb_id_`` by its text.
    eager: compute vectors in the pipeline, batched, instead of on first access.
    keep_vectors: store vectors in ``Doc.user_data``, so that they survive serialisation and
        other processes (implies eager).
    vector_hooks: make ``Span.vector``, ``Token.vector``, ``Doc.vector`` and ``similarity``
        read these vectors.
    """
    return Luke(
        nlp.vocab,
        model,
        name,
        attention=attention,
        unknown_entity=unknown_entity,
        link_by_text=link_by_text,
        eager=eager,
        keep_vectors=keep_vectors,
        vector_hooks=vector_hooks,
    )


class Luke(TrainablePipe):
    """Serves vectors of words and of ``Doc.ents``, and its encoder to listeners."""

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "luke",
        *,
        attention: AttentionPattern = "full",
        unknown_entity: str = "[MASK]",
        link_by_text: bool = False,
        eager: bool = False,
        keep_vectors: bool = False,
        vector_hooks: bool = False,
    ):
        if model.name != ENCODER:
            raise ConfigError(f"{name}.model must be spacy-luke.LukeEncoder.v1, not {model.name}.")
        if attention not in ("full", "probe"):
            raise ConfigError(f"{name}.attention is {attention!r}; use 'full' or 'probe'.")
        if unknown_entity not in ("[MASK]", "[UNK]"):
            raise ConfigError(
                f"{name}.unknown_entity is {unknown_entity!r}; use '[MASK]' or '[UNK]'."
            )
        self.vocab = vocab
        self.model = model
        self.name = name
        self.cfg: dict[str, Any] = {
            "attention": attention,
            "unknown_entity": unknown_entity,
            "link_by_text": link_by_text,
            "eager": eager,
            "keep_vectors": keep_vectors,
            "vector_hooks": vector_hooks,
            "titles": {},
        }
        self.listener_map: dict[str, list[Model]] = {}
        self._word_states: WordStates | None = None
        self._waiting = 0
        self._owed: Optimizer | None = None
        install_extensions()

    # Vectors

    def predict(self, docs: Iterable[Doc]) -> list[LukeDocData] | None:
        """Vectors of the documents' tokens and entities; None where they are made on access."""
        docs = list(docs)
        if not (self.cfg["eager"] or self.cfg["keep_vectors"]):
            return None
        return self._encode(docs, [list(doc.ents) for doc in docs])

    def set_annotations(self, docs: Iterable[Doc], scores: list[LukeDocData] | None) -> None:
        docs = list(docs)
        for i, doc in enumerate(docs):
            source = VectorSource(self._compute)
            attach(doc, source)
            if scores is not None:
                source.store(doc, scores[i])
                if self.cfg["keep_vectors"]:
                    keep(doc, scores[i], self.model.ops.to_numpy)
            if self.cfg["vector_hooks"]:
                _install_vector_hooks(doc)
        if self._stock_listeners():
            states = WordStates(self.model, docs, is_train=False)
            for doc, data in zip(docs, states.doc_data):
                doc._.trf_data = data

    def _compute(self, doc: Doc, ents: list[Span]) -> LukeDocData:
        return self._encode([doc], [ents])[0]

    def _encode(self, docs: Sequence[Doc], ents: Sequence[list[Span]]) -> list[LukeDocData]:
        if not docs:
            return []
        given = [self._given(doc_ents) for doc_ents in ents]
        states = encode_docs(self.model, docs, given, self.cfg["attention"])
        return [LukeDocData(state.token_vectors, state.entity_vectors) for state in states]

    def _given(self, ents: list[Span]) -> GivenEntities:
        table = module_of(self.model).network.config.entity_labels
        classes = {label: i + 1 for i, label in enumerate(table)}
        return GivenEntities(
            np.asarray([(ent.start, ent.end) for ent in ents], dtype=np.int64).reshape(-1, 2),
            np.asarray([self.entity_id(ent) for ent in ents], dtype=np.int64),
            np.asarray([classes.get(ent.label_, 0) for ent in ents], dtype=np.int64),
        )

    def entity_id(self, span: Span) -> int:
        """The row of the entity table that a span enters as.

        Its ``kb_id_``, or the title that the QID table has for it, or (as a setting) its text,
        if that is in the entity vocabulary; else [MASK] or [UNK].
        """
        vocab = module_of(self.model).entities
        language = self.vocab.lang or None
        names = [span.kb_id_, self.cfg["titles"].get(span.kb_id_, "")]
        if self.cfg["link_by_text"]:
            names.append(span.text)
        for name in names:
            found = vocab.find(name, language)
            if found is not None:
                return found
        return vocab.unk_id if self.cfg["unknown_entity"] == "[UNK]" else vocab.mask_id

    # Listeners

    @property
    def listeners(self) -> list[Model]:
        return [node for nodes in self.listener_map.values() for node in nodes]

    @property
    def listening_components(self) -> list[str]:
        return list(self.listener_map)

    def add_listener(self, listener: Model, component_name: str) -> None:
        nodes = self.listener_map.setdefault(component_name, [])
        if listener not in nodes:
            nodes.append(listener)
        if is_listener(listener):
            link: UpstreamLink = listener.attrs["link"]
            link.encoder, link.settle = self.model, self._settle
        else:
            _install_trf_data()
        nO = self.model.maybe_get_dim("nO")
        if nO is not None:
            listener.set_dim("nO", nO, force=True)

    def remove_listener(self, listener: Model, component_name: str) -> bool:
        nodes = self.listener_map.get(component_name, [])
        if listener not in nodes:
            return False
        nodes.remove(listener)
        if not nodes:
            del self.listener_map[component_name]
        if is_listener(listener):
            listener.attrs["link"].encoder = listener.attrs["link"].settle = None
        return True

    def find_listeners(self, component: Any) -> None:
        """Connect the listeners of a later component that want this one, or any."""
        names = ("*", self.name)
        if isinstance(getattr(component, "model", None), Model):
            for node in component.model.walk():
                wanted = node.attrs.get("upstream") if is_listener(node) else None
                if is_stock_listener(node):
                    wanted = getattr(node, "upstream_name", None)
                if wanted in names:
                    self.add_listener(node, component.name)

    def _links(self) -> list[UpstreamLink]:
        return [node.attrs["link"] for node in self.listeners if is_listener(node)]

    def _stock_listeners(self) -> list[Any]:
        return [node for node in self.listeners if is_stock_listener(node)]

    # Training

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Open the encoder for the listeners' gradients; it has no loss of its own.

        Stock listeners are served word states here. Ours ask for themselves, and only while
        this component takes part in the update.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Luke.update")
        self._step_if_owed()
        self._flush()
        docs = [eg.predicted for eg in examples]
        set_dropout_rate(self.model, drop)
        for link in self._links():
            link.live = True
        stock = self._stock_listeners()
        if stock and any(len(doc) for doc in docs):
            self._word_states = WordStates(self.model, docs, is_train=True)
            self._waiting = len(stock)
            receive = receiver(self._word_states, self._received)
            for node in stock:
                node.receive(node.get_batch_id(docs), self._word_states.doc_data, receive)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Take the step, once for all listeners.

        ``nlp.update`` with an optimizer finishes each component right after its own update,
        that is before any listener has run: then the step is owed, and taken when the last
        listener is done.
        """
        links = self._links()
        n_open = sum(link.live for link in links) + self._waiting
        if n_open and n_open == len(links) + len(self._stock_listeners()):
            self._owed = sgd
        else:
            self._flush()
            self.model.finish_update(sgd)

    def _settle(self, sgd: Optimizer) -> None:
        if not self._waiting and not any(link.live for link in self._links()):
            self._step_if_owed()

    def _step_if_owed(self) -> None:
        if self._owed is not None:
            self._flush()
            self.model.finish_update(self._owed)
            self._owed = None

    def _received(self) -> None:
        """A stock listener has handed over its gradients."""
        self._waiting -= 1
        if not self._waiting:
            self._flush()
            if self._owed is not None:
                self._settle(self._owed)

    def _flush(self) -> None:
        """Let the stock listeners' gradients flow, also where some never reported."""
        if self._word_states is not None:
            self._word_states.backprop()
            self._word_states, self._waiting = None, 0

    def get_loss(self, examples: Any, scores: Any) -> tuple[float, float]:
        """An encoder has no loss of its own."""
        return 0.0, 0.0

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        titles: dict[str, str] | None = None,
    ) -> None:
        """Read the encoder's weights.

        titles: identifier (a QID, say) -> title, for entities whose ``kb_id_`` is not itself a
        title of the entity vocabulary.
        """
        if titles is not None:
            self.cfg["titles"] = dict(titles)
        self.model.initialize()
        if nlp is not None:
            names = nlp.pipe_names
            if self.name in names:
                for _, component in nlp.pipeline[names.index(self.name) + 1 :]:
                    self.find_listeners(component)

    def add_label(self, label: str) -> int:
        raise ConfigError(f"{self.name} has no labels.")


def _install_trf_data() -> None:
    if not Doc.has_extension("trf_data"):
        Doc.set_extension("trf_data", default=None)


def _install_vector_hooks(doc: Doc) -> None:
    doc.user_span_hooks["vector"] = _span_vector
    doc.user_span_hooks["similarity"] = _similarity
    doc.user_token_hooks["vector"] = _token_vector
    doc.user_token_hooks["similarity"] = _similarity
    doc.user_hooks["vector"] = _doc_vector
    doc.user_hooks["similarity"] = _similarity
    for hooks in (doc.user_span_hooks, doc.user_token_hooks, doc.user_hooks):
        hooks["vector_norm"] = _norm
        hooks["has_vector"] = _has_vector


def _span_vector(span: Span) -> Any:
    return span._.luke_vector


def _token_vector(token: Any) -> Any:
    return token.doc._.luke.token_vectors[token.i]


def _doc_vector(doc: Doc) -> Any:
    return doc._.luke.token_vectors.mean(axis=0)


def _norm(item: Any) -> float:
    return float((item.vector**2).sum() ** 0.5)


def _has_vector(item: Any) -> bool:
    return True


def _similarity(one: Any, other: Any) -> float:
    """Cosine similarity; 0 where either vector is all zeros."""
    norms = _norm(one) * _norm(other)
    return float((one.vector * other.vector).sum()) / norms if norms else 0.0
