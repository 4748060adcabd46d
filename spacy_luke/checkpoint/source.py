"""What a file said beside the network's weights: enough to write the same file again."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import CheckpointError
from ..files import sha256_of
from .names import BODY, TIED, Weights, is_extra_query, plain_query, strip_prefix
from .weight_files import file_of


@dataclass
class Source:
    """Where an encoder was read from, and in what form.

    name: on the hub, or of the directory, without its path. sha256: of its weight files, one after
    the other. architecture: the published class. prefix: what stands before the names of the
    encoder's tensors. renamed: name -> name in the file, where more than the prefix differs.
    tied: decoders the file holds that are copies of a table. filled: projections it lacks, which
    start as copies of ``query``. dtypes: tensors kept in another precision than float32.
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
        """Raises CheckpointError for anything but what :meth:`to_dict` gives."""
        try:
            return cls(**values)
        except TypeError as err:
            raise CheckpointError(f"The record of an encoder's source is damaged: {err}.") from err


def describe(found: Weights, files: Sequence[Path], directory: Path) -> tuple[Weights, Source]:
    """Tensors of a file under their names without prefix, copies of tables left out; and how to
    come back. Raises CheckpointError where two tensors have one name."""
    source = Source(sha256=sha256_of(*files))
    short = strip_prefix(found)
    words = next((x for x in found if x.endswith("embeddings.word_embeddings.weight")), "")
    source.prefix = words[: -len("embeddings.word_embeddings.weight")] if words else ""
    published: Weights = {}
    addresses: set[int] = set()
    for name, tensor in found.items():
        if tensor.numel() and tensor.data_ptr() in addresses:
            tensor = tensor.clone()  # safetensors writes no two names for one memory
        addresses.add(tensor.data_ptr())
        key = short[name]
        if key in published:
            raise CheckpointError(
                f"{file_of(directory, key)}: the weights hold {key} under two names."
            )
        published[key] = tensor
        if _full(key, source.prefix) != name:
            source.renamed[key] = name
        if tensor.dtype != torch.float32:
            source.dtypes[key] = str(tensor.dtype).removeprefix("torch.")
    for copy, original in TIED.items():
        one, other = published.get(copy), published.get(original)
        if one is not None and other is not None and torch.equal(one, other):
            del published[copy]
            source.tied.append(copy)
    return published, source


def untrained_queries(published: Weights, source: Source) -> list[str]:
    """The extra queries, where the file has none and all still equal ``query``; else nothing.

    Without them plain attention gives the same answers (Yamada et al. 2020, section 3.2). Were some
    written and others not, a reader would have to draw those."""
    extra = [name for name in published if is_extra_query(name)]
    filled = set(source.filled)
    same = all(
        name in filled and torch.equal(published[name], published[plain_query(name)])
        for name in extra
    )
    return extra if same else []


def as_in_file(published: Weights, source: Source) -> Weights:
    """Undo :func:`describe`: what the file held, under its names and in its precision.

    Projections that the file lacks stay out until one is trained; a tensor whose values the file's
    precision cannot hold stays in float32.
    """
    left_out = set(untrained_queries(published, source))
    tensors = {name: x for name, x in published.items() if name not in left_out}
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
