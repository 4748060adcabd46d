"""Values of spans in ``Doc.user_data``, under spaCy's keys for custom attributes of spans.

The keys contain character offsets, so spans with the same characters share their values.
"""

from collections.abc import Iterator
from typing import Any

from spacy.tokens import Doc, Span

Key = tuple[str, str, int, int]


def data_of(doc: Doc) -> dict[Any, Any]:
    """``Doc.user_data``. Its type in spaCy has str keys, but spaCy's own keys are tuples."""
    return doc.user_data


def key_of(span: Span, name: str) -> Key:
    """The key of the attribute ``name`` of a span."""
    return ("._.", name, span.start_char, span.end_char)


def keys_of(doc: Doc, name: str) -> Iterator[Key]:
    """The keys of all spans that have the attribute ``name``."""
    for key in data_of(doc):
        if isinstance(key, tuple) and len(key) == 4 and key[:2] == ("._.", name):
            yield key


def get_value(span: Span, name: str) -> Any:
    """The value of a span, or None if it was not set."""
    return data_of(span.doc).get(key_of(span, name))


def set_value(span: Span, name: str, value: Any) -> None:
    """Set the value of a span. It consists of strings, numbers, lists and dictionaries, so that
    ``DocBin`` and bytes store it."""
    data_of(span.doc)[key_of(span, name)] = value


def remove_value(span: Span, name: str) -> None:
    """Remove the value of a span, if it was set."""
    data_of(span.doc).pop(key_of(span, name), None)


def remove_values(doc: Doc, name: str) -> None:
    """Remove the values of all spans."""
    for key in list(keys_of(doc, name)):
        del data_of(doc)[key]
