"""Checkpoints of a training: written at once or not at all, gone on from exactly."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..errors import CheckpointError, StageError
from ..files import remove_folder, remove_unfinished, sha256_of, whole_folder
from .claim import refuse_other
from .disk import read_json, write_json

_NAME = "checkpoint-{:09d}"
_FILES = ("model.safetensors", "optimizer.pt")


@dataclass
class Resumed:
    """step: updates done. totals: sums since the last record of the log, where they are known.
    weights: of the model, by name. optimizer: its state."""

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
    # In full: JSON would round them.
    state = {"step": step, "totals": [float(x).hex() for x in totals], "identity": identity}
    try:
        with whole_folder(target, durable=True) as temporary:
            _write(temporary, weights, optimizer, state)
    except (OSError, RuntimeError, SafetensorError) as error:  # torch has no error of its own
        raise StageError(
            f"{target} cannot be written: {error}. Is the disk full? Make room and start again: "
            "the checkpoint before it is kept."
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


def load_latest(folder: Path, identity: Mapping[str, Any]) -> Resumed | None:
    """The last checkpoint, or None. Raises ConfigError where it is of another training, and
    CheckpointError or StageError where a file is damaged."""
    found = list(_checkpoints(folder))
    if not found:
        return None
    path = found[-1]
    state = read_json(path / "state.json")
    refuse_other(folder, state["identity"], identity)
    for name, expected in state["sha256"].items():
        if not (path / name).exists() or sha256_of(path / name) != expected:
            raise CheckpointError(
                f"{path / name} is not what was written. Remove {path.name} to go on from the "
                "checkpoint before it."
            )
    try:
        weights = load_file(path / _FILES[0])
        optimizer = torch.load(path / _FILES[1], weights_only=True, map_location="cpu")
    except (SafetensorError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    totals = [float.fromhex(x) for x in state.get("totals", [])]
    return Resumed(state["step"], totals, weights, optimizer)


def _checkpoints(folder: Path) -> Iterator[Path]:
    """Finished checkpoints, oldest first."""
    if folder.exists():
        yield from sorted(path.parent for path in folder.glob("checkpoint-*/state.json"))
