"""Whether the heads of a file are complete and of the right shapes."""

from collections.abc import Mapping
from pathlib import Path

import torch

from ..errors import CheckpointError
from ..model.config import LukeConfig
from .classes import ANY, CLASSES, Shape, class_named
from .names import TIED, is_extra_query
from .weight_files import file_of

# What a file may hold beside its head, without being asked for.
_FREE = ("embeddings.position_ids", "cls.", "cls_entity_predictions.")


def check_heads(
    others: Mapping[str, torch.Tensor], architecture: str, config: LukeConfig, directory: Path
) -> None:
    """Raise CheckpointError where the head of a file's class is not whole, or a tensor of any head
    is unknown, misshapen, or holds what is no number."""
    missing = sorted(class_named(architecture).head.keys() - others.keys())
    if missing:
        raise CheckpointError(
            f"{file_of(directory, *missing)}: missing weights of a {architecture}: "
            f"{', '.join(missing)}."
        )
    known = _known(config)
    for name, tensor in others.items():
        if name.startswith(_FREE) or is_extra_query(name):
            continue
        if name not in known:
            raise CheckpointError(f"{file_of(directory, name)}: unknown weights: {name}.")
        shapes = known[name]
        if not any(_fits(tuple(tensor.shape), shape) for shape in shapes):
            raise CheckpointError(
                f"{file_of(directory, name)}: {name} has the shape {list(tensor.shape)}; expected "
                f"{' or '.join(str(list(x)) for x in shapes)} (-1: any)."
            )
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise CheckpointError(
                f"{file_of(directory, name)}: {name} holds values that are no numbers."
            )


def _known(config: LukeConfig) -> dict[str, list[Shape]]:
    """Every tensor of a head -> the shapes it may have."""
    hidden = config.hidden_size
    pooler: dict[str, Shape] = {
        "pooler.dense.weight": (hidden, hidden),
        "pooler.dense.bias": (hidden,),
    }
    tables: dict[str, Shape] = {
        "lm_head.decoder.weight": (config.vocab_size, hidden),
        "lm_head.decoder.bias": (config.vocab_size,),
        "entity_predictions.decoder.weight": (config.entity_vocab_size, config.entity_emb_size),
    }
    assert tables.keys() == TIED.keys()
    known: dict[str, list[Shape]] = {}
    for shapes in (pooler, tables, *(row.shapes(config) for row in CLASSES)):
        for name, shape in shapes.items():
            if shape not in known.setdefault(name, []):
                known[name].append(shape)
    return known


def _fits(found: Shape, wanted: Shape) -> bool:
    return len(found) == len(wanted) and all(w in (ANY, f) for f, w in zip(found, wanted))
