"""The text of a document on the page: entities of both sides, and their types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spacy.tokens import Doc

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
    """The text in pieces; entities of one side do not overlap, those of the two sides may."""
    if gold is None:  # nothing to compare with: no prediction is right or wrong
        gold = predicted
    keys, theirs = {e.key for e in predicted}, {e.key for e in gold}
    kinds = [(e, "agreed" if e.key in theirs else "spurious") for e in predicted]
    kinds += [(e, "missed") for e in gold if e.key not in keys]
    bounds = sorted({0, len(text), *(at for e, _ in kinds for at in (e.start, e.end))})
    pieces = []
    for start, end in zip(bounds, bounds[1:]):
        piece = Piece(text[start:end])
        ended = []
        for entity, kind in kinds:
            if entity.start <= start and end <= entity.end:
                piece.kind = "both" if piece.kind else kind
                if kind == "missed":
                    piece.gold_label = entity.label
                else:
                    piece.label = entity.label
            if entity.end == end and entity.start <= start:
                piece.tags.append(Tag(kind, entity.label, entity.score))
                ended.append((entity.start, entity.end))
        for place in dict.fromkeys(ended):  # two entities of one place share their types
            piece.types += (types or {}).get(place, ())
        pieces.append(piece)
    return pieces


def type_chips(doc: Doc, reference: Doc, ancestors: bool = False) -> dict[Place, list[Chip]]:
    """Types of the entities of both sides, by characters: predicted ones, then missed ones.

    ancestors: ``/person/artist`` implies ``/person``, as a setting of luke_entity_typing has it."""
    predicted = _entity_types(doc, ancestors)
    gold = _entity_types(reference, ancestors)
    chips: dict[Place, list[Chip]] = {}
    for place in {**predicted, **gold}:
        ours, theirs = predicted.get(place, {}), gold.get(place)
        chips[place] = [
            Chip("plain" if theirs is None else _kind(name in theirs), name, score)
            for name, score in ours.items()
        ]
        chips[place] += [Chip("missed", name, None) for name in theirs or () if name not in ours]
    return chips


def _kind(right: bool) -> str:
    return "agreed" if right else "spurious"


def _entity_types(doc: Doc, ancestors: bool) -> dict[Place, dict[str, float]]:
    found = {(e.start_char, e.end_char): get_types(e) for e in doc.ents if has_types(e)}
    return {at: with_ancestors(x) for at, x in found.items()} if ancestors else found
