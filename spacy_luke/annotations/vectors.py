"""``Doc._.luke`` and ``Span._.luke_vector``: vectors that are computed on first access.

Vectors and what computes them are kept outside the document, so they are not serialised with it.
The component's ``keep_vectors`` stores them in ``Doc.user_data`` instead. Copies made by
``Span.as_doc`` or ``Doc.from_docs`` have no vectors until a pipeline processes them.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakMethod

from spacy.tokens import Doc, Span

from ..errors import InputError

STORED = "luke_vectors"

DocKey = tuple[int, ...]
Compute = Callable[[Doc, list[Span]], "LukeDocData"]


@dataclass
class LukeDocData:
    """token_vectors: (n_tokens, hidden); entity_vectors: (n_ents, hidden), in the order of
    the entities present when they were computed."""

    token_vectors: Any
    entity_vectors: Any


def doc_key(doc: Doc) -> DocKey:
    """A key of everything that a document's vectors depend on: its tokens and its entities.

    A flat tuple of integers, the same in every process.
    """
    tokens = zlib.crc32(doc.to_array(["ORTH", "SPACY"]).tobytes())
    ents = ((ent.start, ent.end, ent.label, ent.kb_id) for ent in doc.ents)
    return (len(doc), tokens, *(number for ent in ents for number in ent))


class VectorSource:
    """Computes a document's vectors on first access, and again if its entities have changed.

    compute: a method of a component. A document does not keep its pipeline: after the pipeline is
    deleted, only vectors that were computed before are available.
    """

    def __init__(self, compute: Compute) -> None:
        self._method = WeakMethod(compute)
        self._key: DocKey | None = None
        self._data: LukeDocData | None = None
        self._spans: dict[tuple[int, ...], Any] = {}

    def store(self, doc: Doc, data: LukeDocData) -> None:
        self._key, self._data, self._spans = doc_key(doc), data, {}

    def data(self, doc: Doc) -> LukeDocData:
        if self._data is None or self._key != doc_key(doc):
            self.store(doc, self._compute(doc, list(doc.ents)))
        assert self._data is not None
        return self._data

    def _compute(self, doc: Doc, ents: list[Span]) -> LukeDocData:
        compute = self._method()
        if compute is None:
            raise InputError(
                "The pipeline of this document's vectors is gone, and they were not computed "
                "before. Keep the pipeline, or set eager = true for its luke component."
            )
        return compute(doc, ents)

    def span_vector(self, span: Span) -> Any:
        """The vector of a span that is not an entity: it is encoded as an additional entity."""
        self.data(span.doc)
        key = (span.start, span.end, span.label, span.kb_id)
        if key not in self._spans:
            ents = [*span.doc.ents, span]
            self._spans[key] = self._compute(span.doc, ents).entity_vectors[-1]
        return self._spans[key]


_SOURCES: WeakKeyDictionary[Doc, VectorSource] = WeakKeyDictionary()


def attach(doc: Doc, source: VectorSource) -> None:
    """Set the source of a document's vectors."""
    _SOURCES[doc] = source


def get_luke(doc: Doc) -> LukeDocData | None:
    """The vectors of a document; None if no ``luke`` component has processed it in this process and
    it has no stored vectors."""
    source = _SOURCES.get(doc)
    if source is not None:
        return source.data(doc)
    stored = doc.user_data.get(STORED)
    if stored is not None and tuple(stored["key"]) == doc_key(doc):
        return LukeDocData(stored["token_vectors"], stored["entity_vectors"])
    return None


def vectors_of(doc: Doc) -> LukeDocData:
    """The vectors of a document. Raises InputError if it has none."""
    data = get_luke(doc)
    if data is None and STORED in doc.user_data:
        raise InputError(
            "The stored vectors are those of other entities: a component behind luke has changed "
            "them. Process the document again, or add a second luke component, with keep_vectors, "
            "at the end of the pipeline."
        )
    if data is None:
        raise InputError(
            "No luke component has processed this document in this process; vectors are saved "
            "with a document only if the component's keep_vectors is true."
        )
    return data


def keep(doc: Doc, data: LukeDocData, to_numpy: Callable[[Any], Any]) -> None:
    """Store vectors in ``user_data``, which ``DocBin`` and pickling save."""
    doc.user_data[STORED] = {
        "key": list(doc_key(doc)),
        "token_vectors": to_numpy(data.token_vectors),
        "entity_vectors": to_numpy(data.entity_vectors),
    }


def get_luke_vector(span: Span) -> Any:
    """The vector of a span: an entity's, or that of another span as an additional entity. Raises
    InputError if the document has no vectors."""
    doc = span.doc
    data = vectors_of(doc)
    for i, ent in enumerate(doc.ents):
        same_range = (ent.start, ent.end) == (span.start, span.end)
        if same_range and (span.label, span.kb_id) in ((ent.label, ent.kb_id), (0, 0)):
            return data.entity_vectors[i]
    source = _SOURCES.get(doc)
    if source is None:
        raise InputError(
            "Only the vectors of this document's entities were stored (keep_vectors). To get the "
            "vector of another span, process the document with a luke component."
        )
    return source.span_vector(span)
