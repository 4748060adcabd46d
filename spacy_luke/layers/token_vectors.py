"""The encoder as a ``tok2vec`` layer: one vector per token, computed without entities."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.util import torch2xp

from ..inputs.alignment import Pieces, ranges
from ..model.packing import Array
from .encoder_run import EncoderRun, in_parts, place
from .listener import encoder_node, is_listener

_NO_SPANS: Array = np.zeros((0, 2), dtype=np.int64)
_NO_DOCS: Array = np.zeros(0, dtype=np.int64)


def encode_pieces(
    run: EncoderRun, docs: Sequence[Doc], max_rows: int | None = None
) -> tuple[Pieces, torch.Tensor]:
    """The pieces of documents, and their states (n_pieces, hidden), each from the window that the
    piece belongs to; without special pieces.

    max_rows: most rows (:meth:`.PlacedSpans.batches`) of a network call; by default those of the
        run. See :func:`.in_parts` for several calls in training."""
    placed = place(run.node, docs, _NO_SPANS, _NO_DOCS)
    batches = list(placed.batches(max_rows or run.max_rows))
    if not batches:
        return placed.pieces, run.zeros(0, run.encoder.hidden_size)

    def encode(low: int, high: int) -> torch.Tensor:
        batch = batches[low]
        states = run.encode_words(batch).states
        return states.index_select(0, run.index(placed.own_rows(batch)))

    return placed.pieces, in_parts(run, encode, [(i, i + 1) for i in range(len(batches))])


def encoder_pooling(node: Model) -> str:
    """The rule by which pieces become tokens: that of a listener, or of an encoder."""
    if is_listener(node):
        return str(node.attrs["link"].pooling)
    return str(encoder_node(node).attrs["settings"].pooling)


def pool(states: torch.Tensor, pieces: Pieces, pooling: str) -> torch.Tensor:
    """Piece states (n_pieces, H) -> token vectors (n_tokens, H); zeros for a token without pieces.

    pooling: ``mean`` of a token's pieces, or the ``first``.
    """
    starts, ends = pieces.token_starts, pieces.token_ends
    lengths = ends - starts
    if pooling == "first":
        ends = starts + np.minimum(lengths, 1)
        lengths = ends - starts
    device = states.device
    rows = torch.from_numpy(ranges(starts, ends)).to(device)
    tokens = torch.from_numpy(np.repeat(np.arange(len(starts)), lengths)).to(device)
    sums = states.new_zeros((len(starts), states.shape[1]))
    sums = sums.index_add(0, tokens, states.index_select(0, rows))
    counts = torch.from_numpy(np.maximum(lengths, 1)).to(device)
    return sums / counts.unsqueeze(-1)


def forward(
    model: Model, docs: Sequence[Doc], is_train: bool
) -> tuple[list[Any], Callable[[list[Any]], list]]:
    """Token vectors of each document, (n_tokens, hidden); zeros for a token without pieces."""
    with EncoderRun(model, docs, is_train) as run:
        pieces, states = encode_pieces(run, docs)
        vectors = pool(states, pieces, encoder_pooling(model))
    bounds = pieces.token_offsets.tolist()

    def backprop(d_outputs: list[Any]) -> list:
        run.backprop([vectors], [model.ops.flatten(d_outputs)])
        return []

    outputs = torch2xp(vectors.detach())
    return [outputs[a:b] for a, b in zip(bounds, bounds[1:])], backprop
