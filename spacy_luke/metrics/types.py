"""Scores of ``Span._.types``."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from spacy.scorer import PRFScore
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from ..annotations.annotated import is_annotated
from ..annotations.mentions import Place
from ..annotations.types import get_types, has_types, with_ancestors
from .relations import FIGURES, by_type, common_places

Types = frozenset[str]


class Mention(NamedTuple):
    """The types of a span. gold is None where the reference has no span at all."""

    predicted: Types
    gold: Types | None


@registry.scorers("spacy-luke.luke_entity_typing_scorer.v1")
def make_luke_entity_typing_scorer() -> Callable[..., dict[str, Any]]:
    """Accuracy, precision, recall and F of entity types: :func:`typing_score`."""
    return typing_score


def typing_score(
    examples: Iterable[Example],
    *,
    threshold: float | None = None,
    multi_label: bool = True,
    ancestors: bool = False,
    labels: Iterable[str] = (),
    spans_key: str | None = None,
    prefix: str = "types",
    **kwargs: Any,
) -> dict[str, Any]:
    """How well the types of spans are predicted, from 0 to 1.

    Mentions are the reference's spans whose types are annotated, be it as none. What is predicted
    for one are the types of the predicted document's span at the same characters; none where
    there is no such span. Where spans are predicted too, some are not in the reference: each with
    a predicted type is a mention of which all types are wrong. A reference span without annotated
    types says nothing, and neither does a document whose spans are not annotated.

    threshold: least score of a predicted type; without it all types of a span are predicted.
    multi_label: false for a component that predicts one type a span, however likely: then
        ``threshold`` means nothing.
    ancestors: ``/person/artist`` implies ``/person``, in gold and predicted.
    labels: the types of the component. They restrict nothing; one that occurs neither in gold
        nor in predictions is listed in ``types_per_type`` with None.
    spans_key: the group of ``Doc.spans`` that holds the spans; ``Doc.ents`` without it.
    prefix: what the names of the scores begin with.

    Returns, after Ling and Weld (2012, "Fine-Grained Entity Recognition", experiments):

    - ``types_acc``: strict accuracy, the part of annotated mentions with exactly their types;
    - ``types_micro_p``, ``_r``, ``_f``: loose micro, over all types of all mentions; the figure
      reported on Open Entity by LUKE (section 4.1);
    - ``types_macro_p``, ``_r``, ``_f``: loose macro. Precision is averaged over the mentions with
      at least one predicted type, recall over those with at least one gold type, and F is made of
      the two averages. A mention without prediction therefore lowers recall only. So does
      the scorer released with Choi et al. (2018, "Ultra-Fine Entity Typing"); others divide both
      sums by the number of mentions, which gives a lower precision if some have no prediction;
    - ``types_per_type``: type -> p, r, f.

    Values without a denominator in the annotation are None: all where no mention is annotated,
    all but the accuracy where every mention is annotated as having no type.
    """
    mentions = _all_mentions(examples, threshold, multi_label, ancestors, spans_key)
    annotated = [mention for mention in mentions if mention.gold is not None]
    per_type = _count(mentions)
    micro = sum(per_type.values(), PRFScore())
    parts = {"micro": micro.to_dict(), "macro": _loose_macro(mentions)}
    scored = any(mention.gold for mention in annotated)
    found: dict[str, Any] = {f"{prefix}_acc": None}
    if annotated:
        right = sum(mention.predicted == mention.gold for mention in annotated)
        found[f"{prefix}_acc"] = right / len(annotated)
    for part, values in parts.items():
        for figure in FIGURES:
            found[f"{prefix}_{part}_{figure}"] = values[figure] if scored else None
    found[f"{prefix}_per_type"] = by_type(per_type, labels) if scored else None
    return found


def count_types(
    examples: Iterable[Example],
    *,
    threshold: float | None = None,
    multi_label: bool = True,
    ancestors: bool = False,
    spans_key: str | None = None,
) -> dict[str, PRFScore]:
    """type -> of how many mentions it is right, wrong and missed; see :func:`typing_score`."""
    return _count(_all_mentions(examples, threshold, multi_label, ancestors, spans_key))


def _all_mentions(
    examples: Iterable[Example],
    threshold: float | None,
    multi_label: bool,
    ancestors: bool,
    spans_key: str | None,
) -> list[Mention]:
    least = threshold if multi_label else None
    return [
        mention
        for example in examples
        if is_annotated(example.reference, "types")
        for mention in _mentions(example, least, ancestors, spans_key)
    ]


def _mentions(
    example: Example, threshold: float | None, ancestors: bool, spans_key: str | None
) -> Iterable[Mention]:
    """The annotated mentions of a document, then those that are only predicted."""

    def types_of(span: Span) -> dict[str, float]:
        return with_ancestors(get_types(span)) if ancestors else get_types(span)

    places = common_places(example, example.reference)
    spans = [(places(_place(s)), s) for s in _spans(example.reference, spans_key)]
    gold = {place: frozenset(types_of(span)) for place, span in spans if has_types(span)}
    places = common_places(example, example.predicted)
    predicted: dict[Place, Types] = {}
    for span in _spans(example.predicted, spans_key):
        scores = types_of(span).items()
        kept = frozenset(x for x, score in scores if threshold is None or score >= threshold)
        predicted[places(_place(span))] = kept
    for place, types in gold.items():
        yield Mention(predicted.get(place, frozenset()), types)
    if not is_annotated(example.reference, "ents"):
        complete = False
    elif spans_key is None:
        complete = example.reference.has_annotation("ENT_IOB")
    else:
        complete = spans_key in example.reference.spans
    known = {place for place, _ in spans}
    for place, types in predicted.items():
        if complete and types and place not in known:
            yield Mention(types, None)


def _spans(doc: Doc, spans_key: str | None) -> Sequence[Span]:
    if spans_key is None:
        return doc.ents
    return list(doc.spans[spans_key]) if spans_key in doc.spans else []


def _place(span: Span) -> Place:
    return span.start_char, span.end_char


def _count(mentions: Iterable[Mention]) -> dict[str, PRFScore]:
    """Loose micro: every pair of a mention and a type counts alike."""
    per_type: dict[str, PRFScore] = {}
    for predicted, gold in mentions:
        gold = gold or frozenset()
        for name in predicted | gold:
            score = per_type.setdefault(name, PRFScore())
            score.score_set(set(predicted) & {name}, set(gold) & {name})
    return per_type


def _loose_macro(mentions: Collection[Mention]) -> dict[str, float]:
    """Loose macro: every mention counts alike; see :func:`typing_score` for which do."""
    precisions, recalls = [], []
    for predicted, gold in mentions:
        n_right = len(predicted & (gold or frozenset()))
        if predicted:
            precisions.append(n_right / len(predicted))
        if gold:
            recalls.append(n_right / len(gold))
    p = sum(precisions) / max(len(precisions), 1)
    r = sum(recalls) / max(len(recalls), 1)
    return {"p": p, "r": r, "f": 2 * p * r / (p + r) if p + r else 0.0}
