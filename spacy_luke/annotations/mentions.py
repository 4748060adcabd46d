"""The mentions of a document, and their grouping by entity."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from spacy.pipeline import EntityLinker
from spacy.tokens import Doc, Span

from .annotated import joined_starts
from .group_spans import spans_on_characters

Place = tuple[int, int]

NIL = EntityLinker.NIL
"""The ``kb_id_`` of a mention that is annotated or predicted to be none of the entities."""
UNLINKED = ("", NIL)
"""Values of ``kb_id_`` that mean: not linked to a knowledge base."""


def all_spans(doc: Doc, spans_key: str | None) -> list[Span]:
    """The spans of ``Doc.ents`` or of a spans group, which may repeat spans; empty without such a
    group."""
    if not spans_key:
        return list(doc.ents)
    return spans_on_characters(doc, doc.spans[spans_key]) if spans_key in doc.spans else []


def spans_of(doc: Doc, spans_key: str | None) -> list[Span]:
    """``Doc.ents`` or a spans group in text order; of spans with equal tokens, the first."""
    by_place: dict[Place, Span] = {}
    for span in all_spans(doc, spans_key):
        if len(span):
            by_place.setdefault((span.start, span.end), span)
    return [by_place[place] for place in sorted(by_place)]


def characters(span: Span) -> Place:
    """The character offsets [start, end) of a span."""
    return span.start_char, span.end_char


def entities_of(spans: Sequence[Span], merged: bool) -> list[list[Span]]:
    """Group mentions by entity, in the order of their first mentions.

    merged: mentions with the same ``kb_id_`` are one entity. If false, and for mentions that are
        not linked, each mention is an entity. Texts that were joined to one document may number
        their entities alike: their mentions are not merged."""
    entities: dict[Any, list[Span]] = {}
    starts = joined_starts(spans[0].doc) if merged and spans else []
    for i, span in enumerate(spans):
        linked = merged and span.kb_id_ not in UNLINKED
        key = (span.kb_id_, bisect_right(starts, span.start_char)) if linked else i
        entities.setdefault(key, []).append(span)
    return list(entities.values())


def first_mentions(doc: Doc, spans_key: str | None) -> dict[Place, Place]:
    """Character offsets of each mention -> those of the first mention of its (merged) entity."""
    return {
        characters(span): characters(mentions[0])
        for mentions in entities_of(spans_of(doc, spans_key), merged=True)
        for span in mentions
    }
