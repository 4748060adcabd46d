"""The file format of modules in a pipeline: safetensors with a JSON header.

An archive contains the kind of a module, its configuration, its tensors and its texts (JSON). It is
read without running code from it.
"""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, load_file, save, save_file

from ..errors import CheckpointError
from ..files import beside, whole_file

VERSION = "2"
_TEXT = "text:"
_ALIGNMENT = 64


@dataclass
class Archive:
    """A module's kind, its configuration, tensors and JSON texts."""

    kind: str
    config: dict[str, Any]
    tensors: dict[str, torch.Tensor]
    texts: dict[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The archive as bytes, which are the same for the same content in every process."""
        data = save(self._tensors(), metadata=self._header())
        length = int.from_bytes(data[:8], "little")
        return b"".join([_aligned_header(data[8 : 8 + length]), memoryview(data)[8 + length :]])

    def to_file(self, path: Path) -> None:
        """Write a file. An existing file, which open pipelines may read, is replaced by renaming.
        Raises OSError if it cannot be written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as aligned, beside(path) as unaligned:
            try:
                save_file(self._tensors(), unaligned, metadata=self._header())
            except SafetensorError as err:  # of the disk, which may be full
                raise OSError(f"{path} cannot be written: {err}.") from err
            _align(unaligned, aligned)

    @classmethod
    def from_bytes(cls, kind: str, data: bytes) -> "Archive":
        """Raises CheckpointError if the data is not a complete archive of this kind and version."""
        try:
            length = int.from_bytes(data[:8], "little")
            header = dict(json.loads(data[8 : 8 + length])["__metadata__"])
        except (ValueError, KeyError, TypeError, MemoryError, OverflowError) as err:
            raise CheckpointError(f"The saved {kind} is damaged: {err!r}.") from err
        _check(kind, header, f"the saved {kind}")
        try:
            return cls._unpack(kind, header, load(data), f"The saved {kind}")
        except SafetensorError as err:
            raise CheckpointError(f"The saved {kind} is damaged: {err}.") from err

    @classmethod
    def from_file(cls, kind: str, path: Path) -> "Archive":
        """Read an archive. Its tensors are mapped into memory, so unused ones are not read. Raises
        CheckpointError as :meth:`from_bytes`."""
        try:
            str(path).encode("utf8")  # safetensors cannot open other paths
        except UnicodeEncodeError:
            return cls.from_bytes(kind, path.read_bytes())
        try:
            with safe_open(path, "pt") as file:
                header = dict(file.metadata() or {})
            _check(kind, header, str(path))
            return cls._unpack(kind, header, load_file(path), str(path))
        except (SafetensorError, OSError) as err:
            raise CheckpointError(f"{path} is missing or damaged: {err}.") from err

    def _tensors(self) -> dict[str, torch.Tensor]:
        """All tensors, with the texts as tensors of bytes."""
        tensors = {name: x.detach().cpu().contiguous() for name, x in self.tensors.items()}
        for name, content in self.texts.items():
            data = bytearray(json.dumps(content, ensure_ascii=False).encode("utf8"))
            tensors[_TEXT + name] = torch.frombuffer(data, dtype=torch.uint8)
        return tensors

    def _header(self) -> dict[str, str]:
        return {"spacy-luke": self.kind, "version": VERSION, "config": json.dumps(self.config)}

    @classmethod
    def _unpack(
        cls, kind: str, header: dict[str, str], all_tensors: dict[str, torch.Tensor], source: str
    ) -> "Archive":
        try:
            texts = {
                name[len(_TEXT) :]: json.loads(bytes(tensor.numpy()).decode("utf8"))
                for name, tensor in all_tensors.items()
                if name.startswith(_TEXT)
            }
            config = json.loads(header["config"])
        except (ValueError, KeyError) as err:
            raise CheckpointError(f"{source} is damaged: {err!r}.") from err
        tensors = {name: x for name, x in all_tensors.items() if not name.startswith(_TEXT)}
        return cls(kind, config, tensors, texts)


def _align(source: Path, target: Path) -> None:
    """Copy a file, with its header as :func:`_aligned_header` writes it."""
    with source.open("rb") as old, target.open("wb") as new:
        new.write(_aligned_header(old.read(int.from_bytes(old.read(8), "little"))))
        shutil.copyfileobj(old, new, 1 << 20)


def _aligned_header(header: bytes) -> bytes:
    """The header after its length, with sorted metadata (the library's order is random).

    It is padded with spaces (which the format allows), so that the tensors start at a multiple of
    64 bytes, as in memory that torch allocates. Otherwise the last bits of results would differ.
    """
    values = json.loads(header)
    values["__metadata__"] = dict(sorted(values["__metadata__"].items()))
    header = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf8")
    header += b" " * (-(8 + len(header)) % _ALIGNMENT)
    return len(header).to_bytes(8, "little") + header


def _check(kind: str, header: dict[str, str], source: str) -> None:
    if header.get("spacy-luke") != kind or header.get("version") != VERSION:
        raise CheckpointError(
            f"Expected a spacy-luke {kind} (version {VERSION}), found "
            f"{header.get('spacy-luke')!r} (version {header.get('version')!r}) in {source}."
        )
