"""Scores of candidates by the rows of an encoder's entity table, with its masked-entity head."""

from typing import NamedTuple

import torch
from torch import nn

from .heads import MaskedTransform

IMPOSSIBLE = -1e9
"""The logit of a class that cannot be predicted. It is finite, because a mention without candidates
has no other class."""


class EntityRows(NamedTuple):
    """m entities in an encoder's table. vectors: (m, size) their rows; biases: (m,) those of the
    masked-entity head; known: (m,) whether an entity has a row (else both are zero)."""

    vectors: torch.Tensor
    biases: torch.Tensor
    known: torch.Tensor


class RowLogits(nn.Module):
    """The logits of candidates by the masked-entity head (Yamada et al. 2020, section 3.2): of the
    [MASK] state, transformed, with the row of each candidate, plus its bias.

    They are given relative to the middle between the mean and the best of the mention's candidates
    with rows, and a candidate without a row gets 0. For it is not known whether it fits the text
    like the right entity or like a wrong one: the middle of the two is the threshold that decides
    best between it and a candidate with a row. (The mean alone, the mean probability and the best
    were compared on random logits, priors and missing rows: the middle is up to 6 points of
    accuracy better than the mean, and at most 1 worse.) A mention whose candidates have no rows, or
    only one, is scored by the other terms alone. The softmax over candidates with rows is that of
    the head.

    The transform is trained. Rows and biases are the encoder's; biases are not trained.
    """

    def __init__(self, hidden: int, size: int, eps: float):
        super().__init__()
        self.transform = MaskedTransform(hidden, size, eps)

    def forward(
        self, masks: torch.Tensor, table: EntityRows, entities: torch.Tensor
    ) -> torch.Tensor:
        """masks: (n, H). entities: (n, K) rows of ``table``, or -1 -> (n, K)."""
        features, rows = self.transform(masks.float()), entities.clamp(min=0)
        products = torch.einsum("ns,nks->nk", features, table.vectors[rows])
        known = table.known[rows] & (entities >= 0)
        logits = products + table.biases[rows]
        if not logits.shape[1]:
            return logits
        n_known = known.sum(1, keepdim=True).clamp(min=1)
        mean = logits.masked_fill(~known, 0.0).sum(1, keepdim=True) / n_known
        best = logits.masked_fill(~known, -torch.inf).amax(1, keepdim=True)
        return (logits - (mean + best) / 2).masked_fill(~known, 0.0)


class RowHead(nn.Module):
    """Scores candidates by their rows alone, as published disambiguation models do (Yamada et al.
    2022): "none of the candidates" is impossible."""

    def __init__(self, rows: RowLogits):
        super().__init__()
        self.rows = rows

    def forward(
        self, masks: torch.Tensor, table: EntityRows, entities: torch.Tensor
    ) -> torch.Tensor:
        """Logits (n, 1 + K): of "none of the candidates", and of each candidate (-inf: no
        candidate). Arguments as of :class:`RowLogits`."""
        logits = self.rows(masks, table, entities).masked_fill(entities < 0, -torch.inf)
        return torch.cat([logits.new_full((len(logits), 1), IMPOSSIBLE), logits], 1)
