"""Write a directory in the layout of published files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from ..errors import CheckpointError
from ..files import whole_folder
from ..json_file import read_object, write_object
from ..model.config import LukeConfig
from ..vocab.entity_vocab import MASK, MASK2, PAD, UNK, EntityVocab
from .classes import BARE_MODEL, class_named
from .names import Weights, to_published
from .network_config import LUKE_TYPES, is_bert
from .read import Checkpoint
from .source import as_in_file, untrained_queries
from .write_tokenizer import TOKENIZER_FILES, write_tokenizer

_POSITIONS = "embeddings.position_embeddings.weight"
_ENTITY_POSITIONS = f"entity_{_POSITIONS}"
FILES = frozenset({"config.json", "model.safetensors", "entity_vocab.json", *TOKENIZER_FILES})
"""All that :func:`write_checkpoint` may write."""
_OURS = ("kind", "word_shapes", "entity_labels", "mask_row", "extra")


def write_checkpoint(
    folder: Path,
    checkpoint: Checkpoint,
    architecture: str,
    source_names: bool = False,
    overwrite: bool = False,
) -> None:
    """Write configuration, weights, the tokenizer's files and the entity vocabulary.

    Tensors have the precision of the checkpoint's source and the names that ``transformers`` reads.
    If the extra queries of entity-aware attention are untrained, they are left out and the
    configuration sets plain attention, which computes the same. If a BERT became a LUKE, its
    positions are moved to LUKE's. The directory appears when it is complete and synced to disk.

    architecture: the name of a class of ``classes.py``.
    source_names: keep the source's tensor names, including old ones, and its kind of attention.
    overwrite: replace an existing directory.

    Raises CheckpointError if the directory exists and ``overwrite`` is false, or if the network has
    modules that published files lack.
    """
    config = checkpoint.config
    if folder.exists() and not overwrite:
        raise CheckpointError(f"{folder} exists; remove it or choose another directory.")
    ours = [name for name in ("word_shapes", "entity_labels") if getattr(config, name)]
    if ours:
        raise CheckpointError(
            f"This network uses {' and '.join(ours)}, which published files cannot contain."
        )
    folder.resolve().parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(folder, durable=True) as temporary:
        published = to_published(checkpoint.weights) | checkpoint.others
        source = checkpoint.source
        if config.kind == "bert" and config.extra.get("model_type") not in LUKE_TYPES:
            config, published = _shift_positions(config, published)
        if not source_names:
            # A bare encoder that had no prefix keeps none, as transformers writes it.
            bare = architecture == BARE_MODEL.name and not source.prefix
            source = replace(source, prefix="" if bare else "luke.", renamed={})
            if untrained_queries(published, source):  # transformers would initialise them at random
                config = replace(config, use_entity_aware_attention=False)
        tensors = as_in_file(published, source)
        try:
            save_file(tensors, temporary / "model.safetensors", {"format": "pt"})
        except SafetensorError as error:  # raised even if the cause is an OSError
            raise CheckpointError(
                f"{folder} cannot be written: {error}. Is the disk full?"
            ) from error
        values = published_config(config, architecture)
        write_object(temporary / "config.json", {**values, **_precision(tensors, values)})
        write_object(temporary / "entity_vocab.json", _entity_names(checkpoint.entities))
        write_tokenizer(checkpoint.pieces, temporary)
        _name_task(temporary / "tokenizer_config.json", architecture)


def _shift_positions(config: LukeConfig, published: Weights) -> tuple[LukeConfig, Weights]:
    """Change a BERT's positions, which count from 0, to a LUKE's, which count from
    ``pad_token_id`` + 1: prepend that many rows to the table."""
    offset = config.pad_token_id + 1
    size = config.max_position_embeddings + offset
    words, entities = published[_POSITIONS], published[_ENTITY_POSITIONS]
    rows = words.new_zeros((offset, config.hidden_size))
    tables = {
        _POSITIONS: torch.cat([rows, words]),
        _ENTITY_POSITIONS: torch.cat([entities, rows]),  # always count from 0
    }
    config = replace(config, kind="roberta", max_position_embeddings=size)
    others = {k: v for k, v in published.items() if not k.endswith(".position_ids")}
    return config, {**others, **tables}


def _entity_names(entities: EntityVocab) -> dict[str, int]:
    """Name -> id. ``transformers``' tokenizer requires all four special entities. A table that
    fine-tuning pruned (``legacy.py``) lacks some: these become additional names of its rows."""
    names = dict(entities.names.items())
    if names.keys() <= {PAD, MASK, MASK2}:
        names = {UNK: names.get(PAD, names[MASK]), MASK2: names[MASK], **names}
    return names


def _name_task(path: Path, architecture: str) -> None:
    """Set ``task`` for ``transformers``' tokenizer, unless the file has it."""
    values = read_object(path)
    task = class_named(architecture).task
    if task and not values.get("task"):
        write_object(path, {**values, "task": task})


def _precision(tensors: Weights, values: dict[str, Any]) -> dict[str, str]:
    """Update the precision in the configuration: ``transformers`` may load all tensors in it, and
    would round those that were trained in another."""
    dtypes = {
        str(x.dtype).removeprefix("torch.") for x in tensors.values() if x.is_floating_point()
    }
    dtype = dtypes.pop() if len(dtypes) == 1 else "float32"
    return {key: dtype for key in ("torch_dtype", "dtype") if values.get(key) is not None}


def published_config(config: LukeConfig, architecture: str) -> dict[str, Any]:
    """``config.json``: the keys that the network uses, and the other keys of its source."""
    values = {k: v for k, v in config.to_dict().items() if k not in _OURS}
    values = {**config.extra, **values, "model_type": "luke", "architectures": [architecture]}
    if config.kind == "bert" and not is_bert(values):
        values["bert_model_name"] = "bert-base-uncased"  # published configs tell the kind by it
    return values
