"""Words and given entities of documents in one pass: what the ``luke`` component serves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.util import torch2xp

from ..inputs.batch import pack, piece_rows, span_pieces
from ..model.encoder import AttentionPattern
from ..model.packing import Array, LukeInputs
from ..report import LOGGER
from .session import Session
from .token_vectors import pool

MAX_MENTION_PIECES = 30
"""Positions of an entity: its first pieces, as published (``max_mention_length``)."""
MAX_ENTITIES = 128
"""Entities of a sequence under ``full`` attention, as published (``max_entity_length``)."""


@dataclass
class GivenEntities:
    """The entities of one document. spans: (n, 2) token ranges; ids: (n,) entity ids;
    labels: (n,) coarse label ids (0: none)."""

    spans: Array
    ids: Array
    labels: Array


@dataclass
class DocStates:
    """token_vectors: (n_tokens, hidden); entity_vectors: (n_entities, hidden), in the order
    given. A token without pieces and an entity that fits no window have zeros."""

    token_vectors: Any
    entity_vectors: Any


def encode_docs(
    encoder: Model,
    docs: Sequence[Doc],
    entities: Sequence[GivenEntities],
    attention: AttentionPattern,
) -> list[DocStates]:
    """Vectors of all tokens and given entities, without gradients."""
    session = Session(encoder, docs, is_train=False)
    spans = np.concatenate([given.spans.reshape(-1, 2) for given in entities])
    ids = np.concatenate([given.ids for given in entities])
    labels = np.concatenate([given.labels for given in entities])
    counts = [len(given.ids) for given in entities]
    of_doc = np.repeat(np.arange(len(docs)), counts)
    pieces = session.align(docs, [given.spans for given in entities])
    starts, ends = span_pieces(pieces, spans, of_doc)
    windows = session.cut(docs, pieces, "document", starts, ends)
    owner = np.where(ends > starts, windows.of_spans(starts, ends), -1)
    _report_lost(owner, of_doc)
    limit = MAX_ENTITIES if attention == "full" else 0
    word_parts = []
    entity_states = torch.zeros(len(ids), session.hidden_size, device=session.device)
    with session.task():
        for low, high in session.groups(windows, owner, limit):
            if low == high:
                continue
            batch = pack(
                pieces,
                windows,
                owner,
                starts,
                ends,
                session.module.pieces,
                limit,
                all_windows=True,
                within=(low, high),
            )
            rows = batch.questions.rows
            asked = batch.questions.entities(ids[rows], labels[rows], MAX_MENTION_PIECES)
            states = session.encode(LukeInputs(batch.words, asked), attention)
            first, stop = int(windows.own_starts[low]), int(windows.own_ends[high - 1])
            own = piece_rows(batch, windows, stop)[first:]
            word_parts.append(states.words.index_select(0, session.index(own)))
            entity_states[session.index(rows)] = states.entities
        empty = entity_states.new_zeros((0, session.hidden_size))
        piece_states = torch.cat(word_parts) if word_parts else empty
        tokens = pool(
            piece_states, pieces.token_starts, pieces.token_ends, session.settings.pooling
        )
    token_vectors, entity_vectors = torch2xp(tokens), torch2xp(entity_states)
    token_bounds = pieces.token_offsets
    entity_bounds = np.concatenate([[0], np.cumsum(counts)]).astype(int)
    return [
        DocStates(
            token_vectors[token_bounds[i] : token_bounds[i + 1]],
            entity_vectors[entity_bounds[i] : entity_bounds[i + 1]],
        )
        for i in range(len(docs))
    ]


def _report_lost(owner: Array, of_doc: Array) -> None:
    lost = np.unique(of_doc[owner < 0])
    if len(lost):
        LOGGER.warning(
            "%d entities have no pieces or are longer than a window, and get zero vectors "
            "(documents of this batch, counted from 0: %s).",
            (owner < 0).sum(),
            ", ".join(map(str, lost[:5].tolist())),
        )
