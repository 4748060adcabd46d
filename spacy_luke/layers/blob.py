"""Modules to bytes that describe themselves: safetensors with a JSON header.

The one format for everything that travels in a pipeline: it holds the kind of module, its
configuration, its tensors and its files (vocabularies), and is read without running code.
"""

import json
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from ..errors import CheckpointError

VERSION = "1"
_FILE = "file:"


def to_blob(
    kind: str,
    config: dict[str, Any],
    tensors: dict[str, torch.Tensor],
    files: dict[str, Any] | None = None,
) -> bytes:
    """Pack a configuration, tensors and JSON files."""
    everything = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    for name, content in (files or {}).items():
        data = bytearray(json.dumps(content, ensure_ascii=False).encode("utf8"))
        everything[_FILE + name] = torch.frombuffer(data, dtype=torch.uint8)
    header = {"spacy-luke": kind, "version": VERSION, "config": json.dumps(config)}
    return save(everything, metadata=header)


def from_blob(
    kind: str, data: bytes
) -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, Any]]:
    """Unpack: configuration, tensors, files. Raises CheckpointError for anything that is not
    a whole blob of this kind and version."""
    header = _header(data)
    if header.get("spacy-luke") != kind or header.get("version") != VERSION:
        raise CheckpointError(
            f"Expected a spacy-luke {kind} (version {VERSION}), found "
            f"{header.get('spacy-luke')!r} (version {header.get('version')!r})."
        )
    try:
        everything = load(data)
    except SafetensorError as err:
        raise CheckpointError(f"The saved {kind} is damaged: {err}.") from err
    tensors = {name: t for name, t in everything.items() if not name.startswith(_FILE)}
    try:
        files = {
            name[len(_FILE) :]: json.loads(bytes(tensor.numpy()).decode("utf8"))
            for name, tensor in everything.items()
            if name.startswith(_FILE)
        }
        return json.loads(header["config"]), tensors, files
    except (ValueError, KeyError) as err:
        raise CheckpointError(f"The saved {kind} is damaged: {err!r}.") from err


def _header(data: bytes) -> dict[str, str]:
    try:
        length = int.from_bytes(data[:8], "little")
        return dict(json.loads(data[8 : 8 + length])["__metadata__"])
    except (ValueError, KeyError, TypeError, MemoryError, OverflowError) as err:
        raise CheckpointError(f"The saved model is damaged: {err!r}.") from err
