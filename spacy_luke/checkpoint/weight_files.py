"""Read the weight files of a directory. Pickles are restricted to tensors."""

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
        raise CheckpointError(f"{directory} has no config.json: it is not a checkpoint.")
    return read_object(directory / "config.json")


def weight_files(directory: Path) -> list[Path]:
    """``model.safetensors`` or ``pytorch_model.bin``, or the parts listed in its index.

    Raises CheckpointError if there are none, or the index is damaged or lists files elsewhere.
    """
    file, parts = _listed(directory)
    return [directory / part for part in sorted(set(parts.values()))] or [file]


def file_of(directory: Path, *tensors: str) -> Path:
    """The weight file that contains the tensors, for messages. If they are not all in one part, the
    index. tensors: names as returned by :func:`.names.strip_prefix`."""
    file, parts = _listed(directory)
    short = strip_prefix(parts)
    containing = {part for name, part in parts.items() if short[name] in tensors}
    in_one_part = len(containing) == 1 and set(tensors) <= set(short.values())
    return directory / containing.pop() if in_one_part else file


def _listed(directory: Path) -> tuple[Path, dict[str, str]]:
    """The weight file and {}; or the index of several parts, and tensor -> part."""
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
        raise CheckpointError(
            f"{index} is not an index of weight files: weight_map is {weight_map!r}."
        )
    for part in sorted({str(part) for part in weight_map.values()}):
        if Path(part).name != part or part in ("", ".."):
            raise CheckpointError(f"{index} points outside its directory: {part!r}.")
        if not (index.parent / part).exists():
            raise CheckpointError(f"{index} lists {part!r}, which is missing.")
    if not weight_map:
        raise CheckpointError(f"{index} lists no files: weight_map is empty.")
    return {name: str(part) for name, part in weight_map.items()}


def read_weights(directory: Path) -> Weights:
    """All tensors of :func:`weight_files`. safetensors are memory-mapped.

    Raises CheckpointError, with the file, if one is missing, truncated or of another format.
    """
    weights: Weights = {}
    for path in weight_files(directory):
        tensors = _read_file(path)
        repeated = sorted(set(tensors) & set(weights))
        if repeated:
            raise CheckpointError(f"{path} contains {repeated[0]}, as does another part.")
        weights.update(tensors)
        for name, tensor in tensors.items():
            if tensor.dtype not in _PRECISIONS and tensor.is_floating_point():
                raise CheckpointError(
                    f"{path}: {name} has dtype {tensor.dtype}, which is not supported."
                )
    file, parts = _listed(directory)
    missing = sorted(set(parts) - set(weights))
    if missing:
        raise CheckpointError(f"{file} lists {missing[0]}, which is in no part.")
    return weights


def _read_file(path: Path) -> Weights:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        weights = _load_bin(path)
    except pickle.UnpicklingError as err:
        raise CheckpointError(
            f"{path} contains more than tensors. It is not loaded, because a pickle can run code."
        ) from err
    except Exception as err:  # torch.load raises errors of many types
        raise CheckpointError(f"{path} is damaged or not a weight file: {err}") from err
    if isinstance(weights, dict) and isinstance(weights.get("module"), dict):
        weights = weights["module"]  # as DeepSpeed wraps them
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor)
        for name, tensor in weights.items()
    ):
        raise CheckpointError(f"{path} is not a mapping of names to tensors.")
    for name, tensor in weights.items():
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise CheckpointError(f"{path}: {name} is sparse or quantized, which is not supported.")
    return weights


def _load_bin(path: Path) -> Any:
    """Load tensors, memory-mapped if the file's format supports it."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        raise
    except Exception:  # the format of torch < 1.6 cannot be mapped
        return torch.load(path, map_location="cpu", weights_only=True)
