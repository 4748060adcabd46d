"""Checks of what users assign to the attributes of documents and spans. All raise InputError."""

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, TypeVar

from spacy.tokens import Doc, Span

from ..errors import InputError

Row = TypeVar("Row", bound=tuple)


def list_of(given: Any, owner: str, items: str) -> list[Any]:
    """The items as a list, from any iterable, but not from one string, document or span, whose
    characters or tokens would be taken for items. owner, items: what errors name."""
    if isinstance(given, str | bytes | Doc | Span | Mapping) or not isinstance(given, Iterable):
        shown = str(given) if isinstance(given, Doc) else given
        raise InputError(f"{owner} is {shown!r}; give a list of {items}.")
    return list(given)


def row_of(item: Any, row: type[Row], owner: str, form: str) -> Row:
    """A tuple or list as a named tuple, whose last fields may be missing if they have defaults.

    owner, form: what errors name, such as "A relation" and "(head, tail, label)"."""
    fields, defaults = row._fields, row._field_defaults  # type: ignore[attr-defined]
    is_row = isinstance(item, tuple | list)
    if not is_row or not len(fields) - len(defaults) <= len(item) <= len(fields):
        raise InputError(f"{owner} is {item!r}, which is not {form}.")
    return row(*item)


def span_of(doc: Doc, span: Any, owner: str) -> Span:
    if not isinstance(span, Span) or span.doc is not doc:
        raise InputError(f"{owner} is {span!r}, which is not a span of the document.")
    if not len(span):
        raise InputError(f"{owner} is an empty span, at token {span.start}.")
    return span


def name_of(name: Any, owner: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(f"{owner} is {name!r}, not a non-empty string.")
    return str(name)


def probability(score: Any, owner: str) -> float:
    """A number from 0 to 1."""
    if not isinstance(score, Real) or not 0.0 <= float(score) <= 1.0:  # NaN is not
        raise InputError(f"{owner} is {score!r}, not a probability from 0 to 1.")
    return float(score)
