"""Resolve the name of a model to a local directory."""

from pathlib import Path

from ..errors import CheckpointError

_FILES = ["*.json", "*.jsonl", "*.tsv", "*.txt", "*.safetensors", "*.model"]


def resolve(name: str, weights: bool = True) -> Path:
    """The directory of a checkpoint: ``name`` itself, or its snapshot from the hub.

    weights: if false, only the tokenizer is downloaded.

    ``huggingface_hub`` keeps the snapshot in its cache and respects ``HF_HOME`` and
    ``HF_HUB_OFFLINE``. Raises CheckpointError if the checkpoint is not available.
    """
    path = Path(name).expanduser()
    if name and path.is_dir():
        return path
    if not name or path.is_absolute() or name.startswith(".") or name.count("/") > 1:
        raise CheckpointError(f"The encoder's directory {name!r} does not exist.")
    from huggingface_hub import snapshot_download

    try:
        patterns = [x for x in _FILES if weights or x != "*.safetensors"]
        snapshot = Path(snapshot_download(name, allow_patterns=patterns))
        if weights and not any(snapshot.glob("*.safetensors")):
            snapshot = Path(snapshot_download(name, allow_patterns=[*_FILES, "*.bin"]))
    except Exception as err:  # the hub's errors have no common base
        raise CheckpointError(
            f"{name!r} is not a directory and cannot be loaded from the hub or its cache: {err}"
        ) from err
    return snapshot
