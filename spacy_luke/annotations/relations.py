"""``Doc._.relations``: labelled pairs of spans."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from ..errors import InputError
from .extension import install_extension

ATTRIBUTE = "luke_relations"
Key = tuple[str, str, int, int]


class Relation(NamedTuple):
    """``head`` stands in the relation ``label`` to ``tail``. score: a probability."""

    head: Span
    tail: Span
    label: str
    score: float = 1.0


class Offsets(NamedTuple):
    """A relation by the characters of its spans, [start, end): the same for any tokens."""

    head: tuple[int, int]
    tail: tuple[int, int]
    label: str
    score: float = 1.0


def install_relations() -> None:
    """Add the extension; called by whatever writes or reads relations."""
    install_extension(Doc, "relations", get_relations, set_relations)


def get_relations(doc: Doc) -> list[Relation]:
    """The relations of a document, in the order of their heads and tails.

    Head and tail are the document's own spans of those places, from ``Doc.ents`` or else from a
    spans group, with their labels; where there is none, bare spans. A relation of which a
    side is no longer on token boundaries, as in a part of a document, is left out.
    """
    known = _spans_by_place(doc)
    found = []
    for item in relation_offsets(doc):
        head, tail = (_span(doc, known, place) for place in (item.head, item.tail))
        if head is not None and tail is not None:
            found.append(Relation(head, tail, item.label, item.score))
    return found


def set_relations(doc: Doc, relations: Iterable[Relation | tuple]) -> None:
    """Replace the relations of a document. Each is (head, tail, label) or (..., score).

    Raises InputError for a span of another document, an empty span or an empty label.
    """
    stored: dict[Key, list[list[Any]]] = {}
    for item in relations:
        relation = Relation(*item)
        for span in (relation.head, relation.tail):
            if span.doc is not doc or not len(span):
                raise InputError(
                    f"A relation {relation.label!r} has {span.text!r} as a side, which is "
                    + ("empty." if span.doc is doc else "a span of another document.")
                )
        if not relation.label:
            raise InputError("A relation needs a label.")
        head, tail = relation.head, relation.tail
        key = ("._.", ATTRIBUTE, head.start_char, head.end_char)
        # The tail by its distance from the head: spaCy moves the key when texts are joined.
        start, end = tail.start_char - head.start_char, tail.end_char - head.start_char
        rows = stored.setdefault(key, [])
        rows.append([start, end, relation.label, float(relation.score)])
    data: dict[Any, Any] = doc.user_data
    for key in list(_keys(doc)):
        del data[key]
    data.update(stored)


def relation_offsets(doc: Doc) -> list[Offsets]:
    """The relations of a document by characters, in the order of heads, tails and labels.

    One of which a side is outside of the text, as in a part of a document, is left out.
    """
    found = []
    length = len(doc.text)
    data: dict[Any, Any] = doc.user_data
    for key in _keys(doc):
        _, _, start, end = key
        for tail_start, tail_end, label, score in data[key]:
            tail = (start + tail_start, start + tail_end)
            if min(start, tail[0]) >= 0 and max(end, tail[1]) <= length:
                found.append(Offsets((start, end), tail, label, score))
    return sorted(found)


def relations_as_dict(
    doc: Doc, labels: Iterable[str] = ()
) -> dict[tuple[int, int], dict[str, float]]:
    """``{(head start, tail start): {label: score}}`` with token indices, as spaCy's relation
    tutorial keeps relations in ``Doc._.rel``.

    labels: labels that every pair should have, with score 0 where it is not in that relation.
    """
    found: dict[tuple[int, int], dict[str, float]] = {}
    for relation in get_relations(doc):
        scores = found.setdefault(
            (relation.head.start, relation.tail.start), dict.fromkeys(labels, 0.0)
        )
        scores[relation.label] = max(relation.score, scores.get(relation.label, 0.0))
    return found


def _keys(doc: Doc) -> Iterator[Key]:
    data: dict[Any, Any] = doc.user_data
    for key in data:
        if isinstance(key, tuple) and len(key) == 4 and key[:2] == ("._.", ATTRIBUTE):
            yield key


def _spans_by_place(doc: Doc) -> dict[tuple[int, int], Span]:
    """(start_char, end_char) -> span; entities before the spans of groups."""
    known: dict[tuple[int, int], Span] = {}
    for spans in (doc.ents, *doc.spans.values()):
        for span in spans:
            known.setdefault((span.start_char, span.end_char), span)
    return known


def _span(doc: Doc, known: dict[tuple[int, int], Span], place: tuple[int, int]) -> Span | None:
    if place in known:
        return known[place]
    start, end = place
    return doc.char_span(start, end) if start < end else None
