"""A model's name to a directory on this machine."""

from pathlib import Path

from ..errors import CheckpointError

_FILES = ["*.json", "*.jsonl", "*.tsv", "*.txt", "*.safetensors", "*.model"]


def resolve(name: str, weights: bool = True) -> Path:
    """The directory of a checkpoint: ``name`` itself, or its snapshot from the hub.

    weights: False where only the tokenizer is wanted.

    ``huggingface_hub`` keeps the snapshot in its cache and honours ``HF_HOME`` and
    ``HF_HUB_OFFLINE``. Raises CheckpointError where nothing is found.
    """
    path = Path(name).expanduser()
    if name and path.is_dir():
        return path
    if not name or path.is_absolute() or name.startswith(".") or name.count("/") > 1:
        raise CheckpointError(f"There is no directory {name!r} to read an encoder from.")
    from huggingface_hub import snapshot_download

    try:
        wanted = [x for x in _FILES if weights or x != "*.safetensors"]
        snapshot = Path(snapshot_download(name, allow_patterns=wanted))
        if weights and not any(snapshot.glob("*.safetensors")):
            snapshot = Path(snapshot_download(name, allow_patterns=[*_FILES, "*.bin"]))
    except Exception as err:  # the hub's errors have no common base
        raise CheckpointError(
            f"{name!r} is no directory here and could not be had from the hub or its cache: {err}"
        ) from err
    return snapshot
