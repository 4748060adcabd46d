"""Replace the entity vocabulary of a checkpoint: prune, extend or re-initialise it."""

from dataclasses import replace

import torch

from ..errors import CheckpointError
from ..report import LOGGER
from ..vocab.editing import shared_rows, special
from ..vocab.entity_vocab import EntityVocab
from .names import ENTITY_HEAD, ENTITY_PREDICTIONS, ENTITY_TABLE, MASK_EMBEDDING
from .read import Checkpoint

_DENSE = "entity_embeddings.dense.weight"
_BIAS = ENTITY_HEAD["bias"]


def with_entities(
    checkpoint: Checkpoint,
    entities: EntityVocab,
    size: int = 0,
    seed: int = 0,
    keep: bool = True,
    fallback: Checkpoint | None = None,
    language: str | None = None,
) -> Checkpoint:
    """The checkpoint with another entity table.

    An entity in both vocabularies keeps its row, and its bias in the masked-entity head, exactly.
    Other entities get the row and bias of ``fallback``, if it contains them, else a row drawn from
    normal(0, ``initializer_range``) and a bias of zero.

    size: width of the table; 0 keeps it. Another width re-initialises all rows and the projection
        to the hidden size; a mask embedding is left out.
    keep: if false, only the special entities keep their rows.
    language: prefix for names without a language, to find them in a multilingual vocabulary.

    Raises CheckpointError if ``fallback`` belongs to another kind of encoder, or its table has
    another width.
    """
    config = checkpoint.config
    width = size or config.entity_emb_size
    n_rows = len(entities)
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn((n_rows, width), generator=generator) * config.initializer_range
    weights = dict(checkpoint.weights)
    decoder = f"{ENTITY_PREDICTIONS}decoder.weight"  # present only if it is not tied to the table
    heads = {name: x for name, x in checkpoint.others.items() if name != decoder}
    if decoder in checkpoint.others:
        LOGGER.warning(
            "%s has an entity decoder that is not tied to its table. It does not fit the new table "
            "and is left out.",
            checkpoint.source.name,
        )
    bias = torch.zeros(n_rows)
    if fallback is not None:
        _check_same_kind(checkpoint, fallback)
    if width == config.entity_emb_size:
        sources = (
            [(checkpoint, keep)] if fallback is None else [(fallback, True), (checkpoint, keep)]
        )
        for source, all_names in sources:
            _take_rows(table, bias, entities, source, all_names, language)
        if _BIAS in heads:
            dtype = heads[_BIAS].dtype
            if fallback is not None and _BIAS in fallback.others:
                dtype = torch.promote_types(dtype, fallback.others[_BIAS].dtype)
            elif fallback is not None:
                LOGGER.warning(
                    "%s has no masked-entity head: in that of %s, its entities get a bias of zero.",
                    fallback.source.name,
                    checkpoint.source.name,
                )
            heads[_BIAS] = bias.to(dtype)
    else:
        heads = {name: x for name, x in heads.items() if not name.startswith(ENTITY_PREDICTIONS)}
        weights.pop(_DENSE, None)
        weights.pop(MASK_EMBEDDING, None)
        if width != config.hidden_size:
            dense = torch.randn((config.hidden_size, width), generator=generator)
            weights[_DENSE] = dense * config.initializer_range
    if entities.pad_id is not None and checkpoint.entities.pad_id is None:
        table[entities.pad_id] = 0.0
    weights[ENTITY_TABLE] = table
    mask_row = entities.mask_id if MASK_EMBEDDING in weights else None
    return replace(
        checkpoint,
        config=replace(config, entity_vocab_size=n_rows, entity_emb_size=width, mask_row=mask_row),
        weights=weights,
        others=heads,
        entities=entities,
    )


def _check_same_kind(one: Checkpoint, other: Checkpoint) -> None:
    """Check two encoders' sizes: rows of a table are valid only for the encoder trained with them,
    and for encoders trained from it."""
    for key in ("hidden_size", "num_hidden_layers", "vocab_size"):
        values = getattr(one.config, key), getattr(other.config, key)
        if values[0] != values[1]:
            raise CheckpointError(
                f"{other.source.name} has {key} {values[1]}, {one.source.name} has {values[0]}: "
                "entities of one kind of encoder are invalid in another."
            )


def _take_rows(
    table: torch.Tensor,
    bias: torch.Tensor,
    entities: EntityVocab,
    source: Checkpoint,
    all_names: bool,
    language: str | None,
) -> None:
    """Copy rows and biases of a source's entities: of all, or only of the special ones."""
    source_table = source.weights[ENTITY_TABLE].cpu()
    if source_table.shape[1] != table.shape[1]:
        raise CheckpointError(
            f"{source.source.name} has entity embeddings of size {source_table.shape[1]}; size "
            f"{table.shape[1]} is needed."
        )
    rows = (
        shared_rows(entities, source.entities, language)
        if all_names
        else {
            entities.names[x]: source.entities.names[x]
            for x in special(entities)
            if x in source.entities
        }
    )
    targets = torch.tensor(list(rows), dtype=torch.int64)
    sources = torch.tensor(list(rows.values()), dtype=torch.int64)
    table[targets] = source_table[sources]
    if _BIAS in source.others:
        bias[targets] = source.others[_BIAS].cpu()[sources].float()
