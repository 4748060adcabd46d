"""Vectors of words and given entities of documents in one pass, for the ``luke`` component."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.util import torch2xp

from ..model.network import AttentionPattern
from ..model.packing import Array, LukeInputs
from ..report import LOGGER
from .encoder import module_of
from .encoder_run import EncoderRun, place
from .listener import encoder_node
from .token_vectors import encoder_pooling, pool

MAX_MENTION_PIECES = 30
"""Number of an entity's first pieces that its positions use, as published
(``max_mention_length``)."""
MAX_ENTITIES = 128
"""Most entities of a sequence with ``full`` attention, as published (``max_entity_length``)."""


@dataclass
class GivenEntities:
    """The entities of one document. spans: (n, 2) token ranges; ids: (n,) entity ids;
    labels: (n,) coarse label ids (0: no label)."""

    spans: Array
    ids: Array
    labels: Array


@dataclass
class DocStates:
    """token_vectors: (n_tokens, hidden); entity_vectors: (n_entities, hidden), in the order
    given. The vector of a token without pieces, or of an entity that fits no window, is zero."""

    token_vectors: Any
    entity_vectors: Any


def encode_docs(
    encoder: Model,
    docs: Sequence[Doc],
    entities: Sequence[GivenEntities],
    attention: AttentionPattern,
) -> list[DocStates]:
    """Vectors of all tokens and given entities of each document, without gradients."""
    spans = np.concatenate([given.spans.reshape(-1, 2) for given in entities])
    ids = np.concatenate([given.ids for given in entities])
    labels = np.concatenate([given.labels for given in entities])
    counts = [len(given.ids) for given in entities]
    placed = place(encoder, docs, spans, np.repeat(np.arange(len(docs)), counts))
    _warn_of_unfit(encoder, placed.of_doc[~placed.fits])
    with EncoderRun(encoder, docs, is_train=False) as run:
        vectors = run.zeros(len(ids), run.encoder.hidden_size)
        words = [vectors[:0]]
        limit = MAX_ENTITIES if attention == "full" else 0
        for batch in placed.batches(run.max_rows, limit):
            rows = batch.rows
            given = batch.entities(ids[rows], labels[rows], MAX_MENTION_PIECES)
            states = run.encode(LukeInputs(batch, given), attention)
            words.append(states.words.index_select(0, run.index(placed.own_rows(batch))))
            vectors[run.index(rows)] = states.entities
        tokens = pool(torch.cat(words), placed.pieces, encoder_pooling(encoder))
    token_vectors, entity_vectors = torch2xp(tokens), torch2xp(vectors)
    token_bounds = placed.pieces.token_offsets
    entity_bounds = np.concatenate([[0], np.cumsum(counts)]).astype(int)
    return [
        DocStates(  # copies: a document that is kept would keep the vectors of its whole batch
            token_vectors[token_bounds[i] : token_bounds[i + 1]].copy(),
            entity_vectors[entity_bounds[i] : entity_bounds[i + 1]].copy(),
        )
        for i in range(len(docs))
    ]


def _warn_of_unfit(encoder: Model, of_doc: Array) -> None:
    """of_doc: (n_unfit,) the document of each entity that does not fit a window."""
    if len(of_doc) and module_of(encoder_node(encoder)).reports_first("unfit entities"):
        LOGGER.warning(
            "%d entities have no pieces or are longer than a window: their vectors are zero "
            "(documents of this batch, counted from 0: %s). This warning is logged once per "
            "encoder.",
            len(of_doc),
            ", ".join(map(str, np.unique(of_doc)[:5].tolist())),
        )
