"""``Span._.types``: the types of a span, each with a score."""

from collections.abc import Mapping
from typing import Any

from spacy.tokens import Doc, Span

from .extension import install_extension

ATTRIBUTE = "types"
Key = tuple[str, str, int, int]


def install_types() -> None:
    """Add the extension; called by whatever writes or reads types."""
    install_extension(Span, ATTRIBUTE, get_types, set_types)


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


def with_ancestors(types: Mapping[str, float]) -> dict[str, float]:
    """Add the types above a path (``/person`` to ``/person/artist``), which are at least as
    likely as any below them."""
    found = dict(types)
    for name, score in types.items():
        for above in _above(name):
            found[above] = max(score, found.get(above, 0.0))
    return found


def without_ancestors(types: Mapping[str, float]) -> dict[str, float]:
    """Leave out the types above another path: what :func:`with_ancestors` would add again."""
    implied = {above for name in types for above in _above(name)}
    return {name: score for name, score in types.items() if name not in implied}


def _above(name: str) -> list[str]:
    return [name[:at] for at in range(1, len(name)) if name[at] == "/"]


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
