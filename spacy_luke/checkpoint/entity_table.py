"""Give a checkpoint another entity vocabulary: prune, extend, or begin anew."""

from dataclasses import replace

import torch

from ..errors import CheckpointError
from ..report import LOGGER
from ..vocab.editing import shared_rows, special
from ..vocab.entity_vocab import EntityVocab
from .names import ENTITY_HEAD, ENTITY_PREDICTIONS, ENTITY_TABLE
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
    """The checkpoint with a table for other entities.

    An entity that both vocabularies name keeps its row (and its bias in the masked-entity head)
    exactly; others have those of ``fallback`` where it names them, and else are drawn from
    normal(0, ``initializer_range``), their bias zero.

    size: width of the table; 0: as it is. Another width starts all rows, and the projection to the
    hidden size, anew. keep: False re-initialises every row but those of the special entities.
    language: of names that do not say theirs, to find them in a multilingual vocabulary. Raises
    CheckpointError where ``fallback`` has rows of another width.
    """
    config = checkpoint.config
    width = size or config.entity_emb_size
    n_rows = len(entities)
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn((n_rows, width), generator=generator) * config.initializer_range
    weights = dict(checkpoint.weights)
    decoder = f"{ENTITY_PREDICTIONS}decoder.weight"  # one that is no copy of the former table
    heads = {name: x for name, x in checkpoint.others.items() if name != decoder}
    if decoder in checkpoint.others:
        LOGGER.warning(
            "%s has a decoder of its own for its entities; it does not fit another table and is "
            "left out.",
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
                    "%s has no masked-entity head: its entities get a bias of zero in that of %s.",
                    fallback.source.name,
                    checkpoint.source.name,
                )
            heads[_BIAS] = bias.to(dtype)
    else:
        heads = {name: x for name, x in heads.items() if not name.startswith(ENTITY_PREDICTIONS)}
        weights.pop(_DENSE, None)
        if width != config.hidden_size:
            dense = torch.randn((config.hidden_size, width), generator=generator)
            weights[_DENSE] = dense * config.initializer_range
    if entities.pad_id is not None and checkpoint.entities.pad_id is None:
        table[entities.pad_id] = 0.0
    weights[ENTITY_TABLE] = table
    return replace(
        checkpoint,
        config=replace(config, entity_vocab_size=n_rows, entity_emb_size=width),
        weights=weights,
        others=heads,
        entities=entities,
    )


def _check_same_kind(one: Checkpoint, other: Checkpoint) -> None:
    """Rows of a table mean something to the encoder they were trained with, and to its kin."""
    for key in ("hidden_size", "num_hidden_layers", "vocab_size"):
        values = getattr(one.config, key), getattr(other.config, key)
        if values[0] != values[1]:
            raise CheckpointError(
                f"{other.source.name} has {key} {values[1]}, {one.source.name} has {values[0]}: "
                "its entities mean nothing to another encoder."
            )


def _take_rows(
    table: torch.Tensor,
    bias: torch.Tensor,
    entities: EntityVocab,
    source: Checkpoint,
    all_names: bool,
    language: str | None,
) -> None:
    """Copy the rows and biases of the entities that a source names: all of them, or the special."""
    theirs = source.weights[ENTITY_TABLE].cpu()
    if theirs.shape[1] != table.shape[1]:
        raise CheckpointError(
            f"{source.source.name} has entities of {theirs.shape[1]} numbers; here they have "
            f"{table.shape[1]}."
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
    to = torch.tensor(list(rows), dtype=torch.int64)
    at = torch.tensor(list(rows.values()), dtype=torch.int64)
    table[to] = theirs[at]
    if _BIAS in source.others:
        bias[to] = source.others[_BIAS].cpu()[at].float()
