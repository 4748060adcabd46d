"""Components that are asked about a document: their questions or queries stand in it."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from spacy.pipeline import TrainablePipe
from spacy.training import Example

from ..layers.task_layer import Query, Scores
from ..report import LOGGER
from .without_labels import WithoutLabels


class Asked(WithoutLabels[Query, Scores]):
    """A component that answers what the document asks.

    asked, answered: what stands in a document, and what the component finds, for messages.
    """

    asked: ClassVar[str] = ""
    answered: ClassVar[str] = ""
    _says_unasked = True

    def _are_asked(self, examples: Sequence[Example]) -> bool:
        """Whether a predicted document is asked anything, or no reference is scored."""
        raise NotImplementedError

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """See the component's scorer. In ``spacy evaluate``, whose documents ask nothing, nothing
        is scored, and other components are; a warning is logged the first time. After an update
        that is an error of the scorer."""
        examples = list(examples)
        if self._n_updates or self.scorer is None or self._are_asked(examples):
            return super().score(examples, **kwargs)
        if self._says_unasked:
            self._says_unasked = False
            LOGGER.warning(
                "%s: %s are not scored, because no predicted document has the %s of its "
                "reference. 'spacy luke evaluate' sets them.",
                self.name,
                self.answered,
                self.asked,
            )
        return TrainablePipe.score(self, [], **kwargs)
