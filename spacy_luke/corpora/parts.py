"""Cut and join documents with all their annotation.

spaCy's ``Span.as_doc`` drops spans groups and copies all user data to every part, and
``Doc.from_docs`` warns about user data of the whole document.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from spacy.attrs import ENT_ID, ENT_IOB, ENT_KB_ID, ENT_TYPE
from spacy.tokens import Doc, Span

from ..annotations.annotated import JOINED, copy_annotated, joined_starts
from ..annotations.mentions import Place, characters, entities_of, spans_of
from ..annotations.queries import clear_queries, query_texts
from ..annotations.questions import clear_questions, n_questions
from ..annotations.relations import ATTRIBUTE as RELATIONS
from ..annotations.relations import (
    RELATED,
    Offsets,
    gold_offsets,
    related_elsewhere,
    relation_offsets,
    set_related_elsewhere,
)
from ..annotations.types import ATTRIBUTE as TYPES


def cut(doc: Doc, starts: Sequence[int]) -> tuple[list[Doc], Counter[str]]:
    """Cut a document before the tokens ``starts``.

    starts: ascending token indices; the first is 0.

    Each part keeps the entities, spans groups, relations and types within it, and all user data of
    the whole document, except categories (``Doc.cats``), and questions and queries with their
    answers: a part may lack what they are about. Returns the parts, and counts of annotation that
    is in no part: ``relations``, ``entities``, ``types`` (places with types), ``spans`` (of
    groups), ``questions`` (and queries) and ``categories`` (documents that have them).
    """
    bounds = list(zip(starts, [*starts[1:], len(doc)]))
    data, lost_types = _user_data(doc, [doc[start:end] for start, end in bounds])
    lost = Counter(_size(doc))
    lost["types"] = lost_types
    groups = {key: _spans_within(group, starts, len(doc)) for key, group in doc.spans.items()}
    columns = _Columns(doc, starts)
    related = _related(doc, [doc[start:end] for start, end in bounds])
    parts = []
    for i, ((start, end), user_data) in enumerate(zip(bounds, data)):
        part = columns.part(start, end)
        part.user_data.update(user_data)
        set_related_elsewhere(part, related[i])
        if len(bounds) > 1:
            clear_questions(part)
            clear_queries(part)
        else:
            part.cats = dict(doc.cats)
        for key, by_part in groups.items():
            part.spans[key] = [_moved(span, part, start) for span in by_part[i]]
        lost.subtract(_size(part))
        parts.append(part)
    return parts, lost


class _Columns:
    """The attributes of a document's tokens, for parts of it. spaCy's ``Span.as_doc`` reads those
    of the whole document, and all its entities, for each part."""

    def __init__(self, doc: Doc, starts: Sequence[int]):
        self.doc = doc
        names: Any = doc._get_array_attrs()
        self.names, self.values = names, doc.to_array(names)
        of_entities = [self.names.index(x) for x in (ENT_IOB, ENT_TYPE, ENT_ID, ENT_KB_ID)]
        for ent in doc.ents:
            if bisect_right(starts, ent.start) != bisect_left(starts, ent.end):  # cut: missing
                self.values[ent.start : ent.end, of_entities] = 0

    def part(self, start: int, end: int) -> Doc:
        """The tokens with all their attributes. Heads outside are replaced as spaCy does it."""
        doc, span = self.doc, self.doc[start:end]
        fixed = span._fix_dep_copy(self.names, self.values[start:end])  # type: ignore[attr-defined]
        words, spaces = [x.text for x in span], [bool(x.whitespace_) for x in span]
        part = Doc(doc.vocab, words=words, spaces=spaces)
        part.from_array(self.names, fixed)
        part.tensor = doc.tensor[start:end]
        part.has_unknown_spaces = doc.has_unknown_spaces
        for name in ("noun_chunks_iterator", "user_hooks", "user_span_hooks", "user_token_hooks"):
            setattr(part, name, getattr(doc, name))
        return part


def _spans_within(spans: Iterable[Span], starts: Sequence[int], n_tokens: int) -> list[list[Span]]:
    """For each part the spans that are within it."""
    ends = [*starts[1:], n_tokens]
    found: list[list[Span]] = [[] for _ in starts]
    for span in spans:
        i = max(bisect_right(starts, span.start) - 1, 0)
        if span.end <= ends[i]:
            found[i].append(span)
    return found


def _related(doc: Doc, parts: Sequence[Span]) -> list[dict[str, list[Offsets]]]:
    """For each part and layer (:func:`.set_related_elsewhere`) the relations of entities with
    several mentions that the part has no mentions of its own of; on its first mentions of them."""
    found: list[dict[str, list[Offsets]]] = [{} for _ in parts]
    own, noted = gold_offsets(doc), related_elsewhere(doc)
    if own or noted:
        for key in ("", *doc.spans):
            layer = _Layer(doc, key, parts)
            for of_part, items in zip(found, layer.related([*own], noted.get(key, []))):
                of_part[key] = items
    return found


def _shifted(item: Offsets, by: int) -> Offsets:
    (a, b), (c, d) = item.head, item.tail
    return item._replace(head=(a + by, b + by), tail=(c + by, d + by))


class _Layer:
    """The entities of ``Doc.ents`` or a spans group, and their mentions in the parts."""

    def __init__(self, doc: Doc, key: str, parts: Sequence[Span]):
        self.parts, self.starts = parts, [part.start_char for part in parts]
        self.entity_at: dict[Place, int] = {}
        self.places: list[dict[int, Place]] = []  # of an entity: part -> first mention
        for mentions in entities_of(spans_of(doc, key or None), merged=True):
            places: dict[int, Place] = {}
            for place in map(characters, mentions):
                self.entity_at[place] = len(self.places)
                i = self.part_of(place)
                if i is not None:
                    places.setdefault(i, place)
            self.places.append(places)

    def part_of(self, place: Place) -> int | None:
        i = max(bisect_right(self.starts, place[0]) - 1, 0)
        return i if place[1] <= self.parts[i].end_char else None

    def related(self, own: Sequence[Offsets], noted: Sequence[Offsets]) -> list[list[Offsets]]:
        found: list[list[Offsets]] = [[] for _ in self.parts]
        scores: dict[tuple[int, int, str], float] = {}
        kept: set[tuple[int | None, tuple[int, int, str]]] = set()
        for item in (*own, *noted):
            head, tail = (self.entity_at.get(side) for side in (item.head, item.tail))
            if head is None or tail is None or head == tail:
                continue
            relation = head, tail, item.label
            scores[relation] = max(item.score, scores.get(relation, 0.0))
        for item in own:
            part = self.part_of(item.head)
            if part == self.part_of(item.tail) and item.tail in self.entity_at:
                relation = self.entity_at.get(item.head, -1), self.entity_at[item.tail], item.label
                kept.add((part, relation))
        for (head, tail, label), score in scores.items():
            for i in sorted(self.places[head].keys() & self.places[tail].keys()):
                if (i, (head, tail, label)) not in kept:
                    item = Offsets(self.places[head][i], self.places[tail][i], label, score)
                    found[i].append(_shifted(item, -self.starts[i]))
        return found


def join(docs: Sequence[Doc]) -> Doc:
    """Concatenate documents with their entities, spans groups, relations and types.

    A space is added after a document that does not end with one. User data of a whole document is
    dropped, except for its annotated layers, which must be the same for all documents. So are
    questions and queries, because another text may answer them. The result knows where each
    document begins.
    """
    # spaCy's type stub lacks ``exclude``.
    joined = Doc.from_docs(list(docs), exclude=("user_data",))  # type: ignore[call-arg]
    assert joined is not None  # None only for an empty list
    data: dict[Any, Any] = joined.user_data
    first_token = 0  # of the document in ``joined``
    starts: list[int] = []
    related: dict[str, list[Offsets]] = defaultdict(list)
    for doc in docs:
        shift = joined[first_token].idx if len(doc) else 0
        doc_data: dict[Any, Any] = doc.user_data
        for key, value in doc_data.items():
            if not _of_span(key) or key[2] is None:
                continue
            _, name, start, end = key
            kept = _within(key, value, 0, len(doc.text))
            if kept is not None:
                data["._.", name, start + shift, None if end is None else end + shift] = kept
        for layer, items in related_elsewhere(doc).items():
            related[layer] += [_shifted(item, shift) for item in items]
        first_token += len(doc)
        starts += [shift + start for start in joined_starts(doc) or [0]] if len(doc) else []
    joined.has_unknown_spaces = all(doc.has_unknown_spaces for doc in docs)
    copy_annotated(docs[0], joined)
    data[JOINED] = starts
    set_related_elsewhere(joined, related)
    return joined


def _size(doc: Doc) -> dict[str, int]:
    return {
        "relations": len(relation_offsets(doc)),
        "entities": len(doc.ents),
        "spans": sum(map(len, doc.spans.values())),
        "questions": n_questions(doc) + len(query_texts(doc)),
        "categories": int(bool(doc.cats)),
    }


def _user_data(doc: Doc, parts: Sequence[Span]) -> tuple[list[dict[Any, Any]], int]:
    """User data per part: that of the whole document, and that of spans within the part.
    Also returns how many places with types are in no part.

    spaCy stores ``span._.x`` as ``user_data["._.", "x", start, end]``, in characters; end may be
    None. ``doc._.x`` has None for both.
    """
    by_part: list[dict[Any, Any]] = [{} for _ in parts]
    lost_types = 0
    data: dict[Any, Any] = doc.user_data
    starts = [part.start_char for part in parts]
    for key, value in data.items():
        name, start, end = key[1:] if _of_span(key) else ("", None, None)
        if key == JOINED:
            for part_data, part in zip(by_part, parts):
                i, k = bisect_right(value, part.start_char), bisect_left(value, part.end_char)
                first = [0] if i else []
                part_data[key] = first + [x - part.start_char for x in value[i:k]]
        elif start is None and key != RELATED:
            for part_data in by_part:
                part_data[key] = value
        if start is None:
            continue
        i = max(bisect_right(starts, start) - 1, 0)
        shift = starts[i]
        kept = _within(key, value, shift, parts[i].end_char)
        if kept is not None:
            by_part[i]["._.", name, start - shift, None if end is None else end - shift] = kept
        elif name == TYPES:
            lost_types += 1
    return by_part, lost_types


def _within(key: Any, value: Any, low: int, high: int) -> Any:
    """A span's user data if the span is within the characters [low, high), else None.

    Relations are stored with the head, by the distance to the tail. Only those with a tail within
    [low, high) are kept."""
    _, name, start, end = key
    if start < low or (end or start) > high:
        return None
    if name != RELATIONS:
        return value
    rows = [row for row in value if low <= start + row[0] and start + row[1] <= high]
    return rows or None


def _of_span(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 4 and key[0] == "._."


def _moved(span: Span, doc: Doc, offset: int) -> Span:
    """The span in ``doc``, a part of its document that begins at token ``offset``."""
    start, end = span.start - offset, span.end - offset
    return Span(doc, start, end, label=span.label, kb_id=span.kb_id, span_id=span.id)
