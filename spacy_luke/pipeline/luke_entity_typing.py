"""``luke_entity_typing``: a set of types with scores for each entity that is given."""

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
from ..annotations.mentions import spans_of
from ..annotations.types import (
    get_types,
    has_types,
    install_types,
    set_types,
    with_ancestors,
    without_ancestors,
)
from ..errors import ConfigError
from ..layers.entity_scorer import NETWORK, EntityQuery
from ..layers.given_spans import ClassScores
from ..layers.task_layer import fits
from ..metrics.entity_typing import typing_score
from ..metrics.relations import common_places
from ..report import tell
from ..ties import TOLERANCE, likeliest
from .class_loss import Targets
from .classifier_pipe import Settings
from .entity_task import EntityTask, given

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
    spans_key: type the spans of this group; by default ``Doc.ents``.
    multi_label: any number of types, each with a probability of its own; else exactly one.
    threshold: least probability of a type (with ``multi_label``; 0.5 is the published logit 0).
    ancestors: labels are paths, and ``/person/artist`` implies ``/person``, in gold and predicted.
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


class TypingSettings(Settings):
    multi_label: bool
    ancestors: bool


class LukeEntityTyping(EntityTask[TypingQuery]):
    """Say what kinds of things given entities are."""

    architecture = "spacy-luke.EntityScorer.v1"
    node = NETWORK
    settings = TypingSettings
    layer = "types"
    out_of_reach = ("no entity", "too long")

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        scorer: Callable | None = typing_score,
        **cfg: Any,
    ) -> None:
        super().__init__(vocab, model, name, scorer, **cfg)
        install_types()

    def _classes(self) -> list[Any]:
        return list(self.labels)

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        spans = spans_of(doc, self.cfg["spans_key"])
        return {name for span in spans for name in self._learned(get_types(span))}

    def _query(self, docs: Sequence[Doc]) -> TypingQuery:
        spans = [spans_of(doc, self.cfg["spans_key"]) for doc in docs]
        return TypingQuery(docs, given(spans), spans)

    def _part(self, query: TypingQuery, low: int, high: int) -> TypingQuery:
        spans = query.by_doc[low:high]
        return TypingQuery(query.docs[low:high], given(spans), spans)

    def _learned(self, types: dict[str, float]) -> dict[str, float]:
        """What a span's gold types teach: with ancestors all they imply, or the one below."""
        if not self.cfg["ancestors"]:
            return types
        return with_ancestors(types) if self.cfg["multi_label"] else without_ancestors(types)

    # Prediction

    def set_annotations(self, docs: Iterable[Doc], scores: tuple[TypingQuery, ClassScores]) -> None:
        """Write ``Span._.types``; a span that was not scored gets an empty set."""
        query, values = scores
        probabilities = self._probabilities(values)
        flat = [span for spans in query.by_doc for span in spans]
        for span in flat:
            set_types(span, {})
        keep = probabilities >= self.cfg["threshold"] - TOLERANCE
        if not self.cfg["multi_label"]:
            keep = np.arange(len(self.labels)) == likeliest(probabilities)[:, None]
        for row, probability, kept in zip(values.rows.tolist(), probabilities, keep):
            types = {self.labels[i]: float(probability[i]) for i in np.flatnonzero(kept)}
            set_types(flat[row], with_ancestors(types) if self.cfg["ancestors"] else types)

    def _probabilities(self, values: ClassScores) -> Array:
        logits = self.model.ops.to_numpy(values.logits).astype(np.float64)
        if self.cfg["multi_label"]:
            return 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
        exp = np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf))
        return exp / exp.sum(-1, keepdims=True)

    # Training

    def _targets(self, examples: Sequence[Example], query: TypingQuery) -> Targets:
        """Known are spans of which some, or no, types are annotated."""
        classes = {name: i for i, name in enumerate(self.labels)}
        targets = np.zeros((len(query.spans), len(classes)), dtype=np.float32)
        known = np.zeros(len(targets), dtype=bool)
        row = 0
        for eg, spans in zip(examples, query.by_doc):
            gold, common = self._gold(eg), common_places(eg, eg.predicted)
            for span in spans:
                types = gold.get(common((span.start_char, span.end_char)))
                known[row] = types is not None
                for name in types or ():
                    if name not in classes:
                        raise ConfigError(
                            f"{self.name}: the type {name!r} is in the data but not in the "
                            "component; add it with add_label, or initialise with all of the data."
                        )
                    targets[row, classes[name]] = 1.0
                row += 1
        if not self.cfg["multi_label"]:
            several = targets.sum(-1) > 1
            targets[several] = np.eye(max(len(classes), 1))[targets[several].argmax(-1)]
        return targets, known

    def _gold(self, eg: Example) -> dict[Place, dict[str, float]]:
        """What a gold span is compared by -> its types."""
        if not is_annotated(eg.reference, self.layer):
            return {}
        common = common_places(eg, eg.reference)
        return {
            common((span.start_char, span.end_char)): self._learned(get_types(span))
            for span in spans_of(eg.reference, self.cfg["spans_key"])
            if has_types(span)
        }

    def _count_limits(self, examples: Iterable[Example]) -> dict[str, int]:
        """Count the typed gold spans that are not scored, or of which not all is learned."""
        counts = dict.fromkeys(("gold", "no entity", "too long", "several types"), 0)
        for batch in minibatch(examples, 64):
            examples = list(batch)
            query = self._query([eg.predicted for eg in examples])
            fit = iter(fits(self.model, query).tolist())
            for eg, spans in zip(examples, query.by_doc):
                gold, common = self._gold(eg), common_places(eg, eg.predicted)
                shown = {common((x.start_char, x.end_char)): next(fit) for x in spans}
                counts["gold"] += len(gold)
                counts["no entity"] += len(set(gold) - set(shown))
                counts["too long"] += sum(not shown.get(place, True) for place in gold)
                if not self.cfg["multi_label"]:
                    counts["several types"] += sum(len(types) > 1 for types in gold.values())
        tell(
            sum(counts.values()) - counts["gold"],
            "%s: of %d gold spans with types %d are no entity of the documents and %d are longer "
            "than a window: these cannot be predicted; %d have several types, of which one is "
            "learned.",
            self.name,
            *counts.values(),
        )
        return counts
