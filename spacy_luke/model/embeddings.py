"""Word and entity embeddings (Yamada et al. 2020, section 3.1)."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .config import LukeConfig

N_WORD_SHAPES = 6
"""lower, Title, UPPER, mixed, without cased letters, special piece: see ``inputs/shapes.py``."""


class WordEmbeddings(nn.Module):
    """The sum of piece, position, type and (optional) word-shape vectors; LayerNorm; dropout."""

    def __init__(self, config: LukeConfig):
        super().__init__()
        hidden = config.hidden_size
        self.position_offset = config.position_offset
        self.words = nn.Embedding(config.vocab_size, hidden)
        self.positions = nn.Embedding(config.max_position_embeddings, hidden)
        self.types = nn.Embedding(config.type_vocab_size, hidden)
        self.shapes = nn.Embedding(N_WORD_SHAPES, hidden) if config.word_shapes else None
        self.shape_dropout = 0.0
        self.norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        piece_ids: torch.Tensor,
        positions: torch.Tensor,
        shapes: torch.Tensor | None,
        types: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """piece_ids, positions (in the sequence), shapes, types: (n_pieces,) -> (n_pieces,
        hidden)."""
        states = self.words(piece_ids) + self.positions(positions + self.position_offset)
        if types is None or self.types.num_embeddings == 1:
            states = states + self.types.weight[0]
        else:
            states = states + self.types(types)
        if self.shapes is not None and shapes is not None:
            states = states + self._known_shapes(shapes)
        return self.dropout(self.norm(states))

    def _known_shapes(self, shapes: torch.Tensor) -> torch.Tensor:
        """Shape vectors; in training zeros for the share ``shape_dropout`` of the pieces, so that
        the words have to say enough. The others are not scaled up: a shape is a sign, not a size.
        """
        assert self.shapes is not None
        vectors = self.shapes(shapes)
        if not self.training or not self.shape_dropout:
            return vectors
        known = torch.rand(len(shapes), device=shapes.device) >= self.shape_dropout
        return vectors * known[:, None]


class StoredRows(nn.Module):
    """An embedding table that is not trained; only the rows that are used are read.

    rows: (n, size) float32 or float16, which may be mapped from a file. They stay in CPU memory
    when the network moves to another device, and copies of the module share them.
    """

    def __init__(self, rows: np.ndarray):
        super().__init__()
        self.rows = rows

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(n,) -> (n, size), float32."""
        rows = self.rows[ids.cpu().numpy()].astype(np.float32, copy=False)
        return torch.from_numpy(rows).to(ids.device)

    def __deepcopy__(self, memo: Any) -> "StoredRows":
        return StoredRows(self.rows)


class EntityEmbeddings(nn.Module):
    """The sum of entity, mean position, type and (optional) label vectors; LayerNorm; dropout.

    The entity table has ``entity_emb_size`` columns, and its rows are projected to the hidden size
    without a bias if the sizes differ. Entity positions start at 0 for the first special piece,
    also in encoders of kind ``roberta``. Published disambiguation models have a
    ``mask_embedding``, which is the input of the entity [MASK] in place of its row.
    """

    def __init__(self, config: LukeConfig):
        super().__init__()
        hidden, size = config.hidden_size, config.entity_emb_size
        self.entities: nn.Embedding | StoredRows = nn.Embedding(config.entity_vocab_size, size)
        self.mask_row = -1  # not an id
        self.mask_embedding: nn.Parameter | None = None
        if config.mask_row is not None:
            self.mask_row = config.mask_row
            self.mask_embedding = nn.Parameter(torch.zeros(size))
        self.dense = nn.Linear(size, hidden, bias=False) if size != hidden else None
        self.positions = nn.Embedding(config.max_position_embeddings, hidden)
        self.types = nn.Embedding(config.type_vocab_size, hidden)
        n_labels = len(config.entity_labels)
        self.labels = nn.Embedding(n_labels + 1, hidden, padding_idx=0) if n_labels else None
        self.norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        ids: torch.Tensor,
        starts: torch.Tensor,
        ends: torch.Tensor,
        labels: torch.Tensor | None,
    ) -> torch.Tensor:
        """ids, starts, ends, labels: (n_entities,) -> (n_entities, hidden)."""
        states = self.entities(ids)
        if self.mask_embedding is not None:
            is_mask = (ids == self.mask_row).unsqueeze(-1)
            states = torch.where(is_mask, self.mask_embedding, states)
        if self.dense is not None:
            states = self.dense(states)
        states = states + self.mean_positions(starts, ends) + self.types.weight[0]
        if self.labels is not None and labels is not None:
            states = states + self.labels(labels)
        return self.dropout(self.norm(states))

    @property
    def table(self) -> np.ndarray | torch.Tensor:
        """All rows, (n, size): a tensor if they are trained, an array if they are stored."""
        rows = self.entities
        return rows.rows if isinstance(rows, StoredRows) else rows.weight

    def set_table(self, table: np.ndarray | torch.Tensor) -> None:
        """Replace all rows: an array is stored, a tensor is trained."""
        if isinstance(table, np.ndarray):
            self.entities = StoredRows(table)
        else:
            self.entities = nn.Embedding.from_pretrained(table.detach(), freeze=False)

    def mean_positions(self, starts: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """The mean position vector of each range [start, end); zeros for an empty range.

        Differences of prefix sums make the cost independent of the ranges' lengths. They are
        computed in float64, so that they are exact in float32.
        """
        table = self.positions.weight
        sums = F.pad(table.double().cumsum(0), (0, 0, 1, 0))
        lengths = (ends - starts).clamp(min=1).unsqueeze(-1)
        return ((sums[ends] - sums[starts]) / lengths).to(table.dtype)
