"""Labels of a component with a classifier: collected, added to a trained one, read with it."""

from collections.abc import Iterable
from typing import Any

from thinc.api import Model

from ..errors import ConfigError
from ..layers.head_module import (
    head_of,
    initialize_head,
    load_published_head,
    published_labels,
    set_head,
)
from ..report import LOGGER
from .saving import KeepsEncoderApart

PUBLISHED_MODES = ("full", "markers")
"""The ways to ask that published classifiers were trained with, of spans and of given entities."""


class Labelled(KeepsEncoderApart):
    """A component whose classes are its labels and, by a subclass, some more.

    ``cfg["labels"]`` holds the labels. A subclass says in which order its classifier has the
    classes (``_classes``), and where the classifier is if not in ``model`` itself (``network``).
    """

    model: Model
    cfg: dict[str, Any]
    published_nil = ""
    """The class of a published checkpoint that is no label."""

    def _classes(self) -> list[Any]:
        """The classes in the classifier's order."""
        raise NotImplementedError

    @property
    def network(self) -> Model:
        """The node that holds the classifier."""
        return self.model

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> list[str]:
        return list(self.labels)

    @property
    def is_resizable(self) -> bool:
        return True

    def add_label(self, label: str) -> int:
        """Add a label; a trained component keeps what it knows of the others.

        Returns 1, or 0 if the label was there. Raises ConfigError for what cannot be a label, as
        the published name of the class that is none.
        """
        old = self._classes()
        if not self._append(label):
            return 0
        if self.network.maybe_get_dim("nO") is not None:
            rows = [old.index(x) if x in old else None for x in self._classes()]
            set_head(self.network, head_of(self.network).resize(rows))
            self._tell_size()
        return 1

    def _append(self, label: Any) -> bool:
        if not isinstance(label, str) or not label or label == self.published_nil:
            raise ConfigError(f"{self.name}: {label!r} cannot be a label.")
        if label in self.labels:
            return False
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return True

    def _initialize_classes(self, names: Iterable[str], absent: str) -> None:
        """Take the labels of the data, or those of a published classifier, and draw or read the
        classifier. The encoder has its weights. absent: what to say where there are no labels."""
        names = set(names)
        if not names and not self.labels:
            published = published_labels(self.network)
            if published and self.published_nil in set(self._classes()) - set(published):
                raise ConfigError(
                    f"{self.name}: the published classifier has no class {self.published_nil!r}, "
                    "and one of our own would be guessed. In id2label of its config.json, give "
                    f"that name to the class that means none of the labels {published}."
                )
            names = set(published) - {self.published_nil}
        for label in sorted(names):
            self._append(label)
        if not self.labels:
            raise ConfigError(
                f"{self.name}: no labels. {absent} Labels may also be given as "
                f"[initialize.components.{self.name}] labels."
            )
        initialize_head(self.network, len(self._classes()))
        self._tell_size()
        found = load_published_head(self.network, self._classes())
        if found:
            LOGGER.info("%s: classifier rows read from the checkpoint: %s.", self.name, found)
            self._warn_of_mode()

    def _warn_of_mode(self) -> None:
        mode = self.network.attrs["settings"].mode
        if mode not in PUBLISHED_MODES:
            LOGGER.warning(
                "%s: the checkpoint's classifier was trained in mode %s, and here mode is %s: "
                "until it is trained again its answers are not those of the checkpoint. Set mode, "
                "or use 'spacy luke import'.",
                self.name,
                " or ".join(PUBLISHED_MODES),
                mode,
            )

    def _tell_size(self) -> None:
        self.model.set_dim("nO", len(self._classes()), force=True)
