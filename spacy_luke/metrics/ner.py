"""spaCy's scores of ``Doc.ents`` or, for nested entities, of a spans group; and calibration."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.pipeline.spancat import spancat_score
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.alignment_array import AlignmentArray
from spacy.util import registry

from ..annotations.annotated import is_annotated, spans_annotated
from ..annotations.group_spans import spans_by_row
from ..annotations.mentions import all_spans
from .answers import Answer, Answers, calibration_scores


def luke_ner_score(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """spaCy's NER score in flat mode, its span categoriser score in nested mode, and
    :func:`.calibration_scores` of the spans group. Documents without annotated entities
    (:func:`.is_annotated`) are left out."""
    examples = [eg for eg in examples if is_annotated(eg.reference, "ents")]
    key, nested = kwargs.get("spans_key", "luke_ner"), bool(kwargs.get("nested"))
    answers = ner_answers(examples, spans_key=key, nested=nested)
    if nested:
        keep = ("spans_key", "labels", "threshold")
        given = {name: kwargs[name] for name in keep if name in kwargs}
        scores = spancat_score(examples, getter=lambda doc, _: all_spans(doc, key), **given)
        return {**scores, **calibration_scores(answers, f"spans_{key}")}
    return {**get_ner_prf(examples), **calibration_scores(answers, "ents")}


def ner_answers(examples: Iterable[Example], *, spans_key: str, nested: bool = False) -> Answers:
    """The spans of the group with their scores. An answer is right if its tokens and label are
    gold. As in spaCy's scores, of several within one token of the reference at most one is right
    (that with the highest score), and a span is left out that has, in flat mode, tokens of unknown
    annotation and, in nested mode, another text than the reference's tokens. In flat mode gold
    entities that another component has found are not asked for."""
    answers = Answers()
    for eg in examples:
        doc = eg.reference
        if not is_annotated(doc, "ents") or not _has_gold(doc, spans_key, nested):
            continue
        spans = doc.spans[spans_key] if nested else doc.ents
        gold = {(span.label_, span.start, span.end) for span in spans}
        group = eg.predicted.spans.get(spans_key)
        x2y = eg.alignment.x2y
        found = [
            ("", None) if span is None else (span.label_, _compared(eg, x2y, span, nested))
            for span in (() if group is None else spans_by_row(eg.predicted, group))
        ]
        others = {(ent.label_, *(_aligned(x2y, ent) or (0, 0))) for ent in eg.predicted.ents}
        own = {(label, *place) for label, place in found if place is not None}
        asked = gold if nested else gold - (others - own)
        answers.n_gold.update(label for label, *_ in asked)
        scores = group.attrs.get("scores") if group else None
        compared = [
            ((label, *place), float(score))
            for (label, place), score in zip(found, () if scores is None else scores)
            if place is not None
        ]
        order = sorted(range(len(compared)), key=lambda i: compared[i][1])
        best = {compared[i][0]: i for i in order}  # the one with the highest score is the last
        answers.found += [
            Answer(answer[0], score, answer in gold and best[answer] == i)
            for i, (answer, score) in enumerate(compared)
        ]
    return answers


def compared_spans(eg: Example, spans: Iterable[Span]) -> list[Span | None]:
    """The reference's tokens of each predicted entity, by which spaCy's scorer compares them; None
    if the reference does not tell whether it is right: it has no tokens there, or one of them has
    unknown annotation."""
    x2y = eg.alignment.x2y
    places = (_compared(eg, x2y, span, nested=False) for span in spans)
    return [None if place is None else eg.reference[slice(*place)] for place in places]


def wrong_if_not_gold(eg: Example, spans: Sequence[Span], spans_key: str | None) -> list[Span]:
    """Those of the predicted mentions that are wrong if the reference lacks them: of ``Doc.ents``
    those that are compared, of a spans group all; none if the reference's are not annotated."""
    if not spans_annotated(eg.reference, spans_key):
        return []
    if spans_key:
        return list(spans)
    return [x for x, place in zip(spans, compared_spans(eg, spans)) if place is not None]


def _compared(eg: Example, x2y: AlignmentArray, span: Span, nested: bool) -> tuple[int, int] | None:
    """The reference's tokens by which spaCy's scorer of entities or, in nested mode, of spans
    groups compares a predicted span; None if it leaves the span out.

    x2y: of the example, which aligns its tokens anew whenever it is asked for.
    """
    place = _aligned(x2y, span)
    if place is None:
        return None
    if nested:
        same_text = _plain(span) == _plain(eg.reference[slice(*place)])
        return place if same_text else None
    return place if _is_known(eg.reference, place) else None


def _plain(span: Span) -> str:
    """The text as ``Example.get_aligned_spans_x2y`` compares it."""
    return span.text.lower().strip().replace(" ", "")


def _is_known(doc: Doc, place: tuple[int, int]) -> bool:
    return all(token.ent_iob for token in doc[slice(*place)])


def _aligned(x2y: AlignmentArray, span: Span) -> tuple[int, int] | None:
    """The reference's tokens of a predicted span; None if it has none (white space)."""
    tokens = x2y[span.start : span.end]
    return (int(tokens[0]), int(tokens[-1]) + 1) if len(tokens) else None


def _has_gold(doc: Doc, spans_key: str, nested: bool) -> bool:
    return spans_key in doc.spans if nested else doc.has_annotation("ENT_IOB")


@registry.scorers("spacy-luke.luke_ner_scorer.v1")
def make_luke_ner_scorer() -> Callable[..., dict[str, Any]]:
    """``spacy.ner_scorer.v1`` or, in nested mode, ``spacy.spancat_scorer.v1``, and the calibration
    error of the scores."""
    return luke_ner_score
