"""The base of components whose classes are fixed, or of which there are none to name."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import ConfigError
from ..layers.published_head import load_published_head
from ..layers.task_layer import Query, Scores, head_of, initialize_head
from .classifier_pipe import ClassifierPipe


class WithoutLabels(ClassifierPipe[Query, Scores]):
    """A component without labels.

    classes: of the classifier's rows. answer_label: the label of what it finds, for calibration.
    """

    classes: ClassVar[tuple[str, ...]] = ()
    answer_label: ClassVar[str] = ""

    def _classes(self) -> list[Any]:
        return list(self.classes)

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        return ()

    @property
    def label_data(self) -> None:  # type: ignore[override]  # spaCy: nothing to write to a file
        return None

    @property
    def is_resizable(self) -> bool:
        return False

    @property
    def answer_labels(self) -> tuple[str, ...]:
        return (self.answer_label,)

    def initialize(  # type: ignore[override]  # without labels, which would be ignored
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
    ) -> None:
        super().initialize(get_examples, nlp=nlp)

    def add_label(self, label: str) -> int:
        raise ConfigError(f"{self.name} has no labels, so {label!r} cannot be added.")

    def _initialize_classes(self, names: set[str], **config: Any) -> None:
        initialize_head(self.model, len(self.classes), **config)
        head_of(self.model).classes = self._classes()
        load_published_head(self.model, self._classes())
