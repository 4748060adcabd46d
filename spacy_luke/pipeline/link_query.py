"""Mentions with their candidates, and what an encoder says of these entities."""

from dataclasses import dataclass, replace

import numpy as np
from spacy.tokens import Span
from thinc.api import Model

from ..kb.knowledge_base import MappedKB
from ..layers.candidate_scorer import CandidateQuery, only_rows, uses_rows
from ..layers.task_layer import encoder_below, encoder_of
from .entity_vectors import EntityVectors
from .kb_rows import kb_rows

Array = np.ndarray


@dataclass(frozen=True)
class LinkQuery(CandidateQuery):
    """by_doc: the mentions of each document that are linked. rows: (n_spans, K) of candidates in
    the knowledge base, or -1. kb: it may be another one than the component has now."""

    by_doc: list[list[Span]]
    rows: Array
    kb: MappedKB


def with_entities(
    query: LinkQuery, model: Model, vectors: EntityVectors, teaches: Array | None = None
) -> LinkQuery:
    """The query with vectors of its candidates (or in an update that learns these, their texts),
    and their rows in the encoder's table, as far as the model uses them.

    teaches: (n_spans,) in an update, whether it learns from a mention. The candidates of others are
        left out.
    """
    learning, exists, kb = teaches is not None, query.rows >= 0, query.kb
    if teaches is not None:
        exists &= teaches[:, None]
    unique, inverse = np.unique(query.rows[exists], return_inverse=True)
    entities = np.full(query.rows.shape, -1, dtype=np.int64)
    entities[exists] = inverse
    # One at least, if there are any: tables without rows cannot be indexed.
    rows = (unique if len(unique) else query.rows[query.rows >= 0][:1]).tolist()
    with_text = vectors.text == "description"
    described = [with_text and bool(kb.tables.descriptions[row]) for row in rows]
    query = replace(query, entities=entities, described=np.asarray(described, dtype=bool))
    if not only_rows(model):
        encoder = encoder_below(model)
        if learning and vectors.are_learned(encoder):
            query = replace(query, texts=vectors.texts(kb, encoder, rows))
        else:
            query = replace(query, vectors=vectors.of(kb, encoder, rows, learning))
    if uses_rows(model):
        known = kb_rows(kb, encoder_of(model).entities, rows, kb.vocab.lang)
        query = replace(query, known_rows=known)
    return query
