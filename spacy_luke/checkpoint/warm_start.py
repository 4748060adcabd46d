"""Turn a plain BERT, RoBERTa or XLM-R encoder into a LUKE whose entities are untrained."""

from pathlib import Path

import torch

from ..errors import CheckpointError
from ..model.config import LukeConfig
from ..vocab.entity_vocab import EntityVocab
from ..vocab.pieces import PieceTokenizer
from .weight_files import file_of

_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_COPIED = ("token_type_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias")


def add_entities(
    published: dict[str, torch.Tensor],
    config: LukeConfig,
    pieces: PieceTokenizer,
    directory: Path,
) -> None:
    """Add the entity embeddings to the tensors of a plain encoder, in place.

    [MASK] and [MASK2] are initialised from the piece [MASK], [UNK] from the piece [UNK], [PAD] with
    zeros, entity positions from word positions (counted from 0), type embeddings and LayerNorm from
    those of words.

    directory: for messages. Raises CheckpointError if a tensor is missing.
    """
    required = [_WORDS, _POSITIONS, *(f"embeddings.{name}" for name in _COPIED)]
    missing = [name for name in required if name not in published]
    if missing:
        raise CheckpointError(
            f"{file_of(directory, *missing)} lacks weights of a plain encoder: "
            f"{', '.join(missing)}."
        )
    words, positions = published[_WORDS], published[_POSITIONS]
    vocab = EntityVocab.specials_only()
    table = words.new_zeros((len(vocab), words.shape[1]))
    table[vocab.mask_id] = words[pieces.mask_id]
    table[vocab.names["[MASK2]"]] = words[pieces.mask_id]
    table[vocab.unk_id] = words[pieces.unk_id]
    from_zero = torch.zeros_like(positions)
    from_zero[: len(positions) - config.position_offset] = positions[config.position_offset :]
    published["entity_embeddings.entity_embeddings.weight"] = table
    published["entity_embeddings.position_embeddings.weight"] = from_zero
    for name in _COPIED:
        published[f"entity_embeddings.{name}"] = published[f"embeddings.{name}"].clone()
