"""Weight files of a directory to tensors. Nothing is ever unpickled freely."""

import json
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from ..errors import CheckpointError

Weights = dict[str, torch.Tensor]


def read_config(directory: Path) -> dict[str, Any]:
    """``config.json`` as a dict. Raises CheckpointError."""
    path = directory / "config.json"
    try:
        value = json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise CheckpointError(f"{directory} has no config.json: it is no checkpoint.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as err:
        raise CheckpointError(f"{path} cannot be read as JSON: {err}.") from err
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, not an object.")
    return value


def read_weights(directory: Path) -> Weights:
    """All tensors of ``model.safetensors`` or ``pytorch_model.bin``, whole or sharded.

    Raises CheckpointError naming the file that is missing, truncated or not what it says.
    """
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (directory / name).exists():
            return _read_file(directory / name)
        index = directory / f"{name}.index.json"
        if index.exists():
            return _read_shards(index)
    raise CheckpointError(
        f"{directory} has no weights: expected model.safetensors or pytorch_model.bin."
    )


def _read_shards(index: Path) -> Weights:
    try:
        weight_map = json.loads(index.read_text(encoding="utf8"))["weight_map"]
        shards = sorted({str(shard) for shard in weight_map.values()})
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as err:
        raise CheckpointError(f"{index} is no index of weight files: {err!r}.") from err
    weights: Weights = {}
    for shard in shards:
        if Path(shard).name != shard or shard in ("", ".."):
            raise CheckpointError(f"{index} points outside its directory: {shard!r}.")
        if not (index.parent / shard).exists():
            raise CheckpointError(f"{index} names {shard!r}, which is missing.")
        weights.update(_read_file(index.parent / shard))
    return weights


def _read_file(path: Path) -> Weights:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as err:
        raise CheckpointError(
            f"{path} holds more than tensors, which is not loaded: a pickle can run code."
        ) from err
    except (SafetensorError, RuntimeError, OSError, EOFError, ValueError, KeyError) as err:
        raise CheckpointError(f"{path} is damaged or no weight file: {err}") from err
    if not isinstance(weights, dict) or not all(
        isinstance(tensor, torch.Tensor) for tensor in weights.values()
    ):
        raise CheckpointError(f"{path} is no mapping of names to tensors.")
    return weights
