"""Documents as JSON objects of the format ``jsonl``, with scores and answers."""

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc, Span

from ..annotations.candidates import get_candidates
from ..annotations.mentions import all_spans
from ..annotations.queries import completion_offsets, query_texts
from ..annotations.questions import Offsets, answer_offsets, question_texts
from ..annotations.relations import relation_offsets
from ..annotations.scores import scores_of
from ..annotations.types import get_types
from ..report import LOGGER
from .record_docs import META
from .records import PARTIAL


def doc_to_json(doc: Doc, spans_key: str | None = None) -> dict[str, Any]:
    """A document as an object that ``spacy luke convert jsonl`` reads.

    ``text``; ``tokens``; ``spans`` with ``label`` and, if they have them, ``score``, ``kb_id``,
    ``candidates``, ``types`` and ``type_scores``; ``_is_binary``, as Prodigy writes it, if the
    entity annotation of a token outside of them is unknown, and so only that of the spans is known
    (see ``is_partial``); ``relations``
    with ``score``; and if there are any ``questions`` with ``answers``, ``queries`` with
    ``completions``, and ``meta``. All places are characters of the text, ends exclusive.

    spans_key: write the spans of this group, instead of ``Doc.ents``.

    A relation whose head or tail is not among the spans, as after entities were removed, is left
    out, with a warning.
    """
    record, n_lost = record_of(doc, spans_key)
    if n_lost:
        LOGGER.warning(
            "%d relations of %r were left out, because their spans are not written: they are no "
            "%s.",
            n_lost,
            doc.text[:60],
            f"spans of the group {spans_key!r}"
            if spans_key
            else "entities (spans_key writes a group)",
        )
    return record


def record_of(doc: Doc, spans_key: str | None = None) -> tuple[dict[str, Any], int]:
    """What :func:`doc_to_json` returns, and how many relations it leaves out."""
    spans, scores = all_spans(doc, spans_key), scores_of(doc)
    tokens = [{"text": x.text, "start": x.idx, "end": x.idx + len(x), "id": x.i} for x in doc]
    relations = _relations(doc, {(x.start_char, x.end_char) for x in spans})
    record = {
        "text": doc.text,
        "tokens": tokens,
        "spans": [_span(span, scores) for span in spans],
        **({PARTIAL: True} if is_partial(doc, spans_key) else {}),
        "relations": relations,
        **_answers(doc),
        **_completions(doc),
        **({META: doc.user_data[META]} if META in doc.user_data else {}),
    }
    return record, len(relation_offsets(doc)) - len(relations)


def is_partial(doc: Doc, spans_key: str | None = None) -> bool:
    """Whether the entity annotation of a token outside of the spans (see ``doc_to_json``) is
    unknown. A document with the group, and no entity annotation, is annotated by its group; without
    the group nothing is said of its spans."""
    if spans_key and (spans_key not in doc.spans or not doc.has_annotation("ENT_IOB")):
        return spans_key not in doc.spans
    known = {i for span in all_spans(doc, spans_key) for i in range(span.start, span.end)}
    return any(token.ent_iob == 0 and token.i not in known for token in doc)


def described_answers(question: str, offsets: Offsets, text: str) -> dict[str, Any]:
    """A question with its answers, best first, and the probability that there is none."""
    answers = [
        {"start": start, "end": end, "text": text[start:end], "score": score}
        for start, end, score in offsets.answers
    ]
    return {"question": question, "answers": answers, "no_answer": offsets.no_answer}


def _span(span: Span, scores: dict[tuple[int, int, int], float]) -> dict[str, Any]:
    place = {"start": span.start_char, "end": span.end_char}
    score = scores.get((span.start_char, span.end_char, span.label))
    candidates, types = get_candidates(span), get_types(span)
    values = {
        "score": score,
        "kb_id": span.kb_id_ or None,
        "candidates": candidates and [{"id": x.id, "score": x.score} for x in candidates],
        "types": None if types is None else list(types),
        "type_scores": None if types is None else list(types.values()),
    }
    given = {name: value for name, value in values.items() if value is not None}
    return {**place, "text": span.text, "label": span.label_, **given}


def _relations(doc: Doc, places: set[tuple[int, int]]) -> list[dict[str, Any]]:
    relations = []
    for head, tail, label, score in relation_offsets(doc):
        if not {head, tail} <= places:
            continue
        ends = {"head_start": head[0], "head_end": head[1]}
        ends.update(tail_start=tail[0], tail_end=tail[1])
        relations.append({**ends, "label": label, "score": score})
    return relations


def _answers(doc: Doc) -> dict[str, Any]:
    questions, answers = question_texts(doc), answer_offsets(doc)
    if not questions:
        return {}
    found = [described_answers(*both, doc.text) for both in zip(questions, answers)]
    return {"questions": questions, **({"answers": found} if answers else {})}


def _completions(doc: Doc) -> dict[str, Any]:
    queries, completions = query_texts(doc), completion_offsets(doc)
    if not queries:
        return {}
    found = [{"query": x, "candidates": _candidates(y)} for x, y in zip(queries, completions)]
    return {"queries": queries, **({"completions": found} if completions else {})}


def _candidates(completions: Sequence[Any]) -> list[dict[str, Any]]:
    return [
        {
            "text": x.text,
            "mentions": [{"start": start, "end": end} for start, end in x.mentions],
            "score": x.score,
        }
        for x in completions
    ]
