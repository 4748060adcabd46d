"""``Doc._.luke`` and ``Span._.luke_vector``: vectors made on first access.

What computes them hangs on the document's ``user_hooks``, which spaCy does not serialise:
vectors are transient unless the component's ``keep_vectors`` stores them in ``user_data``.
Copies made by ``Span.as_doc`` or ``Doc.from_docs`` have none until a pipeline sees them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spacy.tokens import Doc, Span

from ..errors import InputError

HOOK = "luke"
STORED = "luke_vectors"

EntityKey = tuple[tuple[int, int, int, int], ...]
Compute = Callable[[Doc, list[Span]], "LukeDocData"]


@dataclass
class LukeDocData:
    """token_vectors: (n_tokens, hidden); entity_vectors: (n_ents, hidden), in the order of
    the entities present when they were computed."""

    token_vectors: Any
    entity_vectors: Any


def entity_key(doc: Doc) -> EntityKey:
    """What the vectors of a document depend on, beside its words."""
    return tuple((ent.start, ent.end, ent.label, ent.kb_id) for ent in doc.ents)


class DocHook:
    """Computes a document's vectors when asked, and again when its entities changed."""

    def __init__(self, compute: Compute | None) -> None:
        self._compute = compute
        self._key: EntityKey | None = None
        self._data: LukeDocData | None = None
        self._spans: dict[tuple[int, int], Any] = {}

    def store(self, doc: Doc, data: LukeDocData) -> None:
        self._key, self._data, self._spans = entity_key(doc), data, {}

    def data(self, doc: Doc) -> LukeDocData:
        if self._data is None or self._key != entity_key(doc):
            if self._compute is None:
                raise InputError(
                    "This document's vectors stayed behind where it was processed: set "
                    "keep_vectors = true in the luke component, or process it here."
                )
            self.store(doc, self._compute(doc, list(doc.ents)))
        assert self._data is not None
        return self._data

    def span_vector(self, span: Span) -> Any:
        """The entity vector of any span: an entity's own, or the span's as one entity more."""
        doc = span.doc
        data = self.data(doc)
        for i, ent in enumerate(doc.ents):
            if (ent.start, ent.end) == (span.start, span.end):
                return data.entity_vectors[i]
        key = (span.start, span.end)
        if key not in self._spans:
            if self._compute is None:
                raise InputError("This document is detached from its luke component.")
            self._spans[key] = self._compute(doc, [*doc.ents, span]).entity_vectors[-1]
        return self._spans[key]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled documents leave the encoder (and the vectors) behind."""
        return DocHook, (None,)


def install_extensions() -> None:
    """Add the extensions; called when a component that fills them is made."""
    if not Doc.has_extension("luke"):
        Doc.set_extension("luke", getter=_doc_data)
    if not Span.has_extension("luke_vector"):
        Span.set_extension("luke_vector", getter=_span_vector)


def _doc_data(doc: Doc) -> LukeDocData | None:
    """None where no luke component has seen the document."""
    hook = doc.user_hooks.get(HOOK)
    if isinstance(hook, DocHook) and hook._compute is not None:
        return hook.data(doc)
    stored = doc.user_data.get(STORED)
    if stored is not None and stored["entities"] == [list(key) for key in entity_key(doc)]:
        return LukeDocData(stored["token_vectors"], stored["entity_vectors"])
    return hook.data(doc) if isinstance(hook, DocHook) else None


def keep(doc: Doc, data: LukeDocData, to_numpy: Callable[[Any], Any]) -> None:
    """Store vectors in ``user_data``, where ``DocBin`` and pickling keep them."""
    doc.user_data[STORED] = {
        "entities": [list(key) for key in entity_key(doc)],
        "token_vectors": to_numpy(data.token_vectors),
        "entity_vectors": to_numpy(data.entity_vectors),
    }


def _span_vector(span: Span) -> Any:
    hook = span.doc.user_hooks.get(HOOK)
    if isinstance(hook, DocHook) and hook._compute is not None:
        return hook.span_vector(span)
    data = _doc_data(span.doc)
    if data is not None:
        for i, ent in enumerate(span.doc.ents):
            if (ent.start, ent.end) == (span.start, span.end):
                return data.entity_vectors[i]
    raise InputError(
        "Span._.luke_vector: no luke component has processed this document, or its vectors were "
        "not kept."
    )
