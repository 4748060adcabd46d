"""Read a directory of published files."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ..errors import CheckpointError, reading
from ..model.config import LukeConfig
from ..model.network import LukeModel
from ..report import LOGGER
from ..vocab.entity_vocab import FILE_NAMES, EntityVocab
from ..vocab.pieces import PieceTokenizer
from . import legacy
from .check_heads import check_heads
from .classes import CLASSES, class_named
from .names import (
    MASK_EMBEDDING,
    POOLER,
    Weights,
    by_short_name,
    is_extra_query,
    plain_query,
    sources,
    to_ours,
    to_published,
)
from .network_config import LUKE_TYPES, network_config
from .read_tokenizer import read_tokenizer
from .source import Source, describe
from .warm_start import add_entities
from .weight_files import file_of, read_config, read_weights, weight_files

# Prefixes of tensors outside the network.
_HEADS = {name.partition(".")[0] + "." for row in CLASSES for name in row.head}
_OTHERS = (POOLER, *_HEADS, "cls_entity_predictions.", "embeddings.position_ids")
# Modules that published files lack. They are initialised at random.
_OURS = ("word_embeddings.shapes.", "entity_embeddings.labels.")


@dataclass
class Checkpoint:
    """The content of a directory of published files.

    weights: the network's parameters, under our names.
    others: tensors that the network does not use, such as heads, under their published names.
    is_luke: false if a plain encoder was turned into a LUKE.
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

    entity_aware: replaces the file's ``use_entity_aware_attention``.
    name: the name to record as the source, for example on the hub; defaults to the directory's.

    Raises CheckpointError, ConfigError or VocabError, with the file and the reason.
    """
    with reading(str(directory)):
        return _read(directory, entity_aware, name)


def _read(directory: Path, entity_aware: bool | None, name: str) -> Checkpoint:
    is_legacy, raw = legacy.is_legacy(directory), _raw_config(directory)
    if entity_aware is not None:
        raw["use_entity_aware_attention"] = entity_aware
    file = directory / (legacy.METADATA if is_legacy else "config.json")
    config = network_config(raw, file)
    is_luke = raw["model_type"] in LUKE_TYPES
    pieces = legacy.read_pieces(directory, raw) if is_legacy else read_tokenizer(directory)
    if len(pieces) > config.vocab_size:
        raise CheckpointError(
            f"{directory}: the tokenizer has ids up to {len(pieces) - 1}, but {file.name} has "
            f"vocab_size {config.vocab_size}."
        )
    published, source = describe(read_weights(directory), weight_files(directory), directory)
    is_folder = not name or Path(name).expanduser().is_dir()
    source.name = Path(os.path.abspath(directory)).name if is_folder else name
    source.architecture = _architecture(raw, directory)
    if is_luke:
        pruned = legacy.pruned_vocabulary(raw) if is_legacy else None
        entities = _entity_vocab(directory, config, pruned)
        if MASK_EMBEDDING in published or class_named(source.architecture).mask_embedding:
            config = replace(config, mask_row=entities.mask_id)
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
    else:  # the form of the file is not kept, because it will be written as a LUKE
        source = Source(source.name, source.sha256, source.architecture)
        others = {
            k: v for k, v in others.items() if not k.startswith("cls.")
        }  # BERT's head of next sentences
    weights = _match(encoder, config, directory)
    return Checkpoint(config, weights, others, pieces, entities, source, is_luke)


def read_entities(directory: Path) -> EntityVocab:
    """The entity vocabulary of a directory of published files. Raises CheckpointError or
    VocabError."""
    for name in FILE_NAMES:
        if (directory / name).exists():
            return EntityVocab.from_file(directory / name)
    raise CheckpointError(
        f"{directory} has no entity vocabulary: expected one of {', '.join(FILE_NAMES)}."
    )


def published_class(directory: Path) -> str:
    """The name of the published class, empty if the files do not name it. Raises
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

    Modules that published files lack (word shapes, entity labels) are not changed. take: assign the
    tensors without copying them.
    """
    missing, unexpected = model.load_state_dict(checkpoint.weights, strict=False, assign=take)
    missing = [name for name in missing if not name.startswith(_OURS)]
    if missing or unexpected:
        raise CheckpointError(
            f"{checkpoint.source.name}: missing weights {missing}, unexpected {list(unexpected)}."
        )


def _split(published: Weights, config: LukeConfig) -> tuple[Weights, Weights]:
    """Tensors that the network does not use, and those that it uses. Plain attention does not use
    the extra queries of a file."""
    plain = not config.use_entity_aware_attention
    prefixes = (*_OTHERS, "cls.") if config.kind == "bert" else _OTHERS
    others: Weights = {}
    encoder: Weights = {}
    for name, tensor in published.items():
        unused = name.startswith(prefixes) or (plain and is_extra_query(name))
        (others if unused else encoder)[name] = tensor
    return others, encoder


def _fill_extra_queries(published: Weights, config: LukeConfig) -> list[str]:
    """Initialise missing extra queries as copies of ``query``. Returns their names."""
    filled = []
    for name in _shapes(config):
        for source in sources(name):
            query = published.get(plain_query(source))
            if is_extra_query(source) and source not in published and query is not None:
                published[source] = query.clone()
                filled.append(source)
    return filled


def with_extra_queries(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with entity-aware attention. Missing extra queries are initialised as copies
    of ``query`` (Yamada et al. 2020, section 3.2)."""
    config = replace(checkpoint.config, use_entity_aware_attention=True)
    published = to_published(checkpoint.weights)
    _fill_extra_queries(published, config)
    return replace(checkpoint, config=config, weights=to_ours(published, _shapes(config)))


def _match(published: Weights, config: LukeConfig, directory: Path) -> Weights:
    """Our parameters from published tensors. Raises CheckpointError if names or shapes differ."""
    shapes = _shapes(config)
    ours = {source: name for name in shapes for source in sources(name)}
    missing = sorted(set(ours) - set(published))
    unknown = sorted(set(published) - set(ours))
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
    for source, name in ours.items():
        _check_precision(published[source], source, directory)
        expected = list(shapes[name])
        expected[0] //= len(sources(name))
        if list(published[source].shape) != expected:
            raise CheckpointError(
                f"{file_of(directory, source)}: {source} has the shape "
                f"{list(published[source].shape)}; expected {expected} by config.json."
            )
    _warn_if_rounded(published, directory)
    weights = {name: tensor.float() for name, tensor in to_ours(published, shapes).items()}
    for name, tensor in weights.items():
        if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
            bad = next(x for x in sources(name) if not torch.isfinite(published[x].float()).all())
            raise CheckpointError(
                f"{file_of(directory, bad)}: {bad} contains NaN or infinite values."
            )
    return weights


def _check_precision(tensor: torch.Tensor, name: str, directory: Path) -> None:
    if not tensor.is_floating_point():
        raise CheckpointError(
            f"{file_of(directory, name)}: {name} has dtype {tensor.dtype}; expected floating point."
        )


def _warn_if_rounded(published: Weights, directory: Path) -> None:
    rounded = [
        name
        for name, tensor in published.items()
        if tensor.dtype == torch.float64 and not torch.equal(tensor.float().double(), tensor)
    ]
    if rounded:
        LOGGER.warning(
            "%s: %d tensors in float64 are rounded to float32: %s.",
            directory,
            len(rounded),
            _list(rounded, 3),
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


def _entity_vocab(directory: Path, config: LukeConfig, pruned: EntityVocab | None) -> EntityVocab:
    """The vocabulary of a directory's files. pruned: used instead of a missing file, and of a file
    of the table before it was pruned."""
    file = next((directory / x for x in FILE_NAMES if (directory / x).exists()), None)
    if file is None and pruned is not None:
        return pruned
    vocab = read_entities(directory)
    if len(vocab) != config.entity_vocab_size:
        if pruned is not None:
            return pruned
        raise CheckpointError(
            f"{file} has ids up to {len(vocab) - 1}, but config.json has entity_vocab_size "
            f"{config.entity_vocab_size}."
        )
    return vocab


def _list(names: list[str], limit: int = 8) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
