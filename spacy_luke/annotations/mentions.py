"""The mentions of a document, and which of them are of one entity."""

from collections.abc import Sequence
from typing import Any

from spacy.pipeline import EntityLinker
from spacy.tokens import Doc, Span

Place = tuple[int, int]

UNLINKED = ("", EntityLinker.NIL)
"""The ``kb_id_`` of an entity that is linked to nothing."""


def spans_of(doc: Doc, spans_key: str | None) -> list[Span]:
    """``Doc.ents`` or a spans group, in text order; of spans of the same place the first."""
    group = doc.spans.get(spans_key, ()) if spans_key else doc.ents
    found: dict[tuple[int, int], Span] = {}
    for span in group:
        if len(span):
            found.setdefault((span.start, span.end), span)
    return [found[place] for place in sorted(found)]


def entities_of(spans: Sequence[Span], merged: bool) -> list[list[Span]]:
    """Mentions to entities, in the order of their first mentions. merged: those of the same
    ``kb_id_`` are one entity; else, and where a mention is linked to nothing, each is its own."""
    entities: dict[Any, list[Span]] = {}
    for i, span in enumerate(spans):
        key = span.kb_id_ if merged and span.kb_id_ not in UNLINKED else i
        entities.setdefault(key, []).append(span)
    return list(entities.values())


def first_mentions(doc: Doc, spans_key: str | None) -> dict[Place, Place]:
    """Characters of every mention -> those of the first mention of its merged entity."""
    return {
        (span.start_char, span.end_char): (mentions[0].start_char, mentions[0].end_char)
        for mentions in entities_of(spans_of(doc, spans_key), merged=True)
        for span in mentions
    }
