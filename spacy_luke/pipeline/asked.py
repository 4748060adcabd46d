"""Components that are asked about a document: their questions or queries stand in it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.training import Example

from ..layers.task_layer import Query, Scores
from ..report import LOGGER
from .tokenizer import Tokenizer
from .without_labels import WithoutLabels


class Asked(WithoutLabels[Query, Scores]):
    """A component that answers what the document asks.

    asked, answered: what stands in a document, and what the component finds, for messages.
    make_doc: from the text of a question or query.
    """

    make_doc: Tokenizer

    asked: ClassVar[str] = ""
    answered: ClassVar[str] = ""
    _says_unasked = True

    def initialize(  # type: ignore[override]  # without labels, as its base class
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Read the encoder's weights, and count what cannot be predicted."""
        if nlp is not None:  # whose tokenizer may be another than when the component was made
            self.make_doc = nlp.tokenizer
        super().initialize(get_examples, nlp=nlp)

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
