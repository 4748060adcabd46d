"""Checks of heads in published files: completeness, names, shapes, values."""

from collections.abc import Mapping
from pathlib import Path

import torch

from ..errors import CheckpointError
from ..model.config import LukeConfig
from .classes import ANY, CLASSES, Shape, class_named
from .names import TIED, is_extra_query
from .weight_files import file_of

# Tensors that any file may contain. They are not checked.
_UNCHECKED = ("embeddings.position_ids", "cls.", "cls_entity_predictions.")


def check_heads(
    others: Mapping[str, torch.Tensor], architecture: str, config: LukeConfig, directory: Path
) -> None:
    """Raise CheckpointError if the head of the file's class is incomplete, or any head has a tensor
    that is unknown, has an invalid shape, or contains NaN or infinite values."""
    missing = sorted(class_named(architecture).head.keys() - others.keys())
    if missing:
        raise CheckpointError(
            f"{file_of(directory, *missing)}: missing weights of a {architecture}: "
            f"{', '.join(missing)}."
        )
    shapes_by_name = _shapes_by_name(config)
    for name, tensor in others.items():
        if name.startswith(_UNCHECKED) or is_extra_query(name):
            continue
        if name not in shapes_by_name:
            raise CheckpointError(f"{file_of(directory, name)}: unknown weights: {name}.")
        shapes = shapes_by_name[name]
        if not any(_fits(tuple(tensor.shape), shape) for shape in shapes):
            raise CheckpointError(
                f"{file_of(directory, name)}: {name} has the shape {list(tensor.shape)}; expected "
                f"{' or '.join(str(list(x)) for x in shapes)} (-1: any)."
            )
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise CheckpointError(
                f"{file_of(directory, name)}: {name} contains NaN or infinite values."
            )


def _shapes_by_name(config: LukeConfig) -> dict[str, list[Shape]]:
    """Every tensor of a head -> its valid shapes."""
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
    shapes_by_name: dict[str, list[Shape]] = {}
    for shapes in (pooler, tables, *(row.shapes(config) for row in CLASSES)):
        for name, shape in shapes.items():
            if shape not in shapes_by_name.setdefault(name, []):
                shapes_by_name[name].append(shape)
    return shapes_by_name


def _fits(shape: Shape, expected: Shape) -> bool:
    return len(shape) == len(expected) and all(e in (ANY, s) for s, e in zip(shape, expected))
