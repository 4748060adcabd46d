"""Weight files of a directory to tensors. Nothing is ever unpickled freely."""

import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from ..errors import CheckpointError
from ..json_file import read_object
from .names import Weights, strip_prefix

_PRECISIONS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_NAMES = ("model.safetensors", "pytorch_model.bin")


def read_config(directory: Path) -> dict[str, Any]:
    """``config.json`` as a dict. Raises CheckpointError."""
    if not (directory / "config.json").exists():
        raise CheckpointError(f"{directory} has no config.json: it is no checkpoint.")
    return read_object(directory / "config.json")


def weight_files(directory: Path) -> list[Path]:
    """``model.safetensors`` or ``pytorch_model.bin``, or the parts that its index names.

    Raises CheckpointError where there are none, or the index is damaged or points elsewhere.
    """
    file, parts = _listed(directory)
    return [directory / part for part in sorted(set(parts.values()))] or [file]


def file_of(directory: Path, *tensors: str) -> Path:
    """The weight file that holds tensors, for an error about them; of weights in parts the index,
    where several hold them, or none. tensors: their names by :func:`.names.strip_prefix`."""
    file, parts = _listed(directory)
    short = strip_prefix(parts)
    holders = {part for name, part in parts.items() if short[name] in tensors}
    alone = len(holders) == 1 and set(tensors) <= set(short.values())
    return directory / holders.pop() if alone else file


def _listed(directory: Path) -> tuple[Path, dict[str, str]]:
    """The one weight file; or the index of several, and which of them holds each tensor."""
    for name in _NAMES:
        if (directory / name).exists():
            return directory / name, {}
        index = directory / f"{name}.index.json"
        if index.exists():
            return index, _read_index(index)
    raise CheckpointError(
        f"{directory} has no weights: expected model.safetensors or pytorch_model.bin."
    )


def _read_index(index: Path) -> dict[str, str]:
    weight_map = read_object(index).get("weight_map")
    if not isinstance(weight_map, dict):
        raise CheckpointError(f"{index} is no index of weight files: weight_map is {weight_map!r}.")
    for part in sorted({str(part) for part in weight_map.values()}):
        if Path(part).name != part or part in ("", ".."):
            raise CheckpointError(f"{index} points outside its directory: {part!r}.")
        if not (index.parent / part).exists():
            raise CheckpointError(f"{index} names {part!r}, which is missing.")
    if not weight_map:
        raise CheckpointError(f"{index} names no files: weight_map is empty.")
    return {name: str(part) for name, part in weight_map.items()}


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
        for tensor_name, tensor in found.items():
            if tensor.dtype not in _PRECISIONS and tensor.is_floating_point():
                raise CheckpointError(
                    f"{path}: {tensor_name} is in {tensor.dtype}, which is not read."
                )
    file, parts = _listed(directory)
    absent = sorted(set(parts) - set(weights))
    if absent:
        raise CheckpointError(f"{file} names {absent[0]}, which no part holds.")
    return weights


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
        isinstance(name, str) and isinstance(tensor, torch.Tensor)
        for name, tensor in weights.items()
    ):
        raise CheckpointError(f"{path} is no mapping of names to tensors.")
    for name, tensor in weights.items():
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise CheckpointError(f"{path}: {name} is sparse or quantized, which is not read.")
    return weights


def _load_bin(path: Path) -> Any:
    """Tensors are mapped where the file's format allows it: that of today, not the oldest."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        raise
    except Exception:  # the oldest format
        return torch.load(path, map_location="cpu", weights_only=True)
