"""A directory of published files to everything a model needs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import CheckpointError
from ..model.config import LukeConfig
from ..model.encoder import LukeModel
from ..vocab.entities import FILE_NAMES, EntityVocab
from ..vocab.pieces import PieceTokenizer
from .config import LUKE_TYPES, network_config
from .files import read_config, read_weights
from .names import is_extra_query, plain_query, sources, strip_prefix, to_ours
from .warm_start import add_entities

Weights = dict[str, torch.Tensor]

# Tensors of heads, kept apart under their published names; and what no model needs.
_HEADS = ("pooler.", "lm_head.", "entity_predictions.", "classifier.", "qa_outputs.", "scorer.")
_PLAIN_HEADS = ("cls.", *_HEADS)
_IGNORED = ("embeddings.position_ids",)
# Modules that are ours alone, and start fresh.
_OURS = ("word_embeddings.shapes.", "entity_embeddings.labels.")


@dataclass
class Checkpoint:
    """What a directory of published files holds.

    weights: the network's parameters under our names. heads: other tensors under their
    published names. raw_config: ``config.json`` as found. is_luke: False where a plain
    encoder was turned into a LUKE.
    """

    config: LukeConfig
    weights: Weights
    heads: Weights
    pieces: PieceTokenizer
    entities: EntityVocab
    raw_config: dict[str, Any]
    is_luke: bool
    source: str


def read_checkpoint(directory: Path, entity_aware: bool | None = None) -> Checkpoint:
    """Read a LUKE, or a plain BERT / RoBERTa / XLM-R encoder turned into one.

    entity_aware: replaces the file's ``use_entity_aware_attention``.

    Raises CheckpointError, ConfigError or VocabError, naming the file and what is wrong.
    """
    raw = read_config(directory)
    if entity_aware is not None:
        raw["use_entity_aware_attention"] = entity_aware
    config = network_config(raw, directory)
    is_luke = raw["model_type"] in LUKE_TYPES
    pieces = PieceTokenizer.from_directory(directory)
    if len(pieces) > config.vocab_size:
        raise CheckpointError(
            f"{directory}: the tokenizer has {len(pieces)} pieces, but config.json has "
            f"vocab_size {config.vocab_size}."
        )
    found = read_weights(directory)
    short = strip_prefix(found)
    published = {short[name]: tensor for name, tensor in found.items()}
    if is_luke:
        entities = _entity_vocab(directory, config)
    else:
        entities = EntityVocab.specials_only()
        add_entities(published, config, pieces)
    heads, encoder = _split_heads(published, _HEADS if is_luke else _PLAIN_HEADS)
    _fill_extra_queries(encoder, config)
    weights = _match(encoder, config, directory)
    return Checkpoint(config, weights, heads, pieces, entities, raw, is_luke, str(directory))


def load_into(model: LukeModel, checkpoint: Checkpoint) -> None:
    """Load the weights into a network of the same sizes. Raises CheckpointError.

    What is ours alone (word shapes, entity labels) keeps the values it has.
    """
    missing, unexpected = model.load_state_dict(checkpoint.weights, strict=False)
    missing = [name for name in missing if not name.startswith(_OURS)]
    if missing or unexpected:
        raise CheckpointError(
            f"{checkpoint.source}: missing weights {missing}, unexpected {list(unexpected)}."
        )


def _split_heads(published: Weights, prefixes: tuple[str, ...]) -> tuple[Weights, Weights]:
    heads: Weights = {}
    encoder: Weights = {}
    for name, tensor in published.items():
        if name not in _IGNORED:
            (heads if name.startswith(prefixes) else encoder)[name] = tensor
    return heads, encoder


def _fill_extra_queries(published: Weights, config: LukeConfig) -> None:
    """Extra queries start as copies of ``query``; where attention is plain they are dropped."""
    if not config.use_entity_aware_attention:
        for name in [name for name in published if is_extra_query(name)]:
            del published[name]
        return
    for name in _shapes(config):
        for source in sources(name):
            if is_extra_query(source) and source not in published:
                query = published.get(plain_query(source))
                if query is not None:
                    published[source] = query.clone()


def _match(published: Weights, config: LukeConfig, directory: Path) -> Weights:
    """Our parameters from published tensors; every tensor is used and every name is filled."""
    shapes = _shapes(config)
    wanted = {source: name for name in shapes for source in sources(name)}
    missing = sorted(set(wanted) - set(published))
    unknown = sorted(set(published) - set(wanted))
    if missing or unknown:
        raise CheckpointError(
            f"{directory}: "
            + "; ".join(
                f"{what} weights: {_list(names)}"
                for what, names in (("missing", missing), ("unknown", unknown))
                if names
            )
            + "."
        )
    for source, name in wanted.items():
        expected = list(shapes[name])
        expected[0] //= len(sources(name))
        if list(published[source].shape) != expected:
            raise CheckpointError(
                f"{directory}: {source} has the shape {list(published[source].shape)}; "
                f"config.json makes it {expected}."
            )
    return {name: tensor.float() for name, tensor in to_ours(published, shapes).items()}


def _shapes(config: LukeConfig) -> dict[str, torch.Size]:
    """Names and shapes of our parameters that come from published files."""
    with torch.device("meta"):
        model = LukeModel(config)
    return {
        name: parameter.shape
        for name, parameter in model.state_dict().items()
        if not name.startswith(_OURS)
    }


def _entity_vocab(directory: Path, config: LukeConfig) -> EntityVocab:
    for name in FILE_NAMES:
        if (directory / name).exists():
            vocab = EntityVocab.from_file(directory / name)
            if len(vocab) > config.entity_vocab_size:
                raise CheckpointError(
                    f"{directory / name} has ids up to {len(vocab) - 1}, but config.json has "
                    f"entity_vocab_size {config.entity_vocab_size}."
                )
            return vocab
    raise CheckpointError(
        f"{directory} has no entity vocabulary: expected one of {', '.join(FILE_NAMES)}."
    )


def _list(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
