"""The trainable part of a task layer: how its classes start and grow, and how it is saved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import nn

from ..errors import reading
from ..model.encoder import init_weights
from .blob import Blob
from .shim import Format

INITIAL_STD = 0.02
Part = TypeVar("Part", bound=nn.Module)


@dataclass(frozen=True)
class HeadKind:
    """What tells the heads of tasks apart.

    parts: makes the modules of a head by name, from ``hidden``, ``n_classes`` and the kind's own
        settings. One of them has the ``classifier``, a linear layer with a row per class.
    width: how many states a row of that classifier reads.
    architecture: the published class with this classifier; empty if there is none.
    negative: our name of its class 0, "none of the labels", if no class has that name; empty if
        published files agree on one.
    """

    parts: Callable[..., Mapping[str, nn.Module]]
    width: int = 1
    architecture: str = ""
    negative: str = ""


class Head(nn.Module):
    """A classifier on states, and whatever its kind has beside it.

    config: ``hidden``, ``n_classes`` and the settings of the kind. classes: the names of the
    classes, in the classifier's order; None if nobody named them (stock components, old files).
    """

    def __init__(self, kind: HeadKind, **config: Any):
        super().__init__()
        self.kind, self.config = kind, config
        self.classes: list[Any] | None = None
        parts = kind.parts(**config)
        for name, part in parts.items():
            self.add_module(name, part)
        init_weights(self, INITIAL_STD)
        for part in parts.values():
            draw = getattr(part, "draw", None)  # what BERT's way of drawing does not suit
            if draw is not None:
                draw()

    def part(self, name: str, kind: type[Part]) -> Part:
        """A module of the head by name."""
        found = self.get_submodule(name)
        assert isinstance(found, kind)
        return found

    @property
    def classifier(self) -> nn.Linear:
        """The layer with a row per class."""
        name = next(x for x, _ in self.named_modules() if x.endswith("classifier"))
        return self.part(name, nn.Linear)

    @property
    def n_classes(self) -> int:
        return self.config["n_classes"]

    def set_dropout(self, rate: float) -> None:
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate

    @torch.inference_mode(False)
    def resize(self, rows: Sequence[int | None]) -> "Head":
        """A head whose class i is the present class rows[i], or fresh if that is None."""
        result = Head(self.kind, **{**self.config, "n_classes": len(rows)})
        old, new = self.classifier, result.classifier
        of_classes = {id(parameter) for parameter in old.parameters()}
        fresh = dict(result.named_parameters())
        kept = [(i, row) for i, row in enumerate(rows) if row is not None]
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if id(parameter) not in of_classes:
                    fresh[name].copy_(parameter)
            for i, row in kept:
                new.weight[i] = old.weight[row]
                if old.bias is not None:
                    new.bias[i] = old.bias[row]
        return result


def head_format(kind: HeadKind) -> Format:
    """How heads of a kind are written and read."""
    return Format(_save, partial(_load, kind))


def _save(head: Head) -> bytes:
    texts = {} if head.classes is None else {"classes": head.classes}
    return Blob("head", head.config, head.state_dict(), texts).to_bytes()


def _load(kind: HeadKind, data: bytes) -> Head:
    with reading("The saved head"):
        blob = Blob.from_bytes("head", data)
        head = Head(kind, **blob.config)
        head.load_state_dict(blob.tensors)
        names = blob.texts.get("classes")
        if names is not None:  # JSON has no tuples
            head.classes = [tuple(x) if isinstance(x, list) else x for x in names]
    return head
