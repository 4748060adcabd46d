"""``Span._.candidates``: ids that a span may be linked to, with scores; ``Span._.allowed_ids``: ids
to which the user restricts its links."""

import math
from collections.abc import Iterable
from numbers import Real
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ..errors import InputError
from .mentions import NIL
from .span_values import get_value, remove_value, remove_values, set_value

CANDIDATES = "candidates"
ALLOWED_IDS = "allowed_ids"


class Candidate(NamedTuple):
    """id: in the knowledge base. score: a probability."""

    id: str
    score: float


def get_candidates(span: Span) -> tuple[Candidate, ...] | None:
    """The candidates of a span, best first. Empty if it has none; None if they were not set,
    because no component was asked for them.

    "NIL" may be one of them, with the score of "none of the others". Spans with the same characters
    share their candidates.
    """
    rows = get_value(span, CANDIDATES)
    return None if rows is None else tuple(Candidate(name, score) for name, score in rows)


def set_candidates(span: Span, candidates: Iterable[tuple[str, float]]) -> None:
    """Replace the candidates of a span. Their order is kept: give the best first. An empty list
    means that there are none.

    Raises InputError for an id that is empty, not a string or repeated, and for a score that is not
    a finite number.
    """
    given = [(name, score) for name, score in candidates]
    names = _checked([name for name, _ in given], CANDIDATES)
    for _, score in given:
        if not isinstance(score, Real) or not math.isfinite(score):
            raise InputError(f"A score of Span._.candidates is {score!r}, not a finite number.")
    # Lists, because DocBin and bytes do not keep tuples.
    rows = [[name, float(score)] for name, (_, score) in zip(names, given)]
    set_value(span, CANDIDATES, rows)


def clear_candidates(doc: Doc) -> None:
    """Remove all candidates from a document. Allowed ids remain."""
    remove_values(doc, CANDIDATES)


def get_allowed_ids(span: Span) -> tuple[str, ...] | None:
    """The only ids that the span may be linked to; None if all are allowed. Spans with the same
    characters share their allowed ids."""
    names = get_value(span, ALLOWED_IDS)
    return None if names is None else tuple(names)


def set_allowed_ids(span: Span, ids: Iterable[str] | None) -> None:
    """Restrict the links of a span. An empty list allows none, so the link is "NIL"; None removes
    the restriction.

    Raises InputError for an id that is empty, not a string, repeated or "NIL", and for one string
    instead of a list. "NIL" is always allowed and is not an id.
    """
    if ids is None:
        remove_value(span, ALLOWED_IDS)
        return
    if isinstance(ids, str):
        raise InputError(f"Span._.allowed_ids is the string {ids!r}; give a list of ids.")
    names = _checked(list(ids), ALLOWED_IDS)
    if NIL in names:
        raise InputError(
            f'Span._.allowed_ids contains "{NIL}", which is always allowed. To allow nothing else, '
            "give an empty list."
        )
    set_value(span, ALLOWED_IDS, names)


def _checked(ids: list[str], attribute: str) -> list[str]:
    for name in ids:
        if not isinstance(name, str) or not name:
            raise InputError(f"An id of Span._.{attribute} is {name!r}, not a non-empty string.")
    if len(set(ids)) < len(ids):
        repeated = next(name for i, name in enumerate(ids) if name in ids[:i])
        raise InputError(f"Span._.{attribute} contains the id {repeated!r} twice.")
    return [str(name) for name in ids]
