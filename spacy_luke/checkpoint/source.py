"""The form of a published file: what is needed to write the same file again."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import CheckpointError
from ..files import sha256_of
from ..report import LOGGER
from .names import BODY, TIED, Weights, is_extra_query, plain_query, strip_prefix
from .weight_files import file_of


@dataclass
class Source:
    """The origin of an encoder and the form of its files.

    name: on the hub, or of the directory (without its path).
    sha256: of its concatenated weight files.
    architecture: the published class.
    prefix: of the names of the encoder's tensors.
    renamed: name -> name in the file, if they differ by more than the prefix.
    tied: decoders in the file that are copies of a table.
    filled: extra queries that the file lacks; they were initialised as copies of ``query``.
    dtypes: name -> dtype, of tensors that are not float32.
    """

    name: str = ""
    sha256: str = ""
    architecture: str = ""
    prefix: str = "luke."
    renamed: dict[str, str] = field(default_factory=dict)
    tied: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)
    dtypes: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Source":
        """The inverse of :meth:`to_dict`. Raises CheckpointError if the values are damaged."""
        try:
            return cls(**values)
        except TypeError as err:
            raise CheckpointError(f"The record of an encoder's source is damaged: {err}.") from err


def describe(tensors: Weights, files: Sequence[Path], directory: Path) -> tuple[Weights, Source]:
    """Returns a file's tensors under their names without prefix, without copies of tables, and the
    description with which :func:`as_in_file` restores the file.

    Raises CheckpointError if two tensors have the same name without prefix.
    """
    source = Source(sha256=sha256_of(*files))
    short = strip_prefix(tensors)
    words = next((x for x in tensors if x.endswith("embeddings.word_embeddings.weight")), "")
    source.prefix = words[: -len("embeddings.word_embeddings.weight")] if words else ""
    published: Weights = {}
    addresses: set[int] = set()
    for name, tensor in tensors.items():
        if tensor.numel() and tensor.data_ptr() in addresses:
            tensor = tensor.clone()  # safetensors cannot write shared memory
        addresses.add(tensor.data_ptr())
        key = short[name]
        if key in published:
            raise CheckpointError(
                f"{file_of(directory, key)}: the weights contain {key} under two names."
            )
        published[key] = tensor
        if _full(key, source.prefix) != name:
            source.renamed[key] = name
        if tensor.dtype != torch.float32:
            source.dtypes[key] = str(tensor.dtype).removeprefix("torch.")
    _tie(published, source, directory)
    return published, source


def _tie(published: Weights, source: Source, directory: Path) -> None:
    """Leave out copies of tables. A copy without its original, as ``transformers`` 5 writes biases,
    takes its name."""
    for copy, original in TIED.items():
        if copy not in published:
            continue
        if original not in published:
            source.renamed[original] = source.renamed.pop(copy, copy)
            published[original] = published.pop(copy)
            if copy in source.dtypes:
                source.dtypes[original] = source.dtypes.pop(copy)
        elif torch.equal(published[copy], published[original]):
            del published[copy]
            source.tied.append(copy)
        else:
            LOGGER.warning(
                "%s: %s differs from %s. Logits of the masked heads use the latter, so they differ "
                "from those of the program that wrote the file.",
                *(file_of(directory, copy), copy, original),
            )


def untrained_queries(published: Weights, source: Source) -> list[str]:
    """The extra queries, if the file lacks them and all still equal ``query``; else an empty list.

    These are not written: plain attention computes the same without them (Yamada et al. 2020,
    section 3.2). All or none are written, because readers initialise missing ones at random."""
    extra = [name for name in published if is_extra_query(name)]
    filled = set(source.filled)
    same = all(
        name in filled and torch.equal(published[name], published[plain_query(name)])
        for name in extra
    )
    return extra if same else []


def as_in_file(published: Weights, source: Source) -> Weights:
    """The inverse of :func:`describe`: the file's tensors under its names and in its precision.

    Extra queries that the file lacks are left out until one of them is trained. A tensor whose
    values the file's precision cannot represent stays in float32.
    """
    omitted = set(untrained_queries(published, source))
    tensors = {name: x for name, x in published.items() if name not in omitted}
    for copy in source.tied:
        if TIED[copy] in tensors:
            tensors[copy] = tensors[TIED[copy]].clone()
    result: Weights = {}
    for name, tensor in tensors.items():
        kept = tensor.detach().cpu()
        dtype = getattr(torch, source.dtypes.get(name, "float32"), kept.dtype)
        if kept.is_floating_point() and torch.equal(kept.to(dtype).to(kept.dtype), kept):
            kept = kept.to(dtype)
        result[source.renamed.get(name) or _full(name, source.prefix)] = kept.contiguous()
    return result


def _full(name: str, prefix: str) -> str:
    return prefix + name if name.startswith(BODY) else name
