"""What the components share that classify the entities of a document."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotations.mentions import spans_of
from ..layers.given_spans import ClassScores, GivenSpans
from ..report import LOGGER
from .as_in_training import as_in_training, entities_are_learned
from .class_loss import Targets, binary_loss, single_loss
from .classifier_pipe import ClassifierPipe

Array = np.ndarray

MAX_WORDS = 8192
"""Of the documents that are scored at a time, if there are several."""

NOT_GIVEN = (
    "Nothing predicted them there: train with the corpus reader spacy-luke.PresetEntsCorpus.v1, "
    "which gives the predicted side gold entities, or name the component that predicts them in "
    "[training] annotating_components."
)


def given(by_doc: Sequence[Sequence[Span]]) -> GivenSpans:
    """The spans of each document of a batch, flat."""
    flat = [span for spans in by_doc for span in spans]
    table = np.asarray([(span.start, span.end) for span in flat], dtype=np.int64).reshape(-1, 2)
    of_doc = np.repeat(np.arange(len(by_doc)), [len(spans) for spans in by_doc])
    return GivenSpans(table, of_doc, [span.label_ for span in flat])


class OfEntities(Protocol):
    """A query about given entities."""

    @property
    def docs(self) -> Sequence[Doc]: ...

    @property
    def spans(self) -> GivenSpans: ...

    @property
    def of_doc(self) -> Array:
        """(n_rows,) the document of each row."""
        ...


EntityQuery = TypeVar("EntityQuery", bound=OfEntities)


class EntityTask(ClassifierPipe[EntityQuery, ClassScores]):
    """A component that consumes entities.

    A subclass also says how a query is cut by documents, and counts its limits.

    n_unanswered: how many rows got no answer so far, because they have no pieces or are too long.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.n_unanswered = 0
        self._warned = False
        self._reported = False

    def _part(self, query: EntityQuery, low: int, high: int) -> EntityQuery:
        """The query about the documents [low, high) of a batch."""
        raise NotImplementedError

    def _count_limits(self, examples: Iterable[Example]) -> dict[str, int]:
        """Count, and log, what cannot be predicted, and as ``gold`` what there is. The entities are
        those of the predicted sides."""
        return {}

    def predict(self, docs: Iterable[Doc]) -> tuple[EntityQuery, ClassScores]:
        """The query that the documents make, and its scores; documents are not changed."""
        query, scores = super().predict(docs)
        of_doc = query.of_doc
        n_lost = len(of_doc) - len(scores.rows)
        self.n_unanswered += n_lost
        if n_lost and not self._reported:
            self._reported = True
            LOGGER.warning(
                "%s: %d of %d questions have no pieces or are longer than a window, and get no "
                "answer (documents of this batch, counted from 0: %s). This is said once; the "
                "component's n_unanswered counts on.",
                self.name,
                n_lost,
                len(of_doc),
                ", ".join(map(str, np.unique(np.delete(of_doc, scores.rows))[:5].tolist())),
            )
        return query, scores

    def _scores(self, query: EntityQuery) -> ClassScores:
        """A batch may be all that ``nlp.pipe`` buffers, and the states of its words are needed
        until its last row: groups of documents bound them."""
        groups = list(_groups(query.docs))
        if len(groups) < 2:
            return self.model.predict(query)
        rows, logits, n = [], [], 0
        for low, high in groups:
            part = self._part(query, low, high)
            scores = self.model.predict(part)
            rows.append(scores.rows + n)
            logits.append(scores.logits)
            n += len(part.of_doc)
        return ClassScores(np.concatenate(rows), self.model.ops.xp.concatenate(logits))

    def _loss(
        self, query: EntityQuery, scores: ClassScores, targets: Targets
    ) -> tuple[float, ClassScores]:
        classes, known = (x[scores.rows] for x in targets)
        if self.cfg["multi_label"]:
            value, d_logits = binary_loss(self.model.ops, scores.logits, classes, known)
        else:
            value, d_logits = single_loss(self.model.ops, scores.logits, classes)
        return value, scores._replace(logits=d_logits)

    def _before_update(self, query: EntityQuery, targets: Targets) -> EntityQuery:
        if not len(query.spans) and not self._warned:
            self._warned = True
            LOGGER.warning("%s: a batch without any entity. %s", self.name, NOT_GIVEN)
        return query

    def _find_limits(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, int]:
        key = self._gold_key
        preset = any(
            spans_of(eg.predicted, key) for eg in as_in_training(nlp, self.name, get_examples())
        )
        # Entities of a component that learns beside this one are not known yet: then the limits
        # are those of gold entities.
        gold = not preset or entities_are_learned(nlp, self.name, key)
        examples = self._annotated(get_examples())
        limits = self._count_limits(as_in_training(nlp, self.name, examples, gold=gold))
        annotating = nlp.config["training"]["annotating_components"] if nlp is not None else ()
        if limits.get("gold") and not preset and not annotating:
            LOGGER.warning("%s: no document of the data has entities. %s", self.name, NOT_GIVEN)
        return limits


def _groups(docs: Sequence[Doc]) -> Iterator[tuple[int, int]]:
    """[low, high) of neighbouring documents of at most MAX_WORDS words together, or one of more."""
    start, n_words = 0, 0
    for i, doc in enumerate(docs):
        if i > start and n_words + len(doc) > MAX_WORDS:
            yield start, i
            start, n_words = i, 0
        n_words += len(doc)
    yield start, len(docs)
