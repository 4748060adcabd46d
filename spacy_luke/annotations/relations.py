"""``Doc._.relations``: labelled pairs of spans."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from .annotated import LEAST_GOLD
from .given import list_of, name_of, probability, row_of, span_of
from .group_spans import spans_on_characters
from .span_values import Key, data_of, key_of, keys_of, remove_values

ATTRIBUTE = "luke_relations"
RELATED = ("._.", "luke_related", None, None)
"""Key of :func:`related_elsewhere` in ``Doc.user_data``."""
NO_RELATION = "no_relation"
"""A label of some corpora and published classifiers for pairs that have no relation. It is neither
learned nor scored."""


class Relation(NamedTuple):
    """``label`` is the relation of ``head`` to ``tail``. score: a probability."""

    head: Span
    tail: Span
    label: str
    score: float = 1.0


class Offsets(NamedTuple):
    """A relation by the character offsets [start, end) of its spans, for any tokenisation."""

    head: tuple[int, int]
    tail: tuple[int, int]
    label: str
    score: float = 1.0


def get_relations(doc: Doc) -> tuple[Relation, ...]:
    """The relations of a document, ordered by head and tail.

    Head and tail are the spans of ``Doc.ents``, or else of a spans group, with the same characters,
    or else spans without label. A relation whose head or tail is not on token boundaries, for
    example in a part of a document, is left out.
    """
    spans = _spans_by_place(doc)
    relations = []
    for item in relation_offsets(doc):
        head, tail = (_span(doc, spans, place) for place in (item.head, item.tail))
        if head is not None and tail is not None:
            relations.append(Relation(head, tail, item.label, item.score))
    return tuple(relations)


def set_relations(doc: Doc, relations: Iterable[Relation | tuple]) -> None:
    """Replace the relations of a document. Each is (head, tail, label) or (..., score).

    Raises InputError for an item of another type, a span of another document, an empty span, an
    empty label, and a score that is not a probability.
    """
    stored: dict[Key, list[list[Any]]] = {}
    for item in list_of(relations, "Doc._.relations", "relations"):
        relation = row_of(item, Relation, "A relation", "(head, tail, label, score)")
        label = name_of(relation.label, "The label of a relation")
        head = span_of(doc, relation.head, f"The head of a relation {label!r}")
        tail = span_of(doc, relation.tail, f"The tail of a relation {label!r}")
        score = probability(relation.score, f"The score of a relation {label!r}")
        # The tail relative to the head: Doc.from_docs shifts offsets in keys, but not in values.
        start, end = tail.start_char - head.start_char, tail.end_char - head.start_char
        rows = stored.setdefault(key_of(head, ATTRIBUTE), [])
        rows.append([start, end, label, score])
    remove_values(doc, ATTRIBUTE)
    doc.user_data.pop(RELATED, None)  # type: ignore[call-overload]
    data_of(doc).update(stored)


def relation_offsets(doc: Doc) -> list[Offsets]:
    """The relations of a document by characters, ordered by head, tail and label.

    A relation whose head or tail is outside the text, as in a part of a document, is left out.
    """
    relations = []
    length = len(doc.text)
    for key in keys_of(doc, ATTRIBUTE):
        _, _, start, end = key
        for tail_start, tail_end, label, score in data_of(doc)[key]:
            tail = (start + tail_start, start + tail_end)
            if min(start, tail[0]) >= 0 and max(end, tail[1]) <= length:
                relations.append(Offsets((start, end), tail, label, score))
    return sorted(relations)


def gold_offsets(doc: Doc, merged: bool = False, spans_key: str | None = None) -> list[Offsets]:
    """The relations of a gold document: those with a score of at least ``LEAST_GOLD``. Pairs that
    are labelled ``NO_RELATION`` have none.

    merged: relations are of entities, whatever their mentions; so those of a part of a document
        follow, whose own mentions are in another part (:func:`set_related_elsewhere`). spans_key:
        the group with the mentions; ``Doc.ents`` without it.
    """
    own = [item for item in relation_offsets(doc) if item.score >= LEAST_GOLD]
    every = [*own, *related_elsewhere(doc).get(spans_key or "", ())] if merged else own
    return [item for item in every if item.label != NO_RELATION]


def related_elsewhere(doc: Doc) -> dict[str, list[Offsets]]:
    """See :func:`set_related_elsewhere`."""
    rows = doc.user_data.get(RELATED, {})  # type: ignore[call-overload]
    return {
        key: [Offsets((a, b), (c, d), label, score) for a, b, c, d, label, score in of_layer]
        for key, of_layer in rows.items()
    }


def set_related_elsewhere(doc: Doc, relations: Mapping[str, Sequence[Offsets]]) -> None:
    """Note on a part of a document which entities of it are related, although the mentions that
    have the relation are in another part. Each is on mentions of the part.

    relations: by the name of the spans group with the mentions, "" for ``Doc.ents``.
    """
    rows = {
        key: [[*item.head, *item.tail, item.label, item.score] for item in items]
        for key, items in relations.items()
        if items
    }
    if rows:
        doc.user_data[RELATED] = rows  # type: ignore[index]


def relations_as_dict(
    doc: Doc, labels: Iterable[str] = ()
) -> dict[tuple[int, int], dict[str, float]]:
    """``{(head start, tail start): {label: score}}`` with token indices, the form of ``Doc._.rel``
    in spaCy's relation tutorial.

    labels: labels that every pair gets, with score 0 unless it has that relation.
    """
    pairs: dict[tuple[int, int], dict[str, float]] = {}
    for relation in get_relations(doc):
        scores = pairs.setdefault(
            (relation.head.start, relation.tail.start), dict.fromkeys(labels, 0.0)
        )
        scores[relation.label] = max(relation.score, scores.get(relation.label, 0.0))
    return pairs


def _spans_by_place(doc: Doc) -> dict[tuple[int, int], Span]:
    """(start_char, end_char) -> span; entities take precedence over spans of groups."""
    by_place: dict[tuple[int, int], Span] = {}
    groups = (spans_on_characters(doc, group) for group in doc.spans.values())
    for spans in (doc.ents, *groups):
        for span in spans:
            by_place.setdefault((span.start_char, span.end_char), span)
    return by_place


def _span(doc: Doc, spans: dict[tuple[int, int], Span], place: tuple[int, int]) -> Span | None:
    if place in spans:
        return spans[place]
    start, end = place
    return doc.char_span(start, end) if start < end else None
