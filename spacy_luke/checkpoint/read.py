"""A directory of published files to everything a model needs."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ..errors import CheckpointError, reading
from ..model.config import LukeConfig
from ..model.encoder import LukeModel
from ..report import LOGGER
from ..vocab.entity_vocab import FILE_NAMES, EntityVocab
from ..vocab.pieces import PieceTokenizer
from . import legacy
from .classes import CLASSES
from .config import LUKE_TYPES, network_config
from .heads import check_heads
from .names import (
    POOLER,
    Weights,
    by_short_name,
    is_extra_query,
    plain_query,
    sources,
    to_ours,
    to_published,
)
from .read_tokenizer import read_tokenizer
from .source import Source, describe
from .warm_start import add_entities
from .weight_files import file_of, read_config, read_weights, weight_files

# What a file may hold beside the network.
_HEADS = {name.partition(".")[0] + "." for row in CLASSES for name in row.head}
_OTHERS = (POOLER, *_HEADS, "cls_entity_predictions.", "embeddings.position_ids")
# Modules that are ours alone, and start fresh.
_OURS = ("word_embeddings.shapes.", "entity_embeddings.labels.")


@dataclass
class Checkpoint:
    """What a directory of published files holds.

    weights: the network's parameters under our names. others: tensors of heads, and what else
    the network does not use, under their published names. is_luke: False where a plain encoder
    was turned into a LUKE.
    """

    config: LukeConfig
    weights: Weights
    others: Weights
    pieces: PieceTokenizer
    entities: EntityVocab
    source: Source
    is_luke: bool = True


def read_checkpoint(
    directory: Path, entity_aware: bool | None = None, name: str = ""
) -> Checkpoint:
    """Read a LUKE, or a plain BERT / RoBERTa / XLM-R encoder turned into one.

    entity_aware: replaces the file's ``use_entity_aware_attention``. name: what the directory
    was asked for as, for the record; by default its own.

    Raises CheckpointError, ConfigError or VocabError, naming the file and what is wrong.
    """
    with reading(str(directory)):
        return _read(directory, entity_aware, name)


def _read(directory: Path, entity_aware: bool | None, name: str) -> Checkpoint:
    old, raw = legacy.is_legacy(directory), _raw_config(directory)
    if entity_aware is not None:
        raw["use_entity_aware_attention"] = entity_aware
    file = directory / (legacy.METADATA if old else "config.json")
    config = network_config(raw, file)
    is_luke = raw["model_type"] in LUKE_TYPES
    pieces = legacy.read_pieces(directory, raw) if old else read_tokenizer(directory)
    if len(pieces) > config.vocab_size:
        raise CheckpointError(
            f"{directory}: the tokenizer has ids up to {len(pieces) - 1}, but {file.name} has "
            f"vocab_size {config.vocab_size}."
        )
    published, source = describe(read_weights(directory), weight_files(directory), directory)
    source.name = directory.name if not name or Path(name).is_dir() else name
    source.architecture = _architecture(raw, directory)
    if is_luke:
        entities = _entity_vocab(directory, config, legacy.cut_vocabulary(raw) if old else None)
    else:
        entities = EntityVocab.specials_only()
        add_entities(published, config, pieces, directory)
    others, encoder = _split(published, config)
    filled = _fill_extra_queries(encoder, config)
    if is_luke:
        source.filled = filled
        for other, tensor in others.items():
            if other.endswith((".weight", ".bias")):
                _check_precision(tensor, other, directory)
        check_heads(others, source.architecture, config, directory)
    else:  # it will be written as what it has become
        source = Source(source.name, source.sha256, source.architecture)
        others = {k: v for k, v in others.items() if not k.startswith("cls.")}  # next sentences
    weights = _match(encoder, config, directory)
    return Checkpoint(config, weights, others, pieces, entities, source, is_luke)


def published_class(directory: Path) -> str:
    """The name of the class of the head that a directory holds, empty where it does not say. Raises
    CheckpointError."""
    return _architecture(_raw_config(directory), directory)


def _raw_config(directory: Path) -> dict[str, Any]:
    if not legacy.is_legacy(directory):
        return read_config(directory)
    raw = legacy.read_metadata(directory)
    legacy.fit(raw, by_short_name(read_weights(directory)))
    return raw


def _architecture(raw: dict[str, Any], directory: Path) -> str:
    listed = raw.get("architectures")
    if listed is None or (isinstance(listed, list) and all(isinstance(x, str) for x in listed)):
        return listed[0] if listed else ""
    raise CheckpointError(
        f"{directory / 'config.json'}: architectures is {listed!r}; expected a list of one name."
    )


def load_into(model: LukeModel, checkpoint: Checkpoint, take: bool = False) -> None:
    """Load the weights into a network of the same sizes. Raises CheckpointError.

    What is ours alone (word shapes, entity labels) keeps the values it has. take: the network
    takes the tensors themselves, without a copy.
    """
    missing, unexpected = model.load_state_dict(checkpoint.weights, strict=False, assign=take)
    missing = [name for name in missing if not name.startswith(_OURS)]
    if missing or unexpected:
        raise CheckpointError(
            f"{checkpoint.source.name}: missing weights {missing}, unexpected {list(unexpected)}."
        )


def _split(published: Weights, config: LukeConfig) -> tuple[Weights, Weights]:
    """What the network does not use, and what it does. Where attention is plain, the extra
    queries of a file are not used."""
    plain = not config.use_entity_aware_attention
    prefixes = (*_OTHERS, "cls.") if config.kind == "bert" else _OTHERS
    others: Weights = {}
    encoder: Weights = {}
    for name, tensor in published.items():
        unused = name.startswith(prefixes) or (plain and is_extra_query(name))
        (others if unused else encoder)[name] = tensor
    return others, encoder


def _fill_extra_queries(published: Weights, config: LukeConfig) -> list[str]:
    """Extra queries that a file lacks start as copies of ``query``; returns their names."""
    filled = []
    for name in _shapes(config):
        for source in sources(name):
            query = published.get(plain_query(source))
            if is_extra_query(source) and source not in published and query is not None:
                published[source] = query.clone()
                filled.append(source)
    return filled


def with_extra_queries(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with entity-aware attention, whose queries start as copies of ``query`` where
    it has none (Yamada et al. 2020, section 3.2)."""
    config = replace(checkpoint.config, use_entity_aware_attention=True)
    published = to_published(checkpoint.weights)
    _fill_extra_queries(published, config)
    return replace(checkpoint, config=config, weights=to_ours(published, _shapes(config)))


def _match(published: Weights, config: LukeConfig, directory: Path) -> Weights:
    """Our parameters from published tensors; every tensor is used and every name is filled."""
    shapes = _shapes(config)
    wanted = {source: name for name in shapes for source in sources(name)}
    missing = sorted(set(wanted) - set(published))
    unknown = sorted(set(published) - set(wanted))
    if missing or unknown:
        raise CheckpointError(
            f"{file_of(directory, *missing, *unknown)}: "
            + "; ".join(
                f"{what} weights: {_list(names)}"
                for what, names in (("missing", missing), ("unknown", unknown))
                if names
            )
            + "."
        )
    for source, name in wanted.items():
        _check_precision(published[source], source, directory)
        expected = list(shapes[name])
        expected[0] //= len(sources(name))
        if list(published[source].shape) != expected:
            raise CheckpointError(
                f"{file_of(directory, source)}: {source} has the shape "
                f"{list(published[source].shape)}; config.json makes it {expected}."
            )
    _warn_of_doubles(published, directory)
    weights = {name: tensor.float() for name, tensor in to_ours(published, shapes).items()}
    for name, tensor in weights.items():
        if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
            bad = next(x for x in sources(name) if not torch.isfinite(published[x].float()).all())
            raise CheckpointError(
                f"{file_of(directory, bad)}: {bad} holds values that are no numbers."
            )
    return weights


def _check_precision(tensor: torch.Tensor, name: str, directory: Path) -> None:
    if not tensor.is_floating_point():
        raise CheckpointError(
            f"{file_of(directory, name)}: {name} is in {tensor.dtype}; weights are floating-point."
        )


def _warn_of_doubles(published: Weights, directory: Path) -> None:
    lost = [
        name
        for name, tensor in published.items()
        if tensor.dtype == torch.float64 and not torch.equal(tensor.float().double(), tensor)
    ]
    if lost:
        LOGGER.warning(
            "%s: %d tensors in float64 are rounded to float32: %s.",
            directory,
            len(lost),
            _list(lost, 3),
        )


def _shapes(config: LukeConfig) -> dict[str, torch.Size]:
    """Names and shapes of our parameters that come from published files."""
    with torch.device("meta"):
        model = LukeModel(config)
    return {
        name: parameter.shape
        for name, parameter in model.state_dict().items()
        if not name.startswith(_OURS)
    }


def _entity_vocab(
    directory: Path, config: LukeConfig, guess: EntityVocab | None = None
) -> EntityVocab:
    """guess: what the table must hold where no file says it, or the file is of a larger table."""
    for name in FILE_NAMES:
        if (directory / name).exists():
            vocab = EntityVocab.from_file(directory / name)
            if guess is not None and len(vocab) != config.entity_vocab_size:
                return guess
            if len(vocab) != config.entity_vocab_size:
                raise CheckpointError(
                    f"{directory / name} has ids up to {len(vocab) - 1}, but config.json has "
                    f"entity_vocab_size {config.entity_vocab_size}."
                )
            return vocab
    if guess is not None:
        return guess
    raise CheckpointError(
        f"{directory} has no entity vocabulary: expected one of {', '.join(FILE_NAMES)}."
    )


def _list(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
