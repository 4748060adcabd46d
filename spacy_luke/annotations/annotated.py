"""Which layers of a document are annotated. In these, absent annotation means "none".

A corpus may annotate entities but not relations, or only some relation labels. By default all
layers count as annotated, as in spaCy. This module sets the status of a whole document. (Single
tokens have ``ENT_IOB`` 0 if their entities are unknown; types of a span are unknown until set.)
"""

from collections.abc import Collection
from typing import Any, Literal, get_args

from spacy.tokens import Doc

from ..errors import InputError
from .given import list_of, name_of

Layer = Literal["ents", "relations", "types"]

# The form of spaCy's own keys for custom attributes of documents, so DocBin keeps it.
_KEY = ("._.", "luke_annotated", None, None)
LEAST_GOLD = 0.5
"""A gold relation or type with a lower score says that it is not there, as in ``Doc.cats``."""
JOINED = ("._.", "luke_joined", None, None)
"""Key of :func:`joined_starts` in ``Doc.user_data``."""


def set_annotated(doc: Doc, layer: Layer, labels: Collection[str] | bool) -> None:
    """Set whether a layer is annotated in a document.

    labels: True for all labels, False for none, or (only for relations) the annotated labels. Other
        labels are neither learned nor scored.

    Raises InputError for an unknown layer, for single labels of a layer other than relations, and
    for labels that are not a collection of names.
    """
    _check(layer)
    if not isinstance(labels, bool):
        labels = [name_of(x, f"A label of {layer}") for x in list_of(labels, layer, "labels")]
    if layer != "relations" and not isinstance(labels, bool):
        raise InputError(
            f"{layer} can only be True or False; only relations can be annotated by label."
        )
    data: dict[Any, Any] = doc.user_data
    # DocBin and bytes store lists, but no sets.
    value = labels if isinstance(labels, bool) else sorted(set(labels))
    data[_KEY] = {**data.get(_KEY, {}), layer: value}


def annotated_labels(doc: Doc, layer: Layer) -> frozenset[str] | None:
    """The annotated labels of a layer; None for all, empty for none."""
    _check(layer)
    data: dict[Any, Any] = doc.user_data
    labels = data.get(_KEY, {}).get(layer, True)
    if isinstance(labels, bool):
        return None if labels else frozenset()
    return frozenset(labels)


def is_annotated(doc: Doc, layer: Layer) -> bool:
    """Whether any label of a layer is annotated."""
    labels = annotated_labels(doc, layer)
    return labels is None or len(labels) > 0


def spans_annotated(doc: Doc, spans_key: str | None) -> bool:
    """Whether the spans of ``Doc.ents`` or of a spans group are annotated. If so, other spans are
    not mentions."""
    if not is_annotated(doc, "ents"):
        return False
    return spans_key in doc.spans if spans_key else doc.has_annotation("ENT_IOB")


def copy_annotated(source: Doc, target: Doc) -> None:
    """Copy the status of all layers."""
    data: dict[Any, Any] = source.user_data
    if _KEY in data:
        target.user_data[_KEY] = dict(data[_KEY])  # type: ignore[index]


def all_annotated_labels(doc: Doc) -> tuple[frozenset[str] | None, ...]:
    """:func:`annotated_labels` of every layer."""
    return tuple(annotated_labels(doc, layer) for layer in get_args(Layer))


def joined_starts(doc: Doc) -> list[int]:
    """The characters at which the texts begin that a document was joined from; empty if it was not.

    Nobody annotated relations between entities of different texts: they are neither learned nor
    counted as unrelated.
    """
    data: dict[Any, Any] = doc.user_data
    return list(data.get(JOINED, ()))


def _check(layer: str) -> None:
    layers = get_args(Layer)
    if layer not in layers:
        raise InputError(f"{layer!r} is not a layer of annotation; use one of {', '.join(layers)}.")
