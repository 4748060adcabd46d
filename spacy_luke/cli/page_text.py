"""The text of a document on the page: entities of both sides, and their types."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ..annotations.types import get_types, has_types, with_ancestors

Place = tuple[int, int]


class Entity(NamedTuple):
    """A labelled range of characters. score: its probability, if the pipeline gives one."""

    start: int
    end: int
    label: str
    score: float | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        return self.start, self.end, self.label


class Tag(NamedTuple):
    """The name behind an entity."""

    kind: str
    label: str
    score: float | None


class Chip(NamedTuple):
    """A type behind an entity. kind: "plain" where there is no annotation to compare it with,
    else "agreed", "spurious" or "missed"; score: None where it is missed."""

    kind: str
    name: str
    score: float | None


@dataclass
class Piece:
    """A stretch of text in which no entity begins or ends.

    kind: "", "agreed", "spurious", "missed", or "both" where a spurious and a missed entity
    lie over each other. label: of the predicted entity; gold_label: of the annotated one.
    tags: what is written behind it, of the entities that end here; types: behind that.
    """

    text: str
    kind: str = ""
    label: str = ""
    gold_label: str = ""
    tags: list[Tag] = field(default_factory=list)
    types: list[Chip] = field(default_factory=list)


def cut(
    text: str,
    predicted: Sequence[Entity],
    gold: Sequence[Entity] | None,
    types: Mapping[Place, Sequence[Chip]] | None = None,
) -> list[Piece]:
    """The text in pieces; entities of one side do not overlap, those of the two sides may.

    types: of entities, and of other places, behind which they stand too."""
    types = types or {}
    if gold is None:  # nothing to compare with: no prediction is right or wrong
        gold = predicted
    keys, theirs = {e.key for e in predicted}, {e.key for e in gold}
    kinds = [(e, "agreed" if e.key in theirs else "spurious") for e in predicted]
    kinds += [(e, "missed") for e in gold if e.key not in keys]
    ends = {at for e, _ in kinds for at in (e.start, e.end)} | {end for _, end in types}
    bounds = sorted({0, len(text), *ends})
    starting: dict[int, list[tuple[Entity, str]]] = defaultdict(list)
    for entity, kind in kinds:
        starting[entity.start].append((entity, kind))
    ending: dict[int, list[Chip]] = defaultdict(list)
    for (_, end), chips in types.items():
        ending[end] += chips
    pieces = []
    over: list[tuple[Entity, str]] = []  # few: those that lie over a piece, missed ones last
    for start, end in zip(bounds, bounds[1:]):
        over = [item for item in over + starting[start] if item[0].end > start]
        over.sort(key=lambda item: item[1] == "missed")
        piece = Piece(text[start:end], types=ending[end])
        for entity, kind in over:
            piece.kind = "both" if piece.kind else kind
            if kind == "missed":
                piece.gold_label = entity.label
            else:
                piece.label = entity.label
            if entity.end == end:
                piece.tags.append(Tag(kind, entity.label, entity.score))
        pieces.append(piece)
    return pieces


def type_chips(
    doc: Doc, reference: Doc, ancestors: bool = False, spans_key: str | None = None
) -> dict[Place, list[Chip]]:
    """Types of the spans of both sides, by characters: predicted ones, then missed ones.

    ancestors: ``/person/artist`` implies ``/person``. spans_key: the group that has types, by
    default the entities. Both are settings of luke_entity_typing."""
    predicted = _types(doc, ancestors, spans_key)
    gold = _types(reference, ancestors, spans_key)
    known = {_place(span) for span in _spans(reference, spans_key) or ()}
    complete = _spans(reference, spans_key) is not None
    chips: dict[Place, list[Chip]] = {}
    for place in {**predicted, **gold}:
        ours, theirs = predicted.get(place, {}), gold.get(place)
        if theirs is None and complete and place not in known:
            theirs = {}  # where nothing is, everything is wrong
        chips[place] = [
            Chip("plain" if theirs is None else _kind(name in theirs), name, score)
            for name, score in ours.items()
        ]
        chips[place] += [Chip("missed", name, None) for name in theirs or () if name not in ours]
    return chips


def _kind(right: bool) -> str:
    return "agreed" if right else "spurious"


def _types(doc: Doc, ancestors: bool, spans_key: str | None) -> dict[Place, dict[str, float]]:
    """Of the spans that say something."""
    spans = _spans(doc, spans_key) or ()
    found = {_place(span): get_types(span) for span in spans if has_types(span)}
    return {at: with_ancestors(x) for at, x in found.items()} if ancestors else found


def _spans(doc: Doc, spans_key: str | None) -> Sequence[Span] | None:
    """None where they are not annotated."""
    if spans_key is not None:
        return list(doc.spans[spans_key]) if spans_key in doc.spans else None
    return doc.ents if doc.has_annotation("ENT_IOB") else None


def _place(span: Span) -> Place:
    return span.start_char, span.end_char
