"""The published classes: one row each.

A row lists the tensors of the class's head, the component that reads it, and the component's
settings. All other modules take the names of classes from here, so a new class is a new row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.config import LukeConfig
from .names import (
    CLASSIFIER,
    CLASSIFIER_BIAS,
    CLASSIFIER_WEIGHT,
    ENTITY_HEAD,
    MASK_EMBEDDING,
    PHRASE_BIAS,
    PHRASE_WEIGHT,
    WORD_HEAD,
)

Shape = tuple[int, ...]
Size = int | str | tuple[int, str]
"""A number, a field of ``LukeConfig``, or a multiple (factor, field)."""
ANY = -1
"""A size that is not checked, for example the number of labels."""


@dataclass(frozen=True)
class PublishedClass:
    """A class that ``architectures`` of a ``config.json`` may contain.

    head: the required tensors -> their sizes.
    sign: a tensor that identifies the class if ``config.json`` does not name it.
    task: ``task`` in ``tokenizer_config.json``. It tells ``transformers``' tokenizer which spans to
        mark; empty if none.
    component: the factory of the component that reads it; empty if there is none.
    settings: the component's settings that reproduce the published model.
    classifier: the name of the linear layer with a row per class. classes: what its rows are, if
        all files have the same; else ``id2label`` of a file names them.
    mask_embedding: whether the input of the entity [MASK] is a vector of its own.
    """

    name: str
    head: Mapping[str, Sequence[Size]] = field(default_factory=dict)
    sign: str = ""
    task: str = ""
    component: str = "luke"
    settings: dict[str, Any] = field(default_factory=dict)
    mask_embedding: bool = False
    classifier: str = CLASSIFIER
    classes: tuple[str, ...] = ()

    @property
    def weight(self) -> str:
        return f"{self.classifier}.weight"

    @property
    def bias(self) -> str:
        return f"{self.classifier}.bias"

    @property
    def n_states(self) -> int:
        """How many states form an input of its entity classifier; 0 without such a classifier."""
        *_, size = self.head.get(CLASSIFIER_WEIGHT, (0,))
        return size[0] if isinstance(size, tuple) else 0

    def shapes(self, config: LukeConfig) -> dict[str, Shape]:
        """Tensor -> shape, of the head of a model with this configuration."""

        def resolved(size: Size) -> int:
            factor, name = size if isinstance(size, tuple) else (1, size)
            return factor * getattr(config, name) if isinstance(name, str) else name

        return {name: tuple(map(resolved, sizes)) for name, sizes in self.head.items()}


def _classifier(n_states: int, bias: bool = True) -> dict[str, tuple[Size, ...]]:
    """A linear layer with one row per label. bias: whether it is required."""
    head: dict[str, tuple[Size, ...]] = {CLASSIFIER_WEIGHT: (ANY, (n_states, "hidden_size"))}
    return {**head, CLASSIFIER_BIAS: (ANY,)} if bias else head


def _masked_head(names: Mapping[str, str], size: str, n_classes: str) -> dict[str, tuple[str, ...]]:
    """names: ``WORD_HEAD`` or ``ENTITY_HEAD``. size, n_classes: width and number of rows of the
    embedding table that the head is tied to."""
    shapes = {
        "dense.weight": (size, "hidden_size"),
        "dense.bias": (size,),
        "norm.weight": (size,),
        "norm.bias": (size,),
        "bias": (n_classes,),
    }
    return {names[ours]: shape for ours, shape in shapes.items()}


def _marked(scorer: str) -> dict[str, Any]:
    """Settings of a scorer that reproduce the official code: marker pieces."""
    model = {"@architectures": f"spacy-luke.{scorer}.v1", "mode": "markers"}
    return {"model": {**model, "max_mention_pieces": 30}}


BARE_MODEL = PublishedClass("LukeModel")
_ENTITY_HEAD = _masked_head(ENTITY_HEAD, "entity_emb_size", "entity_vocab_size")
MASKED_LM = PublishedClass(
    "LukeForMaskedLM",
    head={**_masked_head(WORD_HEAD, "hidden_size", "vocab_size"), **_ENTITY_HEAD},
    sign=ENTITY_HEAD["bias"],
)
DISAMBIGUATION = PublishedClass(
    "LukeForEntityDisambiguation",
    head=_ENTITY_HEAD,
    sign=MASK_EMBEDDING,
    component="luke_linker",
    settings={
        "incl_prior": False,
        "get_candidates_batch": {
            "@misc": "spacy-luke.alias_candidates_batch.v1",
            "k": 30,
            "fuzzy": "never",  # because one of the candidates is always linked
        },
        "model": {
            "@architectures": "spacy-luke.CandidateScorer.v1",
            "rows": "only",
            "attention": "full",
            "inference": "local",
            "max_entities": 128,
            "max_mention_pieces": 30,
        },
    },
    mask_embedding=True,
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
        "model": {
            "@architectures": "spacy-luke.SpanScorer.v1",
            "mode": "full",
            "label_weight": None,
        },
        "suggester": {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 16},
    },
)
QUESTIONS = PublishedClass(
    "LukeForQuestionAnswering",
    head={"qa_outputs.weight": (2, "hidden_size"), "qa_outputs.bias": (2,)},
    sign="qa_outputs.weight",
    component="luke_qa",
    settings={"no_answer": False, "model": {"entities": "known"}},
    classifier="qa_outputs",
    classes=("start", "end"),
)
# Plain encoders with the same head.
_PLAIN_QUESTIONS = (
    "BertForQuestionAnswering",
    "RobertaForQuestionAnswering",
    "XLMRobertaForQuestionAnswering",
)
SPAN_QUESTIONS = PublishedClass(
    "LukeForEntitySpanQA",
    head={"scorer.weight": (1, (2, "hidden_size")), "scorer.bias": (1,)},
    sign="scorer.weight",
    component="luke_cloze",
    settings={"model": {"@architectures": "spacy-luke.ClozeScorer.v1", "mode": "markers"}},
    classifier="scorer",
    classes=("candidate",),
)
PHRASES = PublishedClass(
    "UCTopicModel",
    head={PHRASE_WEIGHT: ("hidden_size", "hidden_size"), PHRASE_BIAS: ("hidden_size",)},
    settings={"phrases": True, "vector_hooks": True, "model": {"spaces": "words"}},
)
# Heads that classify words or texts and do not use entities.
_WITHOUT_ENTITIES = (
    PublishedClass("LukeForSequenceClassification", component=""),
    PublishedClass("LukeForTokenClassification", component=""),
    PublishedClass("LukeForMultipleChoice", component=""),
)

CLASSES = (
    *(ENTITY_TYPING, ENTITY_PAIRS, ENTITY_SPANS, QUESTIONS, SPAN_QUESTIONS, PHRASES),
    *(
        DISAMBIGUATION,
        MASKED_LM,
        BARE_MODEL,
    ),  # after classes whose files may contain its heads, too
    *_WITHOUT_ENTITIES,
)
_BY_NAME = {row.name: row for row in CLASSES}


def class_named(name: str) -> PublishedClass:
    """The row of a class. An unknown class gets a row without a head, read by ``luke``."""
    if name.startswith("UCTopic"):  # the class exists under several names
        return PHRASES
    if name in _PLAIN_QUESTIONS:
        return QUESTIONS
    return _BY_NAME.get(name) or PublishedClass(name)
