"""Checkpoints of a training: written atomically, resumed exactly."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..errors import CheckpointError, StageError
from ..files import remove_folder, remove_unfinished, sha256_of, whole_folder
from .disk import read_json, write_json
from .stage_lock import check_same

_NAME = "checkpoint-{:09d}"
_FILES = ("model.safetensors", "optimizer.pt")


@dataclass
class SavedState:
    """The content of a checkpoint.

    step: number of updates. totals: sums since the last log record; empty if unknown. weights: of
    the model, by name. optimizer: its state.
    """

    step: int
    totals: list[float]
    weights: dict[str, torch.Tensor]
    optimizer: dict[str, Any]


def save_checkpoint(
    folder: Path,
    step: int,
    totals: Sequence[float],
    weights: Mapping[str, torch.Tensor],
    optimizer: Mapping[str, Any],
    identity: Mapping[str, Any],
    keep: int,
) -> None:
    """Write ``checkpoint-STEP`` and remove all but the last ``keep``."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / _NAME.format(step)
    remove_unfinished(folder)
    # As hexadecimal, because JSON would round them.
    state = {"step": step, "totals": [float(x).hex() for x in totals], "identity": identity}
    try:
        with whole_folder(target, durable=True) as temporary:
            _write(temporary, weights, optimizer, state)
    except (OSError, RuntimeError, SafetensorError) as error:  # torch raises RuntimeError
        raise StageError(
            f"{target} cannot be written: {error}. Is the disk full? Free space and start again: "
            "the previous checkpoint is kept."
        ) from error
    for old in list(_checkpoints(folder))[:-keep]:
        remove_folder(old)


def _write(
    folder: Path,
    weights: Mapping[str, torch.Tensor],
    optimizer: Mapping[str, Any],
    state: Mapping[str, Any],
) -> None:
    save_file({k: v.detach().cpu().contiguous() for k, v in weights.items()}, folder / _FILES[0])
    torch.save(optimizer, folder / _FILES[1])
    hashes = {name: sha256_of(folder / name) for name in _FILES}
    write_json(folder / "state.json", {**state, "sha256": hashes})


def load_latest(folder: Path, identity: Mapping[str, Any]) -> SavedState | None:
    """The last checkpoint, or None. Raises ConfigError if it belongs to another training, and
    CheckpointError or StageError if a file is damaged."""
    checkpoints = list(_checkpoints(folder))
    if not checkpoints:
        return None
    path = checkpoints[-1]
    state = read_json(path / "state.json")
    missing = {"identity", "sha256", "step"} - state.keys()
    if missing:
        raise CheckpointError(
            f"{path / 'state.json'} is damaged: it has no {', '.join(sorted(missing))}. Remove "
            f"{path.name} to resume from the previous checkpoint."
        )
    check_same(folder, state["identity"], identity)
    for name, expected in state["sha256"].items():
        if not (path / name).exists() or sha256_of(path / name) != expected:
            raise CheckpointError(
                f"{path / name} is damaged: its SHA-256 differs. Remove {path.name} to resume from "
                "the previous checkpoint."
            )
    try:
        weights = load_file(path / _FILES[0])
        optimizer = torch.load(path / _FILES[1], weights_only=True, map_location="cpu")
    except (SafetensorError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    totals = [float.fromhex(x) for x in state.get("totals", [])]
    return SavedState(state["step"], totals, weights, optimizer)


def _checkpoints(folder: Path) -> Iterator[Path]:
    """Complete checkpoints, oldest first."""
    if folder.exists():
        yield from sorted(path.parent for path in folder.glob("checkpoint-*/state.json"))
