"""``luke``: contextual vectors of words and entities, and an encoder that listeners share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Config, Model, Optimizer, set_dropout_rate

from ..annotations.attributes import require
from ..annotations.mentions import UNLINKED
from ..annotations.vectors import LukeDocData, VectorSource, attach, keep, vectors_of
from ..errors import ConfigError
from ..layers.doc_states import GivenEntities, encode_docs
from ..layers.encoder import ENCODER, module_of
from ..layers.listener import is_listener
from ..layers.phrases import encode_phrases
from ..layers.transformer_data import link_of
from ..layers.upstream import Upstream
from ..model.network import AttentionPattern
from ..report import LOGGER
from ..validation import check_dropout, setting
from .masked_entities import Ranked, rank_entities
from .model_card import record
from .pipeline_ref import PipelineRef
from .saving import (
    SavesEncoderApart,
    check_listeners,
    check_loaded_upstream,
    check_upstream,
    has_weights,
)

DEFAULT_CONFIG = Config().from_str(
    """
[luke]
attention = "full"
unknown_entity = "[MASK]"
link_by_text = false
eager = false
keep_vectors = false
vector_hooks = false
phrases = false

[luke.model]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke",
    assigns=["doc._.luke", "span._.luke_vector"],
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
    phrases: bool,
) -> "Luke":
    """Construct the component.

    model: ``spacy-luke.LukeEncoder.v1``.
    attention: ``full``, as published, or ``probe``, in which words do not see entities.
    unknown_entity: the row used for an entity that is not in the entity vocabulary.
    link_by_text: look up an entity without a ``kb_id_`` by its text.
    eager: compute vectors in the pipeline, in batches, instead of on first access.
    keep_vectors: store vectors in ``Doc.user_data``, so that they are serialised and returned from
        other processes (implies eager).
    vector_hooks: ``Span.vector``, ``Token.vector``, ``Doc.vector``, ``similarity`` use these
        vectors.
    phrases: vectors of entities are phrase vectors (UCTopic, Li et al. 2022): each entity is
        encoded alone, as [MASK], and its state goes through the checkpoint's head ``mlp.dense`` and
        tanh. Only for checkpoints with that head.
    """
    component = Luke(
        nlp.vocab,
        model,
        name,
        attention=attention,
        unknown_entity=unknown_entity,
        link_by_text=link_by_text,
        eager=eager,
        keep_vectors=keep_vectors,
        vector_hooks=vector_hooks,
        phrases=phrases,
    )
    component.home = PipelineRef(nlp)
    return component


class Luke(SavesEncoderApart):
    """Computes vectors of words and of ``Doc.ents``, and shares its encoder with listeners."""

    attention: AttentionPattern = setting()
    unknown_entity: Literal["[MASK]", "[UNK]"] = setting()
    link_by_text: bool = setting()
    eager: bool = setting()
    keep_vectors: bool = setting()
    vector_hooks: bool = setting()
    phrases: bool = setting()
    titles: dict = setting()  # of strings; millions of them are not checked one by one

    upstream: Upstream
    home: PipelineRef

    def __init__(self, vocab: Vocab, model: Model, name: str, **cfg: Any) -> None:
        if model.name != ENCODER:
            raise ConfigError(f"{name}.model must be spacy-luke.LukeEncoder.v1, not {model.name}.")
        self.vocab = vocab
        self.model = model
        self.name = name
        self.cfg = {**cfg, "titles": {}}
        self.home = PipelineRef()
        self.upstream = Upstream(model, self._is_removed)
        require("luke", "luke_vector")

    # Vectors

    def predict(self, docs: Iterable[Doc]) -> list[LukeDocData] | None:
        """Vectors of the documents' tokens and entities; None if they are computed on access."""
        docs = list(docs)
        if not (self.eager or self.keep_vectors):
            return None
        return self._encode(docs, [list(doc.ents) for doc in docs])

    def set_annotations(self, docs: Iterable[Doc], scores: list[LukeDocData] | None) -> None:
        docs = list(docs)
        for i, doc in enumerate(docs):
            source = VectorSource(self._compute)
            attach(doc, source)
            if scores is not None:
                source.store(doc, scores[i])
                if self.keep_vectors:
                    keep(doc, scores[i], self.model.ops.to_numpy)
            if self.vector_hooks:
                _install_vector_hooks(doc)
        if self.upstream.stock:
            self.upstream.annotate(docs)

    def _compute(self, doc: Doc, ents: list[Span]) -> LukeDocData:
        return self._encode([doc], [ents])[0]

    def _encode(self, docs: Sequence[Doc], ents: Sequence[list[Span]]) -> list[LukeDocData]:
        if not docs:
            return []
        found = [[self._find(ent) for ent in doc_ents] for doc_ents in ents]
        given = [self._given(*of_doc) for of_doc in zip(ents, found)]
        if self.phrases:
            states = encode_phrases(self.model, docs, given)
        else:
            self._warn_of_unknown(ents, found)
            states = encode_docs(self.model, docs, given, self.attention)
        return [LukeDocData(state.token_vectors, state.entity_vectors) for state in states]

    def _given(self, ents: list[Span], found: list[int | None]) -> GivenEntities:
        """found: the row of each entity's link; None if it is unknown."""
        rows = [self._unknown_id if row is None else row for row in found]
        table = module_of(self.model).network.config.entity_labels
        classes = {label: i + 1 for i, label in enumerate(table)}
        return GivenEntities(
            np.asarray([(ent.start, ent.end) for ent in ents], dtype=np.int64).reshape(-1, 2),
            np.asarray(rows, dtype=np.int64),
            np.asarray([classes.get(ent.label_, 0) for ent in ents], dtype=np.int64),
        )

    def entity_id(self, span: Span) -> int:
        """The row of the entity table that is the input for a span.

        The row of its ``kb_id_``, else of the title that ``titles`` has for it, else (if
        ``link_by_text`` is set and it has no ``kb_id_``) of its text. If none of these is in the
        entity vocabulary, the row of [MASK] or [UNK], as ``unknown_entity`` says. A ``kb_id_``
        "NIL" means that the entity is unknown: neither it nor the text is looked up.
        """
        row = self._find(span)
        return self._unknown_id if row is None else row

    @property
    def _unknown_id(self) -> int:
        vocab = module_of(self.model).entities
        return vocab.unk_id if self.unknown_entity == "[UNK]" else vocab.mask_id

    def _find(self, span: Span) -> int | None:
        """See :meth:`entity_id`; None if the entity is unknown."""
        vocab = module_of(self.model).entities
        # The document's language goes first: this component may be sourced from a pipeline of
        # another language.
        language = span.doc.vocab.lang or self.vocab.lang or None
        names = []
        if span.kb_id_ not in UNLINKED:
            names = [span.kb_id_, self.titles.get(span.kb_id_, "")]
        if self.link_by_text and not span.kb_id_:
            names.append(span.text)
        for name in names:
            row = vocab.find(name, language)
            if row is not None:
                return row
        return None

    def _warn_of_unknown(
        self, ents: Sequence[list[Span]], found: Sequence[list[int | None]]
    ) -> None:
        """Log once how many ``kb_id_`` of a batch are unknown. found: the row of each entity."""
        links = [
            (ent.kb_id_, row)
            for ent, row in zip(chain(*ents), chain(*found))
            if ent.kb_id_ not in UNLINKED
        ]
        unknown = [name for name, row in links if row is None]
        if unknown and module_of(self.model).reports_first("unknown entities"):
            LOGGER.warning(
                "%s: %d of the %d kb_id_ of this batch are not in the entity vocabulary (such as "
                "%r); the input for these entities is %s. This warning is logged once per encoder.",
                self.name,
                len(unknown),
                len(links),
                unknown[0],
                self.unknown_entity,
            )

    def masked_entities(self, mentions: Sequence[Span], n: int = 10) -> list[Ranked]:
        """For each mention the ``n`` most probable entities of the vocabulary, by the masked-entity
        head: (title, probability), best first.

        As in pretraining, the entity is hidden behind [MASK], and its words are not. All mentions
        of a document are encoded together. A mention without pieces, or longer than a window, gets
        an empty list. One call with many mentions is faster than many calls.

        Raises ConfigError if the encoder's checkpoint has no such head, or if ``n`` is below 1.
        """
        return rank_entities(self.model, mentions, n)

    # Listeners; spaCy uses these names

    @property
    def listener_map(self) -> dict[str, list[Model]]:
        return self.upstream.listener_map

    @listener_map.setter
    def listener_map(self, value: dict[str, list[Model]]) -> None:
        disabled = [pipe for pipe, is_disabled in self.home.components() if is_disabled]
        self.upstream.reset(value, disabled, self.name)

    @property
    def listeners(self) -> list[Model]:
        return self.upstream.listeners

    @property
    def listening_components(self) -> list[str]:
        return list(self.listener_map)

    def add_listener(self, listener: Model, component_name: str) -> None:
        self.upstream.add(listener, component_name)

    def remove_listener(self, listener: Model, component_name: str) -> bool:
        return self.upstream.remove(listener, component_name)

    def find_listeners(self, component: Any) -> None:
        """Connect the listeners of a later component that name this one, or any (``*``)."""
        model = getattr(component, "model", None)
        self.upstream.find(
            *(component, self.name, self.vocab, self._between(component)),
            has_learned=isinstance(model, Model) and has_weights(model),
        )

    def _between(self, component: Any) -> list[Model]:
        """The encoders of other ``luke`` components between this one and a later one that are
        disabled, as frozen ones are while ``spacy train`` initialises the others. (Those that are
        enabled connect the listeners themselves, after this one.)"""
        pipes = self.home.components()
        places = [[i for i, (pipe, _) in enumerate(pipes) if pipe is x] for x in (self, component)]
        if not all(places):
            return []
        (start, *_), (end, *_) = places
        between = pipes[start + 1 : end]
        return [pipe.model for pipe, disabled in between if disabled and isinstance(pipe, Luke)]

    def _is_removed(self, listener: Model) -> bool:
        """Whether the pipeline of this component has it no more, and still has the listener."""
        pipes = [pipe for pipe, _ in self.home.components()]
        models = [x.model for x in pipes if isinstance(getattr(x, "model", None), Model)]
        heard = any(node is listener for model in models for node in model.walk())
        return heard and all(pipe is not self for pipe in pipes)

    # Training

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Let this batch's gradients of the listeners reach the encoder. There is no loss.

        Stock listeners get their word states here. Our listeners run the encoder themselves, with
        gradients only if this component takes part in the update.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Luke.update")
        check_dropout(drop)
        set_dropout_rate(self.model, drop)
        self.upstream.open(examples)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Take the optimizer's step, once for all listeners (see :class:`.upstream.Upstream`)."""
        self.upstream.finish(sgd)

    def use_params(self, params: dict) -> Iterator[None]:
        """Use other weights until the generator is resumed, as in spaCy. A deferred step is taken
        first, with the present weights."""
        self.upstream.take_deferred_step()
        with self.model.use_params(params):
            yield

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the component to a directory. A deferred step is taken first. Raises ConfigError if
        the config of the pipeline that is being saved has other layers in place of its listeners,
        or if they would have another upstream in the loaded pipeline.
        """
        self.upstream.take_deferred_step()
        served = list(self.upstream.served())
        check_listeners(Path(path), [name for name, node in served if is_listener(node)])
        for name, node in served:
            check_upstream(Path(path).with_name(name), node)
        super().to_disk(path, exclude=exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "Luke":
        """Read the component from a directory. Raises ConfigError if a listener, also that of a
        stock component, was saved with another upstream, which is not loaded."""
        served = self.upstream.served() if Path(path).name == self.name else ()
        for name, node in served:  # not if another pipeline's component is read
            check_loaded_upstream(Path(path).with_name(name), link_of(node))
        super().from_disk(path, exclude=exclude)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the component to bytes. A deferred step is taken first."""
        self.upstream.take_deferred_step()
        return super().to_bytes(exclude=exclude)

    def get_loss(self, examples: Any, scores: Any) -> tuple[float, float]:
        """An encoder has no loss: both values are 0."""
        return 0.0, 0.0

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        titles: dict[str, str] | None = None,
    ) -> None:
        """Read the encoder's weights.

        titles: ``kb_id_`` (such as a QID) -> title of the entity vocabulary.
        """
        if titles is not None:
            self.titles = dict(titles)
        self.model.initialize()
        record(nlp, self.name, {})
        if nlp is not None:
            self.home = PipelineRef(nlp)
            names = nlp.pipe_names
            if self.name in names:
                for _, component in nlp.pipeline[names.index(self.name) + 1 :]:
                    self.find_listeners(component)

    def add_label(self, label: str) -> int:
        raise ConfigError(f"{self.name} has no labels.")


def _install_vector_hooks(doc: Doc) -> None:
    doc.user_span_hooks["vector"] = _span_vector
    doc.user_span_hooks["similarity"] = _similarity
    doc.user_token_hooks["vector"] = _token_vector
    doc.user_token_hooks["similarity"] = _similarity
    doc.user_hooks["vector"] = _doc_vector
    doc.user_hooks["similarity"] = _similarity
    for hooks in (doc.user_span_hooks, doc.user_token_hooks, doc.user_hooks):
        hooks["has_vector"] = _has_vector
    # Not of spans: for this hook, spaCy calls "vector". Without, it computes the norm of that.
    for hooks in (doc.user_token_hooks, doc.user_hooks):
        hooks["vector_norm"] = _norm


def _span_vector(span: Span) -> Any:
    return span._.luke_vector


def _token_vector(token: Any) -> Any:
    return vectors_of(token.doc).token_vectors[token.i]


def _doc_vector(doc: Doc) -> Any:
    vectors = vectors_of(doc).token_vectors
    return vectors.sum(axis=0) / max(len(doc), 1)


def _norm(item: Any) -> float:
    return float((item.vector**2).sum() ** 0.5)


def _has_vector(item: Any) -> bool:
    return True


def _similarity(one: Any, other: Any) -> float:
    """Cosine similarity; 0 if either vector is all zeros."""
    norms = _norm(one) * _norm(other)
    return float((one.vector * other.vector).sum()) / norms if norms else 0.0
