"""Weight files of a directory to tensors. Nothing is ever unpickled freely."""

import json
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from ..errors import CheckpointError

Weights = dict[str, torch.Tensor]
_NAMES = ("model.safetensors", "pytorch_model.bin")


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


def weight_files(directory: Path) -> list[Path]:
    """``model.safetensors`` or ``pytorch_model.bin``, or the parts that its index names.

    Raises CheckpointError where there are none, or the index is damaged or points elsewhere.
    """
    for name in _NAMES:
        if (directory / name).exists():
            return [directory / name]
        index = directory / f"{name}.index.json"
        if index.exists():
            return _indexed(index)
    raise CheckpointError(
        f"{directory} has no weights: expected model.safetensors or pytorch_model.bin."
    )


def read_weights(directory: Path) -> Weights:
    """All tensors of :func:`weight_files`. safetensors are mapped, not copied.

    Raises CheckpointError naming the file that is missing, truncated or not what it says.
    """
    weights: Weights = {}
    for path in weight_files(directory):
        found = _read_file(path)
        twice = sorted(set(found) & set(weights))
        if twice:
            raise CheckpointError(f"{path} holds {twice[0]}, which another part holds too.")
        weights.update(found)
    absent = sorted(_indexed_names(directory) - set(weights))
    if absent:
        raise CheckpointError(f"{directory}: the index names {absent[0]}, which no part holds.")
    return weights


def _indexed_names(directory: Path) -> set[str]:
    """The tensors that the index of a checkpoint in parts names; none for one in one file."""
    (first, *_) = weight_files(directory)
    for name in _NAMES:
        if first == directory / name:
            return set()
        index = directory / f"{name}.index.json"
        if index.exists():
            return set(json.loads(index.read_text(encoding="utf8"))["weight_map"])
    return set()


def _indexed(index: Path) -> list[Path]:
    try:
        weight_map = json.loads(index.read_text(encoding="utf8"))["weight_map"]
        parts = sorted({str(part) for part in weight_map.values()})
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as err:
        raise CheckpointError(f"{index} is no index of weight files: {err!r}.") from err
    for part in parts:
        if Path(part).name != part or part in ("", ".."):
            raise CheckpointError(f"{index} points outside its directory: {part!r}.")
        if not (index.parent / part).exists():
            raise CheckpointError(f"{index} names {part!r}, which is missing.")
    if not parts:
        raise CheckpointError(f"{index} names no files: weight_map is empty.")
    return [index.parent / part for part in parts]


def _read_file(path: Path) -> Weights:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        weights = _load_bin(path)
    except pickle.UnpicklingError as err:
        raise CheckpointError(
            f"{path} holds more than tensors, which is not loaded: a pickle can run code."
        ) from err
    except Exception as err:  # torch.load raises whatever its parser ran into
        raise CheckpointError(f"{path} is damaged or no weight file: {err}") from err
    if isinstance(weights, dict) and isinstance(weights.get("module"), dict):
        weights = weights["module"]  # as DeepSpeed wraps them
    if not isinstance(weights, dict) or not all(
        isinstance(tensor, torch.Tensor) for tensor in weights.values()
    ):
        raise CheckpointError(f"{path} is no mapping of names to tensors.")
    return weights


def _load_bin(path: Path) -> Any:
    """Tensors are mapped where the file's format allows it: that of today, not the oldest."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        raise
    except Exception:  # the oldest format
        return torch.load(path, map_location="cpu", weights_only=True)
