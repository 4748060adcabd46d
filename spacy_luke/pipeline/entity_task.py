"""The base of components that classify given entities, or pairs of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch

from ..annotations.mentions import spans_of
from ..layers.given_spans import ClassScores, GivenSpans
from ..layers.published_head import published_labels
from ..layers.task_layer import begin_at
from ..report import LOGGER
from ..validation import Name, Probability, setting
from .as_in_training import as_in_training, entities_are_learned, is_annotated_by_trained
from .class_loss import Targets, binary_loss, single_loss
from .class_shares import ClassShares
from .classifier_pipe import ClassifierPipe, lost_user_data

Array = np.ndarray

MAX_WORDS = 8192
"""Words of documents that are scored together, each counted as often as it is read; a longer
document is scored alone."""


def _advice(key: str | None) -> str:
    """key: the spans group of the entities, or None."""
    what = "entities" if key is None else f"spans in the group {key!r}"
    setting = "" if key is None else f" with spans_key = {key!r}"
    return (
        f"The predicted documents need {what}: train with the corpus reader "
        f"spacy-luke.PresetEntsCorpus.v1{setting}, which gives them the gold ones, or name the "
        "component that predicts them in [training] annotating_components."
    )


def _lack(docs: Sequence[Doc], key: str) -> bool:
    """Whether there are documents with words, and none has the spans group, not even an empty
    one."""
    with_words = [doc for doc in docs if len(doc)]
    return bool(with_words) and all(key not in doc.spans for doc in with_words)


def given_spans(by_doc: Sequence[Sequence[Span]]) -> GivenSpans:
    """The spans of each document of a batch as one flat table."""
    flat = [span for spans in by_doc for span in spans]
    table = np.asarray([(span.start, span.end) for span in flat], dtype=np.int64).reshape(-1, 2)
    of_doc = np.repeat(np.arange(len(by_doc)), [len(spans) for spans in by_doc])
    return GivenSpans(table, of_doc, [span.label_ for span in flat])


class GivenQuery(Protocol):
    """A query about given entities: what all queries of the components below have."""

    @property
    def docs(self) -> Sequence[Doc]: ...

    @property
    def spans(self) -> GivenSpans: ...

    @property
    def of_doc(self) -> Array:
        """(n_rows,) the document of each row."""
        ...


GivenQueryT = TypeVar("GivenQueryT", bound=GivenQuery)


class EntityTask(ClassifierPipe[GivenQueryT, ClassScores]):
    """A component that classifies entities, or pairs of them, which the documents already have.

    A subclass also gives the part of a query for some of its documents, and counts its limits.

    n_unscored: the number of rows, over all predictions so far, that were not scored, because they
        have no pieces or are longer than a window.
    """

    spans_key: Name | None = setting()
    threshold: Probability = setting()

    n_unscored: int

    reads_group: ClassVar[bool] = True
    """Whether documents are expected to have the spans group."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.n_unscored = 0
        self._warned_of_unscored = False
        self._warned_of_group = False

    @property
    def _gold_key(self) -> str | None:
        return self.spans_key

    def _part(self, query: GivenQueryT, low: int, high: int) -> GivenQueryT:
        """The part of a query that is about its documents [low, high)."""
        raise NotImplementedError

    def _n_readings(self, doc: Doc) -> int:
        """How often a document is read."""
        return 1

    def _count_limits(self, examples: Iterable[Example]) -> dict[str, int]:
        """Count and log the gold annotations that cannot be predicted, by reason, and all gold
        annotations as ``gold``. The predicted sides have entities."""
        return {}

    def predict(self, docs: Iterable[Doc]) -> tuple[GivenQueryT, ClassScores]:
        """The query of the documents, and its scores; documents are not changed."""
        query, scores = super().predict(docs)
        of_doc = query.of_doc
        key = self.spans_key
        is_told = self._warned_of_group or not self.reads_group
        if key is not None and not is_told and _lack(query.docs, key):
            self._warned_of_group = True
            LOGGER.warning(
                "%s.spans_key is %r, and no document of a batch has such a spans group: there is "
                "nothing to do there. A component before %s should write it. This warning is "
                "logged once.",
                *(self.name, key, self.name),
            )
        n_unscored = len(of_doc) - len(scores.rows)
        self.n_unscored += n_unscored
        if n_unscored and not self._warned_of_unscored:
            self._warned_of_unscored = True
            LOGGER.warning(
                "%s: %d of %d rows are not scored, because they have no pieces or are longer than "
                "a window (documents of this batch, counted from 0: %s). This warning is logged "
                "once; the component's n_unscored has the total.",
                self.name,
                n_unscored,
                len(of_doc),
                ", ".join(map(str, np.unique(np.delete(of_doc, scores.rows))[:5].tolist())),
            )
        return query, scores

    def _scores(self, query: GivenQueryT) -> ClassScores:
        """Score groups of documents one after the other: word states are kept until the last row
        of a group is scored, and ``nlp.pipe`` may pass very large batches."""
        groups = list(_groups([len(doc) * self._n_readings(doc) for doc in query.docs]))
        if len(groups) < 2:
            return self.model.predict(query)
        rows, logits, n_rows = [], [], 0
        for low, high in groups:
            part = self._part(query, low, high)
            scores = self.model.predict(part)
            rows.append(scores.rows + n_rows)
            logits.append(scores.logits)
            n_rows += len(part.of_doc)
        return ClassScores(np.concatenate(rows), self.model.ops.xp.concatenate(logits))

    def _loss(
        self, query: GivenQueryT, scores: ClassScores, targets: Targets
    ) -> tuple[float, ClassScores]:
        classes, known = (x[scores.rows] for x in targets)
        if self.cfg.get("multi_label"):  # a setting of some tasks
            loss, d_logits = binary_loss(self.model.ops, scores.logits, classes, known)
        else:
            loss, d_logits = single_loss(self.model.ops, scores.logits, classes)
        return loss, scores._replace(logits=d_logits)

    def _missing_input(self, query: GivenQueryT) -> str:
        return "" if len(query.spans) else f"has no entity. {_advice(self._gold_key)}"

    def _find_limits(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, int]:
        """Also lets a new classifier of labels begin at their shares."""
        key = self._gold_key
        preset = any(
            spans_of(eg.predicted, key) for eg in as_in_training(nlp, self.name, get_examples())
        )
        # A component that is trained in the same run does not predict entities yet: the limits are
        # counted with gold entities then.
        gold = not preset or entities_are_learned(nlp, self.name, key)
        examples = self._annotated(get_examples())
        examples = as_in_training(nlp, self.name, examples, gold=gold)
        multi_label = self.cfg.get("multi_label")  # None: its classes are not labels
        shares = ClassShares(exclusive=not multi_label)
        if multi_label is not None:
            examples = self._counted(examples, shares)
        limits = self._count_limits(examples)
        if (logits := shares.logits()) is not None:
            begin_at(self.model, logits)
        n_gold = limits.get("gold", 0) + limits.get("NIL", 0)
        n_docs = sum(1 for _ in islice(get_examples(), 2))  # nlp.initialize() alone makes one
        if (
            multi_label is not None
            and n_docs > 1
            and not n_gold
            and not published_labels(self.model)
        ):
            LOGGER.warning(
                "%s: the data has no gold %s with its labels, so it cannot learn any.%s",
                self.name,
                self.layer,
                lost_user_data(self.layer),
            )
        # Annotating components that do not train were run, and gave no entities.
        if n_gold and not preset and not is_annotated_by_trained(nlp, self.name):
            advice = _advice(key)
            LOGGER.warning("%s: no document of the data has entities. %s", self.name, advice)
        return limits

    def _counted(self, examples: Iterable[Example], shares: ClassShares) -> Iterator[Example]:
        """The examples, whose classes are counted when they are read."""
        for batch in minibatch(examples, 64):
            batch = list(batch)
            query = self._query([eg.predicted for eg in batch])
            shares.add(self._targets(batch, query))
            yield from batch


def _groups(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges [low, high) of documents with at most MAX_WORDS words in total, or of one document.

    sizes: words of each document."""
    start, n_words = 0, 0
    for i, size in enumerate(sizes):
        if i > start and n_words + size > MAX_WORDS:
            yield start, i
            start, n_words = i, 0
        n_words += size
    yield start, len(sizes)
