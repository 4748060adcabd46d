"""Masked words and masked entities (Yamada et al. 2020, section 3.3)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..checkpoint.names import ENTITY_HEAD, WORD_HEAD, Weights
from ..checkpoint.read import Checkpoint, load_into
from ..model.config import LukeConfig
from ..model.encoder import AttentionPattern, LukeModel
from ..model.heads import MaskedHead
from ..model.packing import Array, Entities, LukeInputs, Words

TOP = 10
HEADS = {"word_head": WORD_HEAD, "entity_head": ENTITY_HEAD}
"""Ours to published names, by module."""


@dataclass
class MaskedBatch:
    """Sequences with masked words and entities.

    words: rows of the packed pieces that are to be predicted; word_targets: their pieces. entities,
    entity_targets: the same of the packed entities.
    """

    inputs: LukeInputs
    words: Array
    word_targets: Array
    entities: Array
    entity_targets: Array


class Outcome(NamedTuple):
    """Sums over a batch: losses (scalars with gradients), how many were right at the top, and,
    outside training, how many entities were among the first TOP."""

    word_loss: torch.Tensor
    entity_loss: torch.Tensor
    words_right: torch.Tensor
    entities_right: torch.Tensor
    entities_near: torch.Tensor


class PretrainingModel(nn.Module):
    """A LUKE with the two heads of pretraining; their decoders are tied to its tables."""

    def __init__(self, config: LukeConfig, attention: AttentionPattern = "full"):
        super().__init__()
        self.luke = LukeModel(config)
        hidden, eps = config.hidden_size, config.layer_norm_eps
        self.word_head = MaskedHead(hidden, hidden, config.vocab_size, eps)
        self.entity_head = MaskedHead(hidden, config.entity_emb_size, config.entity_vocab_size, eps)
        self.attention: AttentionPattern = attention

    def forward(self, batch: MaskedBatch) -> Outcome:
        states = self.luke(batch.inputs, self.attention)
        word_table = self.luke.word_embeddings.words.weight
        entity_table = self._entity_table
        word_loss, words_right, _ = self._predict(
            self.word_head, states.words, word_table, batch.words, batch.word_targets
        )
        entity_loss, entities_right, entities_near = self._predict(
            self.entity_head, states.entities, entity_table, batch.entities, batch.entity_targets
        )
        return Outcome(word_loss, entity_loss, words_right, entities_right, entities_near)

    @property
    def _entity_table(self) -> torch.Tensor:
        table = self.luke.entity_embeddings.table
        assert isinstance(table, torch.Tensor)  # pretraining trains it
        return table

    def _predict(
        self,
        head: MaskedHead,
        states: torch.Tensor,
        table: torch.Tensor,
        rows: Array,
        targets: Array,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        none = torch.zeros((), device=states.device)
        if not len(rows):  # zero, but part of the graph: every process has every gradient
            nothing = states.sum() * 0.0 + sum(p.sum() * 0.0 for p in head.parameters())
            return nothing, none, none
        device = states.device
        picked = states.index_select(0, torch.from_numpy(rows).to(device))
        wanted = torch.from_numpy(targets).to(device)
        logits = head(picked, table).float()
        loss = F.cross_entropy(logits, wanted, reduction="sum")
        near = none
        if not self.training:
            best = logits.topk(min(TOP, logits.shape[1]), -1).indices
            near = (best == wanted[:, None]).any(-1).sum()
        return loss, (logits.argmax(-1) == wanted).sum(), near

    @classmethod
    def start(
        cls, checkpoint: Checkpoint, attention: AttentionPattern, seed: int
    ) -> "PretrainingModel":
        """From a checkpoint; a head that it does not have starts fresh: the transforms from
        normal(0, ``initializer_range``), their LayerNorm and biases from one and zero."""
        torch.manual_seed(seed)
        model = cls(checkpoint.config, attention)
        for module, names in HEADS.items():
            head: MaskedHead = getattr(model, module)
            head.dense.weight.data.normal_(0.0, checkpoint.config.initializer_range)
            head.dense.bias.data.zero_()
            found = {ours: checkpoint.others.get(theirs) for ours, theirs in names.items()}
            if all(x is not None for x in found.values()):
                head.load_state_dict(found)
        load_into(model.luke, checkpoint)
        return model

    def entity_parameters(self) -> list[str]:
        """Names of what belongs to entities alone: what the first of two stages trains."""
        return [
            name
            for name, _ in self.named_parameters()
            if name.startswith(("luke.entity_embeddings.", "entity_head."))
        ]


def published(weights: Weights) -> tuple[Weights, Weights]:
    """The network's weights, and both heads under their published names, of a model's."""
    network = {k.removeprefix("luke."): v for k, v in weights.items() if k.startswith("luke.")}
    heads = {
        theirs: weights[f"{module}.{ours}"]
        for module, names in HEADS.items()
        for ours, theirs in names.items()
    }
    return network, heads


def pack_sequences(
    pieces: list[Array],
    ids: list[Array],
    starts: list[Array],
    ends: list[Array],
    cls_id: int,
    sep_id: int,
) -> LukeInputs:
    """Sequences without special pieces, and their entities, to a packed batch with them."""
    words = [np.concatenate([[cls_id], x, [sep_id]]) for x in pieces]
    return LukeInputs(
        Words(np.concatenate(words).astype(np.int64), _offsets(words)),
        Entities(
            np.concatenate(ids).astype(np.int64),
            np.concatenate(starts).astype(np.int64) + 1,
            np.concatenate(ends).astype(np.int64) + 1,
            _offsets(ids),
        ),
    )


def _offsets(parts: list[Array]) -> Array:
    return np.concatenate([[0], np.cumsum([len(x) for x in parts])]).astype(np.int64)
