"""Documents cut into stretches and joined, with everything that is annotated on them.

spaCy's ``Span.as_doc`` leaves spans groups behind and gives all user data to every part; and
``Doc.from_docs`` warns of each piece of user data that is not a span's.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc, Span

from ..annotations.annotated import copy_annotated
from ..annotations.relations import ATTRIBUTE as RELATIONS
from ..annotations.relations import relation_offsets
from ..annotations.types import ATTRIBUTE as TYPES


def cut(doc: Doc, starts: Sequence[int]) -> tuple[list[Doc], Counter[str]]:
    """Cut a document before the tokens ``starts``.

    starts: ascending token indices, the first of them 0.

    Each part keeps the entities, spans groups, relations and types that lie within it, and all
    user data about the document as a whole. Returns the parts, and how many ``relations``,
    ``entities``, ``types`` (places that have some) and ``spans`` (of groups) lie within none.
    """
    bounds = list(zip(starts, [*starts[1:], len(doc)]))
    data, lost_types = _user_data(doc, [doc[start:end] for start, end in bounds])
    lost = Counter(_size(doc))
    lost["types"] = lost_types
    parts = []
    for (start, end), own in zip(bounds, data):
        part = doc[start:end].as_doc()
        part.user_data.update(own)
        for key, group in doc.spans.items():
            part.spans[key] = [
                _moved(span, part, start)
                for span in group
                if start <= span.start and span.end <= end
            ]
        lost.subtract(_size(part))
        parts.append(part)
    return parts, lost


def join(docs: Sequence[Doc]) -> Doc:
    """One document of all the tokens, entities, spans groups, relations and types of several.

    A space is added between two of which the first ends without one. User data about a document
    as a whole is left out, but for what is annotated there, which must be the same for all.
    """
    # spaCy's type stub does not know ``exclude``.
    joined = Doc.from_docs(list(docs), exclude=("user_data",))  # type: ignore[call-arg]
    assert joined is not None  # of no documents only
    data: dict[Any, Any] = joined.user_data
    at = 0  # token of ``joined``
    for doc in docs:
        by = joined[at].idx if len(doc) else 0
        own: dict[Any, Any] = doc.user_data
        for key, value in own.items():
            if not _of_span(key) or key[2] is None:
                continue
            _, name, start, end = key
            kept = _within(key, value, 0, len(doc.text))
            if kept is not None:
                data["._.", name, start + by, None if end is None else end + by] = kept
        at += len(doc)
    copy_annotated(docs[0], joined)
    return joined


def _size(doc: Doc) -> dict[str, int]:
    return {
        "relations": len(relation_offsets(doc)),
        "entities": len(doc.ents),
        "spans": sum(map(len, doc.spans.values())),
    }


def _user_data(doc: Doc, parts: Sequence[Span]) -> tuple[list[dict[Any, Any]], int]:
    """What is said about the document, for each part; about a span, for that which holds it.
    Also returns how many places with types no part holds."""
    found: list[dict[Any, Any]] = [{} for _ in parts]
    lost_types = 0
    data: dict[Any, Any] = doc.user_data
    starts = [part.start_char for part in parts]
    for key, value in data.items():
        name, start, end = key[1:] if _of_span(key) else ("", None, None)
        if start is None:
            for own in found:
                own[key] = value
            continue
        i = max(bisect_right(starts, start) - 1, 0)
        at = starts[i]
        kept = _within(key, value, at, parts[i].end_char)
        if kept is not None:
            found[i]["._.", name, start - at, None if end is None else end - at] = kept
        elif name == TYPES:
            lost_types += 1
    return found, lost_types


def _within(key: Any, value: Any, low: int, high: int) -> Any:
    """User data about a span, for a text cut to the characters [low, high): None if the span lies
    elsewhere. A relation is stored with its head, by the distance to its tail; if the tail lies
    elsewhere, that distance would lead into another text."""
    _, name, start, end = key
    if start < low or (end or start) > high:
        return None
    if name != RELATIONS:
        return value
    rows = [row for row in value if low <= start + row[0] and start + row[1] <= high]
    return rows or None


def _of_span(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 4 and key[0] == "._."


def _moved(span: Span, doc: Doc, by: int) -> Span:
    """A span in a part of its document that begins at the word ``by``."""
    start, end = span.start - by, span.end - by
    return Span(doc, start, end, label=span.label, kb_id=span.kb_id, span_id=span.id)
