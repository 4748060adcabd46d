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
    query: LinkQuery, model: Model, vectors: EntityVectors, learning: bool
) -> LinkQuery:
    """The query with vectors of its candidates, and their rows in the encoder's table, as far as
    the model uses them.

    learning: whether this is an update.
    """
    exists, kb = query.rows >= 0, query.kb
    unique, inverse = np.unique(query.rows[exists], return_inverse=True)
    entities = np.full(query.rows.shape, -1, dtype=np.int64)
    entities[exists] = inverse
    rows = unique.tolist()
    with_text = vectors.text == "description"
    described = [with_text and bool(kb.tables.descriptions[row]) for row in rows]
    query = replace(query, entities=entities, described=np.asarray(described, dtype=bool))
    if not only_rows(model):
        made = vectors.of(kb, encoder_below(model), rows, learning)
        query = replace(query, vectors=made)
    if uses_rows(model):
        known = kb_rows(kb, encoder_of(model).entities, rows, kb.vocab.lang)
        query = replace(query, known_rows=known)
    return query
