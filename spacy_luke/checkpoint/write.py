"""Everything a model needs to a directory in the published layout."""

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
from .config import LUKE_TYPES, is_bert
from .names import Weights, to_published
from .read import Checkpoint
from .source import as_in_file, untrained_queries
from .write_tokenizer import write_tokenizer

_POSITIONS = "embeddings.position_embeddings.weight"
_ENTITY_POSITIONS = f"entity_{_POSITIONS}"
_OURS = ("kind", "word_shapes", "entity_labels", "extra")


def write_checkpoint(
    folder: Path,
    checkpoint: Checkpoint,
    architecture: str,
    source_names: bool = False,
    overwrite: bool = False,
) -> None:
    """Write configuration, weights, the tokenizer's files and the entity vocabulary.

    Tensors have the precision of the checkpoint's source and today's names, which ``transformers``
    reads. architecture: the name of a class of ``classes.py``. Where the extra queries of
    entity-aware attention are left out, the configuration says that attention is plain, which gives
    the same answers; where a BERT became a LUKE, its positions move to where LUKEs have them.
    source_names: leave names and attention as the source has them, also old ones. overwrite:
    replace a directory of that name. The directory appears when it is complete and on the disk.
    Raises CheckpointError if there is one and ``overwrite`` is false, or if the network has parts
    that no published file has.
    """
    config = checkpoint.config
    if folder.exists() and not overwrite:
        raise CheckpointError(f"{folder} exists; remove it or name another directory.")
    ours = [name for name in ("word_shapes", "entity_labels") if getattr(config, name)]
    if ours:
        raise CheckpointError(
            f"Published files have no place for {' and '.join(ours)}, which this network uses."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(folder, durable=True) as temporary:
        published = to_published(checkpoint.weights) | checkpoint.others
        source = checkpoint.source
        if config.kind == "bert" and config.extra.get("model_type") not in LUKE_TYPES:
            config, published = _counted_as_published(config, published)
        if not source_names:
            # The bare encoder stands without a prefix, as transformers writes it, if it did before.
            bare = architecture == BARE_MODEL.name and not source.prefix
            source = replace(source, prefix="" if bare else "luke.", renamed={})
            if untrained_queries(published, source):  # which transformers would draw
                config = replace(config, use_entity_aware_attention=False)
        tensors = as_in_file(published, source)
        try:
            save_file(tensors, temporary / "model.safetensors", {"format": "pt"})
        except SafetensorError as error:  # no OSError, whatever the reason
            raise CheckpointError(
                f"{folder} cannot be written: {error}. Is the disk full?"
            ) from error
        values = published_config(config, architecture)
        write_object(temporary / "config.json", {**values, **_precision(tensors, values)})
        write_object(temporary / "entity_vocab.json", _entity_names(checkpoint.entities))
        write_tokenizer(checkpoint.pieces, temporary)
        _name_task(temporary / "tokenizer_config.json", architecture)


def _counted_as_published(config: LukeConfig, published: Weights) -> tuple[LukeConfig, Weights]:
    """What began as a BERT, which counts positions from 0, as a LUKE, whose readers count from
    behind the padding piece, whatever it began as: the same rows, that much further down."""
    further = config.pad_token_id + 1
    size = config.max_position_embeddings + further
    words, entities = published[_POSITIONS], published[_ENTITY_POSITIONS]
    rows = words.new_zeros((further, config.hidden_size))
    tables = {
        _POSITIONS: torch.cat([rows, words]),
        _ENTITY_POSITIONS: torch.cat([entities, rows]),  # these count from 0 everywhere
    }
    config = replace(config, kind="roberta", max_position_embeddings=size)
    others = {k: v for k, v in published.items() if not k.endswith(".position_ids")}
    return config, {**others, **tables}


def _entity_names(entities: EntityVocab) -> dict[str, int]:
    """name -> id. ``transformers``' tokenizer wants all four special entities: of a table that
    fine-tuning has cut to those it needs (``legacy.py``), the others are further names of these."""
    names = dict(entities.names.items())
    if names.keys() <= {PAD, MASK, MASK2}:
        names = {UNK: names.get(PAD, names[MASK]), MASK2: names[MASK], **names}
    return names


def _name_task(path: Path, architecture: str) -> None:
    """Tell ``transformers``' tokenizer what its model asks about, where nothing else is said."""
    values = read_object(path)
    task = class_named(architecture).task
    if task and not values.get("task"):
        write_object(path, {**values, "task": task})


def _precision(tensors: Weights, values: dict[str, Any]) -> dict[str, str]:
    """What the configuration said of the tensors' precision, as it is now: ``transformers`` may
    load them all in it, and would round what has been trained since."""
    found = {str(x.dtype).removeprefix("torch.") for x in tensors.values() if x.is_floating_point()}
    now = found.pop() if len(found) == 1 else "float32"
    return {key: now for key in ("torch_dtype", "dtype") if values.get(key) is not None}


def published_config(config: LukeConfig, architecture: str) -> dict[str, Any]:
    """``config.json``: the keys that the network uses, and those it was read with."""
    values = {k: v for k, v in config.to_dict().items() if k not in _OURS}
    found = {**config.extra, **values, "model_type": "luke", "architectures": [architecture]}
    if config.kind == "bert" and not is_bert(found):
        found["bert_model_name"] = "bert-base-uncased"  # how published configs tell the kind
    return found
