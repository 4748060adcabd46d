"""``Span._.candidates``: ids that a span may be linked to, with scores; ``Span._.allowed_ids``: ids
to which the user restricts its links."""

from collections.abc import Iterable
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ..errors import InputError
from .given import list_of, name_of, probability, row_of
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


def set_candidates(span: Span, candidates: Iterable[tuple[str, float]] | None) -> None:
    """Replace the candidates of a span. Their order is kept: give the best first. An empty list
    means that there are none; None that nobody was asked for them.

    Raises InputError for an item of another type, for an id that is empty, not a string or
    repeated, and for a score that is not a probability.
    """
    if candidates is None:
        remove_value(span, CANDIDATES)
        return
    given = [
        row_of(x, Candidate, "An item of Span._.candidates", "(id, score)")
        for x in list_of(candidates, "Span._.candidates", "(id, score)")
    ]
    names = _checked([x.id for x in given], CANDIDATES)
    # Lists, because DocBin and bytes do not keep tuples.
    rows = [
        [name, probability(x.score, "A score of Span._.candidates")]
        for name, x in zip(names, given)
    ]
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
    names = _checked(list_of(ids, "Span._.allowed_ids", "ids"), ALLOWED_IDS)
    if NIL in names:
        raise InputError(
            f'Span._.allowed_ids contains "{NIL}", which is always allowed. To allow nothing else, '
            "give an empty list."
        )
    set_value(span, ALLOWED_IDS, names)


def _checked(ids: list[str], attribute: str) -> list[str]:
    ids = [name_of(name, f"An id of Span._.{attribute}") for name in ids]
    if len(set(ids)) < len(ids):
        repeated = next(name for i, name in enumerate(ids) if name in ids[:i])
        raise InputError(f"Span._.{attribute} contains the id {repeated!r} twice.")
    return ids
