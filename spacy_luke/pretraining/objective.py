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
from ..model.heads import MaskedHead
from ..model.network import AttentionPattern, LukeModel
from ..model.packing import Array, Entities, LukeInputs, Words

TOP = 10
HEADS = {"word_head": WORD_HEAD, "entity_head": ENTITY_HEAD}
"""Module -> our parameter names -> published names."""


@dataclass
class MaskedBatch:
    """Sequences with masked words and entities.

    words: packed rows of the masked pieces. word_targets: their piece ids. entities,
    entity_targets: the same for entities.
    """

    inputs: LukeInputs
    words: Array
    word_targets: Array
    entities: Array
    entity_targets: Array


class Outcome(NamedTuple):
    """Sums over a batch: losses (scalars with gradients), the number of correct predictions and, in
    evaluation, the number of entities among the first TOP predictions."""

    word_loss: torch.Tensor
    entity_loss: torch.Tensor
    words_correct: torch.Tensor
    entities_correct: torch.Tensor
    entities_in_top: torch.Tensor


class PretrainingModel(nn.Module):
    """A LUKE with the two heads of pretraining. Their decoders are tied to its embedding tables."""

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
        word_loss, words_correct, _ = self._predict(
            self.word_head, states.words, word_table, batch.words, batch.word_targets
        )
        entity_loss, entities_correct, entities_in_top = self._predict(
            self.entity_head, states.entities, entity_table, batch.entities, batch.entity_targets
        )
        return Outcome(word_loss, entity_loss, words_correct, entities_correct, entities_in_top)

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
        """Loss, number of correct predictions, and number of targets among the first TOP."""
        zero = torch.zeros((), device=states.device)
        if not len(rows):  # part of the graph, because DDP needs a gradient for each parameter
            zero_loss = states.sum() * 0.0 + sum(p.sum() * 0.0 for p in head.parameters())
            return zero_loss, zero, zero
        device = states.device
        selected = states.index_select(0, torch.from_numpy(rows).to(device))
        target_ids = torch.from_numpy(targets).to(device)
        logits = head(selected, table).float()  # (n_rows, n_classes)
        loss = F.cross_entropy(logits, target_ids, reduction="sum")
        in_top = zero
        if not self.training:
            best = logits.topk(min(TOP, logits.shape[1]), -1).indices
            in_top = (best == target_ids[:, None]).any(-1).sum()
        return loss, (logits.argmax(-1) == target_ids).sum(), in_top

    @classmethod
    def start(
        cls, checkpoint: Checkpoint, attention: AttentionPattern, seed: int
    ) -> "PretrainingModel":
        """From a checkpoint. A head that it lacks is initialised: the transform from
        normal(0, ``initializer_range``), LayerNorm with one and zero, biases with zero."""
        torch.manual_seed(seed)
        model = cls(checkpoint.config, attention)
        for module, names in HEADS.items():
            head: MaskedHead = getattr(model, module)
            head.dense.weight.data.normal_(0.0, checkpoint.config.initializer_range)
            head.dense.bias.data.zero_()
            tensors = {ours: checkpoint.others.get(theirs) for ours, theirs in names.items()}
            if all(x is not None for x in tensors.values()):
                head.load_state_dict(tensors)
        load_into(model.luke, checkpoint)
        return model

    def entity_parameters(self) -> list[str]:
        """Names of the entity parameters, which the first phase trains."""
        return [
            name
            for name, _ in self.named_parameters()
            if name.startswith(("luke.entity_embeddings.", "entity_head."))
        ]


def published(weights: Weights) -> tuple[Weights, Weights]:
    """Split a model's weights: the network's, and both heads' under their published names."""
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
    """Pack sequences and their entities into a batch, and add [CLS] and [SEP]."""
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
