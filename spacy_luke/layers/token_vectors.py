"""The encoder as a ``tok2vec`` layer: one vector a token, from words alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.util import torch2xp, xp2torch

from ..inputs.alignment import Pieces, ranges
from ..inputs.batch import pack, piece_rows
from ..model.packing import Array
from .session import Session

_NONE = np.zeros(0, dtype=np.int64)


@dataclass
class PieceStates:
    """States of all pieces of a batch of documents, special pieces left out.

    states: (n_pieces, hidden), in the order of ``pieces``.
    """

    pieces: Pieces
    states: torch.Tensor


def encode_pieces(session: Session, docs: Sequence[Doc]) -> PieceStates:
    """Word states of every piece, each from the window that answers for it."""
    pieces = session.align(docs)
    windows = session.cut(docs, pieces, "document", _NONE, _NONE)
    parts = []
    for low, high in session.groups(windows, _NONE):
        if high > low:
            batch = pack(
                pieces,
                windows,
                _NONE,
                _NONE,
                _NONE,
                session.module.pieces,
                all_windows=True,
                within=(low, high),
            )
            states = session.encode_words(batch.words).states
            parts.append(states.index_select(0, session.index(_rows(batch, windows, low, high))))
    states = torch.cat(parts) if parts else torch.zeros(0, session.hidden_size).to(session.device)
    return PieceStates(pieces, states)


def _rows(batch: Any, windows: Any, low: int, high: int) -> Array:
    start, stop = int(windows.own_starts[low]), int(windows.own_ends[high - 1])
    return piece_rows(batch, windows, stop)[start:]


def pool(states: torch.Tensor, starts: Array, ends: Array, pooling: str) -> torch.Tensor:
    """Vectors of piece ranges: (n_pieces, H) -> (n, H); zeros for an empty range."""
    lengths = ends - starts
    if pooling == "first":
        ends = starts + np.minimum(lengths, 1)
        lengths = ends - starts
    device = states.device
    rows = torch.from_numpy(ranges(starts, ends)).to(device)
    owners = torch.from_numpy(np.repeat(np.arange(len(starts)), lengths)).to(device)
    sums = states.new_zeros((len(starts), states.shape[1]))
    sums = sums.index_add(0, owners, states.index_select(0, rows))
    counts = torch.from_numpy(np.maximum(lengths, 1)).to(device)
    return sums / counts.unsqueeze(-1)


def forward(
    model: Model, docs: Sequence[Doc], is_train: bool
) -> tuple[list[Any], Callable[[list[Any]], list]]:
    """Token vectors of each document, (n_tokens, hidden); zeros for a token without pieces."""
    session = Session(model, docs, is_train)
    pooling = model.attrs.get("pooling") or session.settings.pooling
    with session.task():
        encoded = encode_pieces(session, docs)
        pieces = encoded.pieces
        vectors = pool(encoded.states, pieces.token_starts, pieces.token_ends, pooling)
    bounds = pieces.token_offsets.tolist()
    outputs = torch2xp(vectors.detach())

    def backprop(d_outputs: list[Any]) -> list:
        if session.trains and vectors.requires_grad:
            gradient = torch.cat([xp2torch(d).to(vectors.device) for d in d_outputs])
            vectors.backward(gradient.to(vectors.dtype))
        session.done()
        return []

    return [outputs[a:b] for a, b in zip(bounds, bounds[1:])], backprop
