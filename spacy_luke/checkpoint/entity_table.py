"""Give a checkpoint another entity vocabulary: prune, extend, or begin anew."""

from dataclasses import replace

import torch

from ..vocab.entities import EntityVocab
from .names import ENTITY_HEAD, ENTITY_PREDICTIONS
from .read import Checkpoint

_TABLE = "entity_embeddings.entities.weight"
_DENSE = "entity_embeddings.dense.weight"
_BIAS = ENTITY_HEAD["bias"]


def with_entities(
    checkpoint: Checkpoint, entities: EntityVocab, size: int = 0, seed: int = 0, keep: bool = True
) -> Checkpoint:
    """The checkpoint with a table for other entities.

    An entity that both vocabularies name keeps its row (and its bias in the masked-entity head)
    exactly; others are drawn from normal(0, ``initializer_range``), their bias is zero.

    size: width of the table; 0: as it is. Another width starts all rows, and the projection to the
    hidden size, anew. keep: False re-initialises every row but those of the special entities.
    """
    config = checkpoint.config
    width = size or config.entity_emb_size
    n_rows = len(entities)
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn((n_rows, width), generator=generator) * config.initializer_range
    weights = dict(checkpoint.weights)
    # Older files also hold the decoder, a copy of the table.
    copies = (f"{ENTITY_PREDICTIONS}decoder.",)
    heads = {name: x for name, x in checkpoint.heads.items() if not name.startswith(copies)}
    if width == config.entity_emb_size:
        ours, theirs = _shared_rows(entities, checkpoint.entities, keep)
        table[ours] = weights[_TABLE][theirs]
        if _BIAS in heads:
            bias = heads[_BIAS].new_zeros(n_rows)
            bias[ours] = heads[_BIAS][theirs]
            heads[_BIAS] = bias
    else:
        heads = {name: x for name, x in heads.items() if not name.startswith(ENTITY_PREDICTIONS)}
        weights.pop(_DENSE, None)
        if width != config.hidden_size:
            dense = torch.randn((config.hidden_size, width), generator=generator)
            weights[_DENSE] = dense * config.initializer_range
    if entities.pad_id is not None:
        table[entities.pad_id] = 0.0
    weights[_TABLE] = table
    return replace(
        checkpoint,
        config=replace(config, entity_vocab_size=n_rows, entity_emb_size=width),
        weights=weights,
        heads=heads,
        entities=entities,
    )


def _shared_rows(
    new: EntityVocab, old: EntityVocab, keep: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of the new table and, for each, the row of the old one that it takes."""
    rows = {
        index: old.names[name]
        for name, index in new.names.items()
        if name in old.names and (keep or (name.startswith("[") and name.endswith("]")))
    }
    ours = torch.tensor(list(rows), dtype=torch.int64)
    return ours, torch.tensor(list(rows.values()), dtype=torch.int64)
