"""The published classes: one row each.

A row says which tensors a file of the class has beside the encoder, and which component reads it
with which settings. Everything else in the package takes the names of classes from here, so that a
new class is a new row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.config import LukeConfig
from .names import (
    CLASSIFIER_BIAS,
    CLASSIFIER_WEIGHT,
    ENTITY_HEAD,
    PHRASE_BIAS,
    PHRASE_WEIGHT,
    WORD_HEAD,
)

Shape = tuple[int, ...]
Size = int | str | tuple[int, str]
"""A number, a field of ``LukeConfig``, or so many times that field."""
ANY = -1
"""A size that is not checked, for example the number of labels."""


@dataclass(frozen=True)
class PublishedClass:
    """A class that ``architectures`` of a ``config.json`` may name.

    head: the tensors without which a file of the class is incomplete -> their sizes.
    sign: a tensor by which the class is known if ``config.json`` does not name it.
    task: its ``task`` in ``tokenizer_config.json``, from which ``transformers``' tokenizer knows
        what to mark; empty if there is nothing to mark.
    component: the factory of the component that reads it; empty if none can.
    settings: the component's settings with which it works as published.
    """

    name: str
    head: Mapping[str, Sequence[Size]] = field(default_factory=dict)
    sign: str = ""
    task: str = ""
    component: str = "luke"
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def n_states(self) -> int:
        """How many states a row of its classifier of entities reads; 0 for a class without one."""
        *_, size = self.head.get(CLASSIFIER_WEIGHT, (0,))
        return size[0] if isinstance(size, tuple) else 0

    def shapes(self, config: LukeConfig) -> dict[str, Shape]:
        """The tensors of the head of a model with this configuration -> their shapes."""

        def resolved(size: Size) -> int:
            factor, name = size if isinstance(size, tuple) else (1, size)
            return factor * getattr(config, name) if isinstance(name, str) else name

        return {name: tuple(map(resolved, sizes)) for name, sizes in self.head.items()}


def _classifier(n_states: int, bias: bool = True) -> dict[str, tuple[Size, ...]]:
    """A linear layer with a row for each label. bias: whether all files have one."""
    head: dict[str, tuple[Size, ...]] = {CLASSIFIER_WEIGHT: (ANY, (n_states, "hidden_size"))}
    return {**head, CLASSIFIER_BIAS: (ANY,)} if bias else head


def _masked_head(names: Mapping[str, str], size: str, n_classes: str) -> dict[str, tuple[str, ...]]:
    """names: those of ``WORD_HEAD`` or ``ENTITY_HEAD``. size: of the rows of the table that the
    head is tied to. n_classes: how many rows that has."""
    shapes = {
        "dense.weight": (size, "hidden_size"),
        "dense.bias": (size,),
        "norm.weight": (size,),
        "norm.bias": (size,),
        "bias": (n_classes,),
    }
    return {names[ours]: shape for ours, shape in shapes.items()}


def _marked(scorer: str) -> dict[str, Any]:
    """The settings with which a scorer asks as the official code does."""
    model = {"@architectures": f"spacy-luke.{scorer}.v1", "mode": "markers"}
    return {"model": {**model, "max_mention_pieces": 30}}


BARE_MODEL = PublishedClass("LukeModel")
MASKED_LM = PublishedClass(
    "LukeForMaskedLM",
    head={
        **_masked_head(WORD_HEAD, "hidden_size", "vocab_size"),
        **_masked_head(ENTITY_HEAD, "entity_emb_size", "entity_vocab_size"),
    },
    sign=ENTITY_HEAD["bias"],
)
ENTITY_TYPING = PublishedClass(
    "LukeForEntityClassification",
    head=_classifier(1),
    task="entity_classification",
    component="luke_entity_typing",
    settings=_marked("EntityScorer"),
)
ENTITY_PAIRS = PublishedClass(
    "LukeForEntityPairClassification",
    head=_classifier(2, bias=False),  # most files have none
    task="entity_pair_classification",
    component="luke_relation",
    settings=_marked("PairScorer"),
)
ENTITY_SPANS = PublishedClass(
    "LukeForEntitySpanClassification",
    head=_classifier(3),
    task="entity_span_classification",
    component="luke_ner",
    settings={
        "model": {"@architectures": "spacy-luke.SpanScorer.v1", "mode": "full"},
        "suggester": {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 16},
    },
)
QUESTIONS = PublishedClass(
    "LukeForQuestionAnswering",
    head={"qa_outputs.weight": (2, "hidden_size"), "qa_outputs.bias": (2,)},
    sign="qa_outputs.weight",
)
SPAN_QUESTIONS = PublishedClass(
    "LukeForEntitySpanQA",
    head={"scorer.weight": (1, (2, "hidden_size")), "scorer.bias": (1,)},
    sign="scorer.weight",
)
PHRASES = PublishedClass(
    "UCTopicModel",
    head={PHRASE_WEIGHT: ("hidden_size", "hidden_size"), PHRASE_BIAS: ("hidden_size",)},
    settings={"phrases": True, "vector_hooks": True, "model": {"spaces": "words"}},
)
# Heads that classify words or texts and read no entities.
_WITHOUT_ENTITIES = (
    PublishedClass("LukeForSequenceClassification", component=""),
    PublishedClass("LukeForTokenClassification", component=""),
    PublishedClass("LukeForMultipleChoice", component=""),
)

CLASSES = (
    *(ENTITY_TYPING, ENTITY_PAIRS, ENTITY_SPANS, QUESTIONS, SPAN_QUESTIONS, PHRASES),
    *(MASKED_LM, BARE_MODEL),  # after those that may hold its heads, too
    *_WITHOUT_ENTITIES,
)
_BY_NAME = {row.name: row for row in CLASSES}


def class_named(name: str) -> PublishedClass:
    """The row of a class; for an unknown one a row without a head, which ``luke`` reads."""
    if name.startswith("UCTopic"):  # there are several
        return PHRASES
    return _BY_NAME.get(name) or PublishedClass(name)
