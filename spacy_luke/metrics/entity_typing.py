"""Scores of ``Span._.types``."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from spacy.scorer import PRFScore
from spacy.training import Example
from spacy.util import registry

from ..annotations.annotated import is_annotated
from ..annotations.mentions import Place, all_spans, characters
from ..annotations.types import get_gold_types, get_types, with_ancestors, with_implied
from ..ties import reaches
from .answers import Answer, Answers, calibration_scores
from .ner import wrong_if_not_gold
from .relations import FIGURES, by_type, common_places

Types = frozenset[str]
SETTINGS = ("threshold", "thresholds", "multi_label", "ancestors", "spans_key")
"""Of a component, that decide what counts."""


class TypedMention(NamedTuple):
    """The types of a span, the predicted ones with scores. gold is None if the reference does not
    contain the span."""

    scores: dict[str, float]
    gold: Types | None

    @property
    def predicted(self) -> Types:
        return frozenset(self.scores)


@registry.scorers("spacy-luke.luke_entity_typing_scorer.v1")
def make_luke_entity_typing_scorer(prefix: str = "types") -> Callable[..., dict[str, Any]]:
    """Accuracy, precision, recall and F of entity types: :func:`typing_score`.

    prefix: of the names of the scores, before "_"; another one if a pipeline has several such
        components.
    """
    return partial(typing_score, prefix=prefix)


def typing_score(
    examples: Iterable[Example],
    *,
    threshold: float | None = None,
    thresholds: Mapping[str, float | None] = MappingProxyType({}),
    multi_label: bool = True,
    ancestors: bool = False,
    labels: Iterable[str] = (),
    spans_key: str | None = None,
    prefix: str = "types",
    **kwargs: Any,
) -> dict[str, Any]:
    """Accuracy, precision, recall and F of predicted types, from 0 to 1.

    Mentions are the reference's spans with annotated types, including those annotated as having
    none. The predicted types of a mention are those of the predicted span with the same characters,
    or none if there is no such span. If the pipeline also predicts spans, a predicted span that the
    reference lacks is a mention whose predicted types are all wrong, unless the reference does not
    tell whether its tokens are an entity. Reference spans without annotated types, and documents
    whose spans are not annotated, are not scored.

    threshold: minimum score of a predicted type. Without it, all types of a span count.
    thresholds: type -> its own minimum score.
    multi_label: false for a component that predicts exactly one type per span; the thresholds are
        then ignored.
    ancestors: ``/person/artist`` implies ``/person``, in gold and predicted types.
    labels: the types of the component. A type without gold and predicted mentions is listed in
        ``types_per_type`` with None. Other types count, too.
    spans_key: the group of ``Doc.spans`` with the spans; ``Doc.ents`` without it.
    prefix: of the names of the scores.

    Returns, after Ling and Weld (2012, "Fine-Grained Entity Recognition", experiments):

    - ``types_acc``: strict accuracy, the share of annotated mentions with exactly the gold types;
    - ``types_micro_p``, ``_r``, ``_f``: loose micro, over all types of all mentions. LUKE reports
      it on Open Entity (section 4.1);
    - ``types_macro_p``, ``_r``, ``_f``: loose macro. Precision is averaged over the mentions with
      at least one predicted type, recall over those with at least one gold type, and F is computed
      from the averages. So a mention without predicted types lowers only recall, as in the scorer
      released with Choi et al. (2018, "Ultra-Fine Entity Typing"). Other scorers divide both sums
      by the number of mentions, which gives a lower precision if some have no predicted types;
    - ``types_per_type``: type -> p, r, f.

    And :func:`.calibration_scores` of the predicted types.

    All scores are None if no mention is annotated. All except the accuracy are None if every
    mention is annotated as having no type.
    """
    least = _Least.of(threshold, thresholds, multi_label)
    mentions = _all_mentions(examples, least, ancestors, spans_key)
    annotated = [mention for mention in mentions if mention.gold is not None]
    per_type = _count(mentions)
    micro = sum(per_type.values(), PRFScore())
    parts = {"micro": micro.to_dict(), "macro": _loose_macro(mentions)}
    scored = any(mention.gold for mention in annotated)
    scores: dict[str, Any] = {f"{prefix}_acc": None}
    if annotated:
        n_correct = sum(mention.predicted == mention.gold for mention in annotated)
        scores[f"{prefix}_acc"] = n_correct / len(annotated)
    for part, values in parts.items():
        for figure in FIGURES:
            scores[f"{prefix}_{part}_{figure}"] = values[figure] if scored else None
    scores[f"{prefix}_per_type"] = by_type(per_type, labels) if scored else None
    return {**scores, **calibration_scores(_answers(mentions), prefix)}


def typing_answers(
    examples: Iterable[Example],
    *,
    threshold: float | None = None,
    thresholds: Mapping[str, float | None] = MappingProxyType({}),
    multi_label: bool = True,
    ancestors: bool = False,
    spans_key: str | None = None,
) -> Answers:
    """Predicted types with their scores; see :func:`typing_score`."""
    least = _Least.of(threshold, thresholds, multi_label)
    return _answers(_all_mentions(examples, least, ancestors, spans_key))


def _answers(mentions: Iterable[TypedMention]) -> Answers:
    answers = Answers()
    for scores, gold in mentions:
        right = gold or frozenset()
        answers.n_gold.update(right)
        answers.found += [Answer(name, score, name in right) for name, score in scores.items()]
    return answers


def count_types(
    examples: Iterable[Example],
    *,
    threshold: float | None = None,
    thresholds: Mapping[str, float | None] = MappingProxyType({}),
    multi_label: bool = True,
    ancestors: bool = False,
    spans_key: str | None = None,
) -> dict[str, PRFScore]:
    """Type -> counts of correct, wrong and missed mentions; see :func:`typing_score`."""
    least = _Least.of(threshold, thresholds, multi_label)
    return _count(_all_mentions(examples, least, ancestors, spans_key))


class _Least(NamedTuple):
    """The least scores of types."""

    common: float
    own: Mapping[str, float | None]

    @classmethod
    def of(
        cls, threshold: float | None, thresholds: Mapping[str, float | None], multi_label: bool
    ) -> "_Least":
        return cls(threshold or 0.0, thresholds) if multi_label else cls(0.0, {})

    def written(self, types: Mapping[str, float], ancestors: bool) -> dict[str, float]:
        """The types that are written with these thresholds, and those that they imply."""

        def least(name: str) -> float:
            value = self.own.get(name, self.common)
            return math.inf if value is None else value

        kept = {name: score for name, score in types.items() if reaches(score, least(name))}
        return with_implied(kept, self.own) if ancestors else kept


def _all_mentions(
    examples: Iterable[Example],
    least: _Least,
    ancestors: bool,
    spans_key: str | None,
) -> list[TypedMention]:
    return [
        mention
        for example in examples
        if is_annotated(example.reference, "types")
        for mention in _mentions(example, least, ancestors, spans_key)
    ]


def _mentions(
    example: Example, least: _Least, ancestors: bool, spans_key: str | None
) -> Iterable[TypedMention]:
    """The annotated mentions of a document, then those that are only predicted."""
    common = common_places(example, example.reference)
    spans = [(common(characters(span)), span) for span in all_spans(example.reference, spans_key)]
    gold = {
        place: frozenset(with_ancestors(given) if ancestors else given)
        for place, span in spans
        if (given := get_gold_types(span)) is not None
    }
    common = common_places(example, example.predicted)
    predicted: dict[Place, dict[str, float]] = {}
    predicted_spans = all_spans(example.predicted, spans_key)
    for span in predicted_spans:
        predicted[common(characters(span))] = least.written(get_types(span) or {}, ancestors)
    for place, types in gold.items():
        yield TypedMention(predicted.get(place, {}), types)
    others = wrong_if_not_gold(example, predicted_spans, spans_key)
    reference_places = {place for place, _ in spans}
    for place in dict.fromkeys(common(characters(span)) for span in others):
        if predicted[place] and place not in reference_places:
            yield TypedMention(predicted[place], None)


def _count(mentions: Iterable[TypedMention]) -> dict[str, PRFScore]:
    """Counts for the loose micro average: each pair of a mention and a type has equal weight."""
    per_type: dict[str, PRFScore] = {}
    for mention in mentions:
        predicted, gold = mention.predicted, mention.gold or frozenset()
        for name in predicted | gold:
            score = per_type.setdefault(name, PRFScore())
            score.score_set(set(predicted) & {name}, set(gold) & {name})
    return per_type


def _loose_macro(mentions: Collection[TypedMention]) -> dict[str, float]:
    """The loose macro average: each mention has equal weight; see :func:`typing_score`."""
    precisions, recalls = [], []
    for mention in mentions:
        predicted, gold = mention.predicted, mention.gold
        n_correct = len(predicted & (gold or frozenset()))
        if predicted:
            precisions.append(n_correct / len(predicted))
        if gold:
            recalls.append(n_correct / len(gold))
    p = sum(precisions) / max(len(precisions), 1)
    r = sum(recalls) / max(len(recalls), 1)
    return {"p": p, "r": r, "f": 2 * p * r / (p + r) if p + r else 0.0}
