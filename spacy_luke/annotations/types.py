"""``Span._.types``: the types of a span, each with a score."""

from collections.abc import Mapping
from typing import Any

from spacy.tokens import Doc, Span

from ..errors import InputError
from ..ties import reaches
from .annotated import LEAST_GOLD
from .given import name_of, probability
from .span_values import get_value, remove_value, remove_values, set_value

ATTRIBUTE = "types"


def get_types(span: Span) -> dict[str, float] | None:
    """Type -> score, by descending score. Empty if the span has no type; None if its types were not
    set, because no component was asked for them. Spans with the same characters share their types.
    """
    types = get_value(span, ATTRIBUTE)
    if types is None:
        return None
    return _Types(sorted(types.items(), key=lambda item: (-item[1], item[0])))


def get_gold_types(span: Span) -> dict[str, float] | None:
    """:func:`get_types` of a gold span: those with a score of at least ``LEAST_GOLD``."""
    types = get_types(span)
    return types and {name: score for name, score in types.items() if score >= LEAST_GOLD}


def set_types(span: Span, types: Mapping[str, float] | None) -> None:
    """Replace the types of a span. An empty mapping means that the span has no type; None that
    nobody was asked for them.

    Raises InputError for what is not a mapping, for a type that is not a string or empty, and for a
    score that is not a probability.
    """
    if types is None:
        remove_value(span, ATTRIBUTE)
        return
    if not isinstance(types, Mapping):
        raise InputError(f"Span._.types is {types!r}; give a dictionary of types and their scores.")
    names = [name_of(name, "A type of Span._.types") for name in types]
    scores = [probability(types[name], f"The score of the type {name!r}") for name in names]
    set_value(span, ATTRIBUTE, dict(zip(names, scores)))


def _refuse(self: object, *args: object, **kwargs: object) -> Any:
    raise InputError(
        "Span._.types is a copy, which cannot be changed. Assign a new dictionary, for example "
        'span._.types = {**(span._.types or {}), "/person": 0.9}.'
    )


class _Types(dict[str, float]):
    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce_ex__(self, protocol: object) -> tuple:
        return dict, (tuple(self.items()),)


def with_ancestors(types: Mapping[str, float]) -> dict[str, float]:
    """Add all ancestors (``/person`` of ``/person/artist``). The score of an ancestor is at least
    the maximum of its descendants."""
    scores = dict(types)
    for name, score in types.items():
        for ancestor in _ancestors(name):
            scores[ancestor] = max(score, scores.get(ancestor, 0.0))
    return scores


def with_implied(
    types: Mapping[str, float], thresholds: Mapping[str, float | None]
) -> dict[str, float]:
    """Add the ancestors of types that are written, but for those below a threshold of their own, or
    with None there. The common threshold does not count: what implies them is written."""

    def is_written(name: str, score: float) -> bool:
        least = thresholds.get(name, 0.0)
        return least is not None and reaches(score, least)

    scores = with_ancestors(types)
    return {x: score for x, score in scores.items() if x in types or is_written(x, score)}


def without_ancestors(types: Mapping[str, float]) -> dict[str, float]:
    """Remove the ancestors of other types: :func:`with_ancestors` would add them again."""
    implied = {ancestor for name in types for ancestor in _ancestors(name)}
    return {name: score for name, score in types.items() if name not in implied}


def _ancestors(name: str) -> list[str]:
    """``/person/artist/painter`` -> ``/person``, ``/person/artist``."""
    return [name[:i] for i in range(1, len(name)) if name[i] == "/"]


def clear_types(doc: Doc) -> None:
    """Remove all types from a document."""
    remove_values(doc, ATTRIBUTE)
