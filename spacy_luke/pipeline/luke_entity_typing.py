"""``luke_entity_typing``: a set of types with scores for each given entity."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Config, Model

from ..annotations.annotated import is_annotated
from ..annotations.attributes import require
from ..annotations.mentions import all_spans, characters, spans_of
from ..annotations.span_values import keys_of
from ..annotations.types import (
    ATTRIBUTE,
    get_gold_types,
    set_types,
    with_ancestors,
    with_implied,
    without_ancestors,
)
from ..calibration import sigmoid
from ..layers.entity_scorer import EntityQuery, EntityScorer
from ..layers.given_spans import ClassScores
from ..layers.task_layer import fits
from ..metrics.answers import Answers
from ..metrics.entity_typing import SETTINGS, typing_answers, typing_score
from ..metrics.relations import common_places
from ..report import log_lost
from ..ties import likeliest
from ..validation import setting
from .class_loss import Targets
from .entity_task import EntityTask, given_spans

Array = np.ndarray
Place = tuple[int, int]

DEFAULT_CONFIG = Config().from_str(
    """
[luke_entity_typing]
spans_key = null
multi_label = true
threshold = 0.5
ancestors = false
scorer = {"@scorers":"spacy-luke.luke_entity_typing_scorer.v1"}

[luke_entity_typing.model]
@architectures = "spacy-luke.EntityScorer.v1"
mode = "probe"

[luke_entity_typing.model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke_entity_typing",
    assigns=["span._.types"],
    requires=["doc.ents"],
    default_config=DEFAULT_CONFIG["luke_entity_typing"],
    default_score_weights={"types_micro_f": 1.0, "types_acc": 0.0, "types_per_type": None},
)
def make_luke_entity_typing(
    nlp: Language,
    name: str,
    model: Model[EntityQuery, ClassScores],
    spans_key: str | None,
    multi_label: bool,
    threshold: float,
    ancestors: bool,
    scorer: Callable | None,
) -> "LukeEntityTyping":
    """Construct an entity typing component.

    model: ``spacy-luke.EntityScorer.v1``.
    spans_key: the spans group to type; by default ``Doc.ents``.
    multi_label: any number of types per entity, each with its own probability; else exactly one.
    threshold: least score of a type, if ``multi_label`` is set (published: 0.5, logit 0).
    ancestors: labels are paths; ``/person/artist`` implies ``/person`` in gold and predicted types.
    """
    return LukeEntityTyping(
        nlp.vocab,
        model,
        name,
        scorer,
        spans_key=spans_key,
        multi_label=multi_label,
        threshold=threshold,
        ancestors=ancestors,
    )


@dataclass(frozen=True)
class TypingQuery(EntityQuery):
    """by_doc: the spans of each document."""

    by_doc: list[list[Span]]


class LukeEntityTyping(EntityTask[TypingQuery]):
    """Predict the types of given entities."""

    architecture = "spacy-luke.EntityScorer.v1"
    node = EntityScorer.node
    layer = "types"
    out_of_reach = ("no entity", "too long")

    multi_label: bool = setting()
    ancestors: bool = setting()

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        scorer: Callable | None = typing_score,
        **cfg: Any,
    ) -> None:
        super().__init__(vocab, model, name, scorer, **cfg)
        require("types")

    def _classes(self) -> list[Any]:
        return list(self.labels)

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        spans = spans_of(doc, self.spans_key)
        return {name for span in spans for name in self._learned(get_gold_types(span) or {})}

    def _query(self, docs: Sequence[Doc]) -> TypingQuery:
        spans = [spans_of(doc, self.spans_key) for doc in docs]
        return TypingQuery(docs, given_spans(spans), spans)

    def _part(self, query: TypingQuery, low: int, high: int) -> TypingQuery:
        spans = query.by_doc[low:high]
        return TypingQuery(query.docs[low:high], given_spans(spans), spans)

    def _learned(self, types: dict[str, float]) -> dict[str, float]:
        """The gold types of a span that are learned: with ``ancestors`` also the implied ones or,
        if only one type is learned, the most specific."""
        if not self.ancestors:
            return types
        return with_ancestors(types) if self.multi_label else without_ancestors(types)

    # Prediction

    def set_annotations(self, docs: Iterable[Doc], scores: tuple[TypingQuery, ClassScores]) -> None:
        """Write ``Span._.types``; a span that was not scored gets an empty set."""
        query, values = scores
        confidence, of_label = self._confidence, np.arange(len(self.labels))
        of_types = confidence.scores(of_label, self._probabilities(values))
        all_spans = [span for spans in query.by_doc for span in spans]
        for span in all_spans:
            set_types(span, {})
        chosen = confidence.accepts(of_label, of_types)
        if not self.multi_label:
            best = likeliest(values.logits)
            chosen = of_label == best[:, None]
        for row, score, is_chosen in zip(values.rows.tolist(), of_types, chosen):
            types = {self.labels[i]: float(score[i]) for i in np.flatnonzero(is_chosen)}
            set_types(all_spans[row], self._with_implied(types))

    def _with_implied(self, types: dict[str, float]) -> dict[str, float]:
        """With ``ancestors``, the types and those that they imply, if these are written."""
        return with_implied(types, self.thresholds) if self.ancestors else types

    def _probabilities(self, values: ClassScores) -> Array:
        logits = values.logits.astype(np.float64)
        if self.multi_label:
            return sigmoid(logits)
        exp = np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf))
        return exp / exp.sum(-1, keepdims=True)

    def answers(self, examples: Iterable[Example]) -> Answers:
        return typing_answers(examples, **{name: self.cfg[name] for name in SETTINGS})

    # Training

    def _targets(self, examples: Sequence[Example], query: TypingQuery) -> Targets:
        """Known are the spans whose types are annotated, also those annotated with no type."""
        classes = {name: i for i, name in enumerate(self.labels)}
        targets = np.zeros((len(query.spans), len(classes)), dtype=np.float32)
        known = np.zeros(len(targets), dtype=bool)
        row = 0
        for eg, spans in zip(examples, query.by_doc):
            gold, place_of = self._gold(eg), common_places(eg, eg.predicted)
            for span in spans:
                types = gold.get(place_of((span.start_char, span.end_char)))
                known[row] = types is not None
                for name in types or ():
                    if name not in classes:
                        raise self._unknown_labels([name])
                    targets[row, classes[name]] = 1.0
                row += 1
        if not self.multi_label:
            several = targets.sum(-1) > 1
            targets[several] = np.eye(max(len(classes), 1))[targets[several].argmax(-1)]
        return targets, known

    def _gold(self, eg: Example) -> dict[Place, dict[str, float]]:
        """The place of a gold span, comparable with those of predicted spans -> its types."""
        if not is_annotated(eg.reference, self.layer):
            return {}
        place_of = common_places(eg, eg.reference)
        return {
            place_of((span.start_char, span.end_char)): self._learned(types)
            for span in spans_of(eg.reference, self.spans_key)
            if (types := get_gold_types(span)) is not None
        }

    def _count_limits(self, examples: Iterable[Example]) -> dict[str, int]:
        """Count and log the typed gold spans that are not scored, or not learned completely."""
        names = ("gold", "no entity", "too long", "several types", "no type")
        counts = dict.fromkeys(names, 0)
        for batch in minibatch(examples, 64):
            examples = list(batch)
            query = self._query([eg.predicted for eg in examples])
            fit = iter(fits(self.model, query).tolist())
            for eg, spans in zip(examples, query.by_doc):
                gold, place_of = self._gold(eg), common_places(eg, eg.predicted)
                place_fits = {place_of((x.start_char, x.end_char)): next(fit) for x in spans}
                n_elsewhere = _typed_elsewhere(eg.reference)
                counts["gold"] += len(gold) + n_elsewhere
                counts["no entity"] += len(set(gold) - set(place_fits)) + n_elsewhere
                counts["too long"] += sum(not place_fits.get(place, True) for place in gold)
                if not self.multi_label:
                    counts["several types"] += sum(len(types) > 1 for types in gold.values())
                    counts["no type"] += sum(not types for types in gold.values())
        log_lost(
            sum(counts.values()) - counts["gold"],
            "%s: %d gold spans have types. %d are not entities of the documents and %d are longer "
            "than a window: these cannot be predicted. %d have several types, of which one is "
            "learned, and %d no type, though one is always predicted.",
            self.name,
            *counts.values(),
        )
        return counts


def _typed_elsewhere(doc: Doc) -> int:
    """The number of places with gold types at which no entity or span of a group is."""
    typed = {(start, end) for _, _, start, end in keys_of(doc, ATTRIBUTE)}
    if not typed:
        return 0
    spans = [span for key in (None, *doc.spans) for span in all_spans(doc, key)]
    others = typed - set(map(characters, spans))
    return sum(bool(get_gold_types(span)) for x in others if (span := doc.char_span(*x)))
