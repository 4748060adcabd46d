"""Which annotations of a document are complete, so that what is absent means "none".

A corpus may annotate entities but no relations, or judge only some relation labels. By default a
document counts as annotated in full, as in spaCy. Tokens have a mark of their own for entities that
are not annotated (``ENT_IOB`` 0), and spans for types; this module marks a whole document.
"""

from collections.abc import Collection
from typing import Any, Literal, get_args

from spacy.tokens import Doc

from ..errors import InputError

Layer = Literal["ents", "relations", "types"]

# Keyed as spaCy keys the custom attributes of documents, so it survives DocBin.
_KEY = ("._.", "luke_annotated", None, None)


def set_annotated(doc: Doc, layer: Layer, labels: Collection[str] | bool) -> None:
    """Say whether a layer is annotated in a document.

    labels: True if all labels were judged, False if none were; or, of relations, the labels that
        were. What was not judged is neither learned nor scored.

    Raises InputError for an unknown layer, and for labels of another layer than relations.
    """
    _check(layer)
    if layer != "relations" and not isinstance(labels, bool):
        raise InputError(f"{layer} are annotated (True) or not (False); only relations by label.")
    data: dict[Any, Any] = doc.user_data
    found = dict(data.get(_KEY, {}))
    if isinstance(labels, bool):
        found[layer] = labels
    else:
        found[layer] = sorted(set(labels))
    data[_KEY] = found


def annotated_labels(doc: Doc, layer: Layer) -> frozenset[str] | None:
    """The labels that were judged in a document; None for all, empty for none."""
    _check(layer)
    data: dict[Any, Any] = doc.user_data
    labels = data.get(_KEY, {}).get(layer, True)
    if isinstance(labels, bool):
        return None if labels else frozenset()
    return frozenset(labels)


def is_annotated(doc: Doc, layer: Layer) -> bool:
    """Whether any label of a layer was judged in a document."""
    labels = annotated_labels(doc, layer)
    return labels is None or len(labels) > 0


def copy_annotated(source: Doc, target: Doc) -> None:
    """Copy the annotation marks of ``source`` to ``target``."""
    data: dict[Any, Any] = source.user_data
    if _KEY in data:
        target.user_data[_KEY] = dict(data[_KEY])  # type: ignore[index]


def everything_annotated(doc: Doc) -> tuple[frozenset[str] | None, ...]:
    """:func:`annotated_labels` of every layer: equal for documents of which the same is said."""
    return tuple(annotated_labels(doc, layer) for layer in get_args(Layer))


def _check(layer: str) -> None:
    layers = get_args(Layer)
    if layer not in layers:
        raise InputError(f"{layer!r} is not a layer of annotation; use one of {', '.join(layers)}.")
