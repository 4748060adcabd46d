"""Relations of a JSON lines record, matched to its spans."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..annotations.annotated import LEAST_GOLD
from ..errors import CorpusError
from .characters import CharSpan
from .checks import get_items, get_name, get_value, require_object
from .conversion_report import Report

Place = tuple[int, int]


@dataclass(frozen=True)
class RelationRecord:
    """A relation between two annotated spans, given by their character offsets."""

    head: Place
    tail: Place
    label: str


def is_denied(score: Any) -> bool:
    """Whether a gold relation or type with this score is none (``LEAST_GOLD``)."""
    return isinstance(score, int | float) and score < LEAST_GOLD


def read_relations(
    data: dict[str, Any],
    spans: Sequence[CharSpan],
    tokens: Sequence[Place] | None,
    location: str,
    report: Report,
) -> list[RelationRecord]:
    """The record's relations, in one of two forms.

    Prodigy: ``head_span`` and ``child_span`` with the offsets of spans, or else ``head`` and
    ``child``, numbers of tokens in the spans. Plain: ``head_start``, ``head_end``, ``tail_start``
    and ``tail_end``, in characters.

    Relations whose ``score`` says that they are none are left out and counted.

    tokens: their character offsets, if the record has tokens.

    Raises CorpusError if a relation's head or tail is not one of the spans.
    """
    places = list(dict.fromkeys((span.start, span.end) for span in spans))
    relations = []
    for i, item in enumerate(get_items(data, "relations")):
        owner = f"relation {i}"
        item = require_object(item, owner)
        label = get_name(item, "label", owner)
        if "head_start" in item:
            head, tail = (_plain_side(item, side, owner) for side in ("head", "tail"))
        else:
            head, tail = (_side(item, side, owner, places, tokens) for side in ("head", "child"))
        for side, place in (("head", head), ("tail", tail)):
            if place not in places:
                raise CorpusError(
                    f"{owner} ({label}): its {side}, {place[0]} to {place[1]}, is not one of the "
                    "record's spans."
                )
        if is_denied(item.get("score")):
            what = f"relations left out: their score is below {LEAST_GOLD:g}"
            report.count(what, location)
        else:
            relations.append(RelationRecord(head, tail, label))
    return relations


def token_offsets(item: dict[str, Any], owner: str, tokens: Sequence[Place]) -> Place:
    """Character offsets of ``token_start`` to ``token_end`` (inclusive)."""
    first = get_value(item, "token_start", int, owner)
    last = get_value(item, "token_end", int, owner)
    if not 0 <= first <= last < len(tokens):
        raise CorpusError(
            f"{owner} goes from token {first} to {last}, but the record has {len(tokens)} tokens."
        )
    return tokens[first][0], tokens[last][1]


def _plain_side(item: dict[str, Any], side: str, owner: str) -> Place:
    start: int = get_value(item, f"{side}_start", int, owner)
    end: int = get_value(item, f"{side}_end", int, owner)
    return start, end


def _side(
    item: dict[str, Any],
    side: str,
    owner: str,
    places: Sequence[Place],
    tokens: Sequence[Place] | None,
) -> Place:
    """Character offsets of a relation's ``head`` or ``child`` in Prodigy's form."""
    if item.get(f"{side}_span") is not None:
        owner = f"{side}_span of {owner}"
        span = require_object(item[f"{side}_span"], owner)
        if "start" not in span and "end" not in span and tokens is not None:
            return token_offsets(span, owner, tokens)
        return get_value(span, "start", int, owner), get_value(span, "end", int, owner)
    number = get_value(item, side, int, owner)
    if tokens is None:
        raise CorpusError(
            f"{owner} has no {side}_span, and the record has no tokens to locate its {side}."
        )
    if not 0 <= number < len(tokens):
        raise CorpusError(
            f"{side} of {owner} is token {number}, but the record has {len(tokens)} tokens."
        )
    return _containing_span(tokens[number], places, f"{side} of {owner} (token {number})")


def _containing_span(token: Place, places: Sequence[Place], owner: str) -> Place:
    """The only span that contains the token; of several, the one that ends with it."""
    containing = [place for place in places if place[0] <= token[0] and token[1] <= place[1]]
    if len(containing) > 1:
        containing = [place for place in containing if place[1] == token[1]]
    if len(containing) != 1:
        raise CorpusError(
            f"{owner} does not identify a span: it must be in exactly one of the record's spans, "
            "or be the last token of exactly one. Give head_span and child_span."
        )
    return containing[0]
