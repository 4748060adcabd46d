"""The text of a document on the page, with predicted and gold entities, types and answers."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ...annotations.annotated import is_annotated, spans_annotated
from ...annotations.mentions import all_spans
from ...annotations.types import get_gold_types, get_types, with_ancestors

Place = tuple[int, int]


class Entity(NamedTuple):
    """A labelled range of characters. score: its probability, if the pipeline gives one. compared:
    false if its tokens are not annotated, so that it is neither right nor wrong. tokens: of a
    predicted one, the characters of the reference's tokens that it has; others have their own."""

    start: int
    end: int
    label: str
    score: float | None = None
    compared: bool = True
    tokens: Place | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        """What is equal if a predicted and a gold entity agree."""
        return *(self.tokens or (self.start, self.end)), self.label


class EntityTag(NamedTuple):
    """The label shown after an entity."""

    kind: str
    label: str
    score: float | None


class Chip(NamedTuple):
    """A type shown after an entity. kind: "plain" without annotation, else "agreed", "spurious" or
    "missed". score: None if missed."""

    kind: str
    name: str
    score: float | None


class ShownAnswer(NamedTuple):
    """An answer to a question. kind: "plain" without annotation, else "agreed", "spurious" or
    "missed" (only annotated). label: the number of the question, and of the answer unless it is the
    best. place: its characters; None if it is not in the text. score: None if missed. id, question:
    ids of the HTML elements of its mark in the text and of its question."""

    kind: str
    label: str
    text: str
    place: Place | None
    score: float | None
    id: str
    question: str


@dataclass
class Piece:
    """A range of text within which no entity or answer starts or ends.

    kind: "" without entity, "plain" if there is nothing to compare with, "agreed", "spurious",
    "missed", or "both" if a spurious and a missed entity overlap.
    label: of the predicted entity. gold_label: of the annotated one.
    tags, types: of the entities that end here.
    line: over the text: "" without answers, "missed" if all its answers are, "one", or "more" if
    answers overlap. opens: the answers that start here. closes: those that end here, inside
    an answer that goes on.
    """

    text: str
    kind: str = ""
    label: str = ""
    gold_label: str = ""
    tags: list[EntityTag] = field(default_factory=list)
    types: list[Chip] = field(default_factory=list)
    line: str = ""
    opens: list[ShownAnswer] = field(default_factory=list)
    closes: list[ShownAnswer] = field(default_factory=list)


def cut_text(
    text: str,
    predicted: Sequence[Entity],
    gold: Sequence[Entity] | None,
    types: Mapping[Place, Sequence[Chip]] | None = None,
    answers: Iterable[ShownAnswer] = (),
    cuts: Iterable[int] = (),
    alike: str = "agreed",
) -> list[Piece]:
    """Cut a text at boundaries of entities and answers. A predicted entity may overlap a gold one,
    and answers may overlap everything.

    gold: None without annotation. types: shown at the end of their character ranges, which need not
    be entities. cuts: further characters to cut at. alike: the kind of predicted entities that are
    annotated, too.

    Example: predicted [0, 3), gold [0, 3) and [4, 7) of a text of 7 characters gives the pieces
    [0, 3) "agreed", [3, 4) "", [4, 7) "missed".
    """
    types = types or {}
    kinds = _kinds(predicted, gold, alike)
    ends = {edge for e, _ in kinds for edge in (e.start, e.end)} | {end for _, end in types}
    at = _by_place(answers)
    bounds = sorted({0, len(text), *cuts, *ends, *(edge for place in at for edge in place)})
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
                piece.tags.append(EntityTag(kind, entity.label, entity.score))
        pieces.append(piece)
    _mark_answers(pieces, at)
    return pieces


def _kinds(
    predicted: Sequence[Entity], gold: Sequence[Entity] | None, alike: str
) -> list[tuple[Entity, str]]:
    if gold is None:
        return [(entity, "plain") for entity in predicted]
    predicted_keys, gold_keys = {e.key for e in predicted}, {e.key for e in gold}
    kinds = [
        (e, alike if e.key in gold_keys else "spurious" if e.compared else "plain")
        for e in predicted
    ]
    return kinds + [(e, "missed") for e in gold if e.key not in predicted_keys]


def _by_place(answers: Iterable[ShownAnswer]) -> dict[Place, list[ShownAnswer]]:
    """Answers that are in the text, each once."""
    at: dict[Place, list[ShownAnswer]] = defaultdict(list)
    for answer in dict.fromkeys(answers):
        if answer.place is not None:
            at[answer.place].append(answer)
    return at


def _mark_answers(pieces: Iterable[Piece], at: Mapping[Place, list[ShownAnswer]]) -> None:
    """Set the lines and numbers of answers. Of those that start together, the longest is first."""
    starting: dict[int, list[Place]] = defaultdict(list)
    for place in sorted(at, key=lambda place: -place[1]):
        starting[place[0]].append(place)
    over: list[Place] = []
    position = 0
    for piece in pieces:
        over = [place for place in over if place[1] > position] + starting[position]
        piece.opens = [answer for place in starting[position] for answer in at[place]]
        position += len(piece.text)
        if any(end > position for _, end in over):
            piece.closes = [x for place in over if place[1] == position for x in at[place]]
        if over:
            missed = all(answer.kind == "missed" for place in over for answer in at[place])
            one = "missed" if missed else "one"
            piece.line = "more" if len(over) > 1 else one


def type_chips(
    doc: Doc,
    reference: Doc,
    compare: bool = True,
    *,
    ancestors: bool = False,
    spans_key: str | None = None,
) -> dict[Place, list[Chip]]:
    """Characters of a span -> its predicted types, then its missed types.

    compare: whether types are annotated in the corpus. ancestors: ``/person/artist`` implies
    ``/person``. spans_key: the group with types; defaults to entities. Both are settings of
    luke_entity_typing.
    """
    predicted = _types(doc, ancestors, spans_key)
    compare = compare and is_annotated(reference, "types")
    gold = _types(reference, ancestors, spans_key, get_gold_types) if compare else {}
    reference_spans = _spans(reference, spans_key) if compare else None
    reference_places = {_place(span) for span in reference_spans or ()}
    chips: dict[Place, list[Chip]] = {}
    for place in {**predicted, **gold}:
        scores, gold_scores = predicted.get(place, {}), gold.get(place)
        if gold_scores is None and reference_spans is not None and place not in reference_places:
            gold_scores = {}  # the span itself is spurious, so its types are
        chips[place] = [
            Chip("plain" if gold_scores is None else _kind(name in gold_scores), name, score)
            for name, score in scores.items()
        ]
        missed = [name for name in gold_scores or () if name not in scores]
        chips[place] += [Chip("missed", name, None) for name in missed]
    return chips


def _kind(agrees: bool) -> str:
    return "agreed" if agrees else "spurious"


def _types(
    doc: Doc, ancestors: bool, spans_key: str | None, of: Callable = get_types
) -> dict[Place, dict[str, float]]:
    """Characters -> types, of the spans whose types are set."""
    spans = all_spans(doc, spans_key)
    types = {_place(span): x for span in spans if (x := of(span)) is not None}
    return {place: with_ancestors(x) for place, x in types.items()} if ancestors else types


def _spans(doc: Doc, spans_key: str | None) -> Sequence[Span] | None:
    """The entities or the spans of a group; None if they are not annotated."""
    return all_spans(doc, spans_key) if spans_annotated(doc, spans_key) else None


def _place(span: Span) -> Place:
    return span.start_char, span.end_char
