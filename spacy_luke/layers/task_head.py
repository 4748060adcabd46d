"""The head of a task layer: its initialisation, adding classes to it, and its file format."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import nn

from ..errors import reading
from ..model.network import init_weights
from .archive import Archive
from .shim import Format

INITIAL_STD = 0.02
NEW_LABEL = 5.0
"""By how much the bias of a new label is at least below the highest."""
Part = TypeVar("Part", bound=nn.Module)


@dataclass(frozen=True)
class HeadKind:
    """What differs between the heads of tasks.

    parts: a function from ``hidden``, ``n_classes`` and the kind's own settings to the head's
        modules, by name. One contains the ``classifier``, a linear layer with a row per class.
    width: number of states that a row of that classifier reads.
    architecture: the published class with this classifier; empty if there is none.
    negative: our name for class 0, "none of the labels", of published files that do not have this
        name; empty if all published files use the same name.
    """

    parts: Callable[..., Mapping[str, nn.Module]]
    width: int = 1
    architecture: str = ""
    negative: str = ""


class Head(nn.Module):
    """The trainable modules of a task layer, with a classifier among them.

    config: ``hidden``, ``n_classes`` and the settings of the kind. classes: the names of the
    classes, in the order of the classifier's rows; None if not known (stock components, old files).
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
            initialize = getattr(part, "initialize", None)  # for parts that differ from BERT
            if initialize is not None:
                initialize()

    def part(self, name: str, kind: type[Part]) -> Part:
        """A module of the head by name."""
        part = self.get_submodule(name)
        assert isinstance(part, kind)
        return part

    @property
    def classifier(self) -> nn.Linear:
        """The layer with a row per class."""
        return self.classifiers[0]

    @property
    def classifiers(self) -> list[nn.Linear]:
        """All layers with a row per class: the head's, then those of additions to its logits."""
        names = [x for x, _ in self.named_modules() if x.endswith("classifier")]
        return [self.part(name, nn.Linear) for name in names]

    @property
    def n_classes(self) -> int:
        return self.config["n_classes"]

    def set_dropout(self, rate: float) -> None:
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate

    @torch.inference_mode(False)
    def resize(self, rows: Sequence[int | None]) -> "Head":
        """A head whose class i is the present class rows[i], or a new one if that is None, which is
        improbable until it is learned (:meth:`_new_bias`).

        rows [0, None, 1] insert a new class between two.
        """
        result = Head(self.kind, **{**self.config, "n_classes": len(rows)})
        of_classes = {id(x) for layer in self.classifiers for x in layer.parameters()}
        fresh = dict(result.named_parameters())
        kept = [(i, row) for i, row in enumerate(rows) if row is not None]
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if id(parameter) not in of_classes:
                    fresh[name].copy_(parameter)
            for old, new in zip(self.classifiers, result.classifiers):
                if old.bias is not None and kept:
                    new.bias.fill_(self._new_bias(old.bias))
                for i, row in kept:
                    new.weight[i] = old.weight[row]
                    if old.bias is not None:
                        new.bias[i] = old.bias[row]
        return result

    def _new_bias(self, present: torch.Tensor) -> torch.Tensor:
        """Of a new class: by ``NEW_LABEL`` less than the highest that is there or, as labels may be
        independent of each other (0 is even then), than 0; and no more than the lowest. (Not less
        than the lowest: each label would begin lower than the one that was added before it.)

        If labels are apart from "no entity" (``label_weight``), they share what is probably an
        entity, and a single one has had nothing to learn: then by as much less than the highest of
        a label.
        """
        labels = present[:-1]  # the last is "no entity"
        if "label_weight" in self.config and len(labels):
            return labels.max() - NEW_LABEL
        return torch.minimum(present.min(), present.max().clamp(max=0) - NEW_LABEL)


def head_format(kind: HeadKind) -> Format:
    """The functions that save and load heads of a kind."""
    return Format(_save, partial(_load, kind))


def _save(head: Head) -> bytes:
    texts = {} if head.classes is None else {"classes": head.classes}
    return Archive("head", head.config, head.state_dict(), texts).to_bytes()


def _load(kind: HeadKind, data: bytes) -> Head:
    with reading("The saved head"):
        archive = Archive.from_bytes("head", data)
        head = Head(kind, **archive.config)
        head.load_state_dict(archive.tensors)
        names = archive.texts.get("classes")
        if names is not None:  # JSON has no tuples
            head.classes = [tuple(x) if isinstance(x, list) else x for x in names]
    return head
