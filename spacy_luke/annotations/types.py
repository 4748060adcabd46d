"""``Span._.types``: the types of a span, each with a score."""

from collections.abc import Mapping
from typing import Any

from spacy.tokens import Doc, Span

ATTRIBUTE = "types"
Key = tuple[str, str, int, int]


def install_types() -> None:
    """Add the extension; called by whatever writes or reads types."""
    if not Span.has_extension(ATTRIBUTE):
        Span.set_extension(ATTRIBUTE, getter=get_types, setter=set_types)


def get_types(span: Span) -> dict[str, float]:
    """Type -> score, the likeliest first. Spans of the same place share their types."""
    found = _data(span.doc).get(_key(span), {})
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def set_types(span: Span, types: Mapping[str, float]) -> None:
    """Replace the types of a span. An empty mapping says that it was asked and has none."""
    _data(span.doc)[_key(span)] = {str(name): float(score) for name, score in types.items()}


def has_types(span: Span) -> bool:
    """Whether anything, be it an empty mapping, was said about this span's types."""
    return _key(span) in _data(span.doc)


def clear_types(doc: Doc) -> None:
    """Remove all types from a document."""
    data = _data(doc)
    for key in list(data):
        if isinstance(key, tuple) and len(key) == 4 and key[:2] == ("._.", ATTRIBUTE):
            del data[key]


def _data(doc: Doc) -> dict[Any, Any]:
    return doc.user_data  # spaCy's own keys there are tuples, whatever its types say


def _key(span: Span) -> Key:
    return ("._.", ATTRIBUTE, span.start_char, span.end_char)
