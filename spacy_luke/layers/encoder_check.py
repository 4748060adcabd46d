"""Check whether an encoder is usable, after it was read and before it is saved."""

import numpy as np
import torch

from ..errors import CheckpointError, reading
from ..model.packing import Entities, LukeInputs, Words
from ..vocab.pieces import SPECIALS
from .encoder_module import Encoder

_SAMPLE = "Ada Lovelace, London: caf\u00e9 \u6771\u4eac 42"


def check_encoder(encoder: Encoder, what: str, table: bool = True) -> None:
    """Raise CheckpointError unless the weights are finite float32, every id of both vocabularies
    has a row, and a short text with an entity has finite states.

    what: names the encoder in messages. table: also check every row of the entity table. This reads
    the whole file, from which otherwise only needed rows are read, so it is not done at loading.
    """
    with reading(what):
        _check_weights(encoder, what, table)
        _check_ids(encoder, what)
        _check_states(encoder, what)


def _check_weights(encoder: Encoder, what: str, table: bool) -> None:
    entity_table = encoder.network.entity_embeddings.table
    for name, tensor in encoder.network.state_dict().items():
        if tensor.dtype != torch.float32:
            raise CheckpointError(f"{what}: {name} is in {tensor.dtype}; expected torch.float32.")
        skipped = isinstance(entity_table, torch.Tensor) and (
            tensor.data_ptr() == entity_table.data_ptr()
        )
        if skipped and not table:
            continue
        # The sum is not finite if any value is not, but it may also overflow; then check all
        # values.
        if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
            raise CheckpointError(f"{what}: {name} has values that are NaN or infinite.")
    if table and isinstance(entity_table, np.ndarray) and not np.isfinite(entity_table).all():
        raise CheckpointError(f"{what}: the entity table has values that are NaN or infinite.")


def _check_ids(encoder: Encoder, what: str) -> None:
    config = encoder.network.config
    if len(encoder.pieces) > config.vocab_size:
        raise CheckpointError(
            f"{what}: the tokenizer has ids up to {len(encoder.pieces) - 1}, and the network has "
            f"rows for {config.vocab_size} pieces."
        )
    if len(encoder.entities) != config.entity_vocab_size:
        raise CheckpointError(
            f"{what}: the entity vocabulary has {len(encoder.entities)} ids, and the network has "
            f"rows for {config.entity_vocab_size} entities."
        )
    specials = {role: encoder.pieces.special_ids[role] for role in SPECIALS}
    for role, index in specials.items():
        if not 0 <= index < config.vocab_size:
            raise CheckpointError(
                f"{what}: the {role} piece has the id {index}; the network has rows for "
                f"{config.vocab_size} pieces."
            )


def _check_states(encoder: Encoder, what: str) -> None:
    network, pieces = encoder.network, encoder.pieces
    ids = np.concatenate([x for x, _ in pieces.encode_parts([_SAMPLE])])
    ids = ids[: network.config.max_pieces - 2]
    if len(ids) and not 0 <= ids.min() <= ids.max() < network.config.vocab_size:
        raise CheckpointError(
            f"{what}: the tokenizer gives ids up to {ids.max()}; the network has rows for "
            f"{network.config.vocab_size} pieces."
        )
    whole = np.asarray([pieces.cls_id, *ids, pieces.sep_id], dtype=np.int64)
    shapes = np.zeros_like(whole) if network.config.word_shapes else None
    one = np.ones(1, dtype=np.int64)
    labels = 0 * one if network.config.entity_labels else None
    mask = one * encoder.entities.mask_id
    inputs = LukeInputs(
        Words(whole, np.asarray([0, len(whole)]), shapes),
        Entities(mask, one, one + 1, np.asarray([0, 1]), labels),
    )
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            states = network(inputs)
    finally:
        encoder.train(training)
    if not (torch.isfinite(states.words).all() and torch.isfinite(states.entities).all()):
        raise CheckpointError(
            f"{what}: the states of a short text are NaN or infinite: the weights are too large."
        )
