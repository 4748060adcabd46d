"""What the components share that ask about the entities of a document."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ..annotations.mentions import spans_of
from ..errors import ConfigError
from ..layers.asking import GivenSpans
from ..report import LOGGER
from .as_in_training import as_in_training, entities_are_learned
from .card import record
from .labelled import Labelled

Array = np.ndarray

MAX_WORDS = 8192
"""Of the documents that are asked about at a time, where there are several."""

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


class EntityTask(Labelled):
    """A component that consumes entities: its labels, its updates, its initialisation.

    A subclass says how documents become a query, what a batch's loss is, which labels the data
    has, and in which order its classifier has them (``_classes``).

    limits: how much of the training data cannot be predicted, by reason, once initialised.
    n_unanswered: how many questions got no answer so far, because of their length.
    """

    network_name = ""

    def __init__(
        self, vocab: Vocab, model: Model, name: str, scorer: Callable | None, **cfg: Any
    ) -> None:
        if model.name != self.network_name:
            raise ConfigError(f"{name}.model must be a {self.network_name}, got {model.name!r}.")
        if not 0.0 <= cfg["threshold"] <= 1.0:
            raise ConfigError(f"{name}.threshold is {cfg['threshold']}; it must be from 0 to 1.")
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.cfg: dict[str, Any] = {"labels": [], **cfg}
        self.limits: dict[str, int] = {}
        self.n_unanswered = 0
        self._warned = False
        self._reported = False

    # What a subclass says

    def _ask(self, docs: Sequence[Doc]) -> Any:
        """What is asked about: ``query`` is the model's input, the rest is this component's."""
        raise NotImplementedError

    def _part(self, asked: Any, low: int, high: int) -> Any:
        """What was asked about the documents [low, high) of a batch."""
        raise NotImplementedError

    def _docs_of(self, asked: Any) -> Array:
        """(n_questions,) the document of each question."""
        raise NotImplementedError

    def _loss(self, examples: Sequence[Example], asked: Any, scores: Any) -> tuple[float, Any]:
        raise NotImplementedError

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        raise NotImplementedError

    def _report_limits(self, examples: Iterable[Example]) -> None:
        """Fill ``limits`` and log them. The entities are those of the predicted sides."""
        raise NotImplementedError

    # Prediction and training

    def _check_classes(self) -> None:
        """Raise ConfigError where the settings name other classes than were learned."""
        learned, named = self.model.maybe_get_dim("nO"), len(self._classes())
        if learned is not None and learned != named:
            raise ConfigError(
                f"{self.name} has learned {learned} classes, and its settings name {named}: "
                "settings that say which classes there are (such as pair_order, symmetric and "
                "multi_label) cannot be changed after nlp.initialize()."
            )

    def predict(self, docs: Iterable[Doc]) -> tuple[Any, Any]:
        """What was asked, and its scores; documents are not changed."""
        self._check_classes()
        docs = list(docs)
        asked = self._ask(docs)
        scores = self._scores(docs, asked)
        of_doc = self._docs_of(asked)
        self.n_unanswered += len(of_doc) - len(scores.asked)
        if len(scores.asked) < len(of_doc) and not self._reported:
            self._reported = True
            lost = np.unique(np.delete(of_doc, scores.asked))
            LOGGER.warning(
                "%s: %d of %d questions have no pieces or are longer than a window, and get no "
                "answer (documents of this batch, counted from 0: %s). This is said once; the "
                "component's n_unanswered counts on.",
                self.name,
                len(of_doc) - len(scores.asked),
                len(of_doc),
                ", ".join(map(str, lost[:5].tolist())),
            )
        return asked, scores

    def _scores(self, docs: Sequence[Doc], asked: Any) -> Any:
        """A batch may be all that ``nlp.pipe`` buffers, and the states of its words are needed
        until its last question: groups of documents bound them."""
        groups = list(_groups(docs))
        if len(groups) < 2:
            return self.model.predict(asked.query)
        rows, logits, n = [], [], 0
        for low, high in groups:
            part = self._part(asked, low, high)
            scores = self.model.predict(part.query)
            rows.append(scores.asked + n)
            logits.append(scores.logits)
            n += len(self._docs_of(part))
        return scores._replace(
            asked=np.concatenate(rows), logits=self.model.ops.xp.concatenate(logits)
        )

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch. One without anything to ask teaches nothing, but still reports to
        an encoder that is shared."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        docs = [eg.predicted for eg in examples]
        if not any(len(doc) for doc in docs):
            return losses
        self._check_classes()
        set_dropout_rate(self.model, drop)
        asked = self._ask(docs)
        if not len(asked.query.spans) and not self._warned:
            self._warned = True
            LOGGER.warning("%s: a batch without any entity. %s", self.name, NOT_GIVEN)
        scores, backprop = self.model.begin_update(asked.query)
        loss, d_scores = self._loss(examples, asked, scores)
        backprop(d_scores)
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(self, examples: Iterable[Example], scores: tuple[Any, Any]) -> tuple[float, Any]:
        """The loss and its gradient for predictions made by :meth:`predict`."""
        return self._loss(list(examples), *scores)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[str] | None = None,
    ) -> None:
        """Collect labels, read the encoder's weights, and report what cannot be asked about.

        labels: the labels, instead of those in the data. Without either, those of a published
        classifier of this task; where there are none, ConfigError is raised.
        """
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        names = set(labels or ())
        if labels is None:
            for eg in get_examples():
                names.update(self._labels_of(eg.reference))
        self.model.layers[0].initialize()
        self._initialize_classes(
            names,
            "The training data has none, and the encoder no published classifier of this task.",
        )
        key = self.cfg["spans_key"]
        preset = any(
            spans_of(eg.predicted, key) for eg in as_in_training(nlp, self.name, get_examples())
        )
        # Entities of a component that learns beside this one are not known yet: then the limits
        # are those of gold entities.
        gold = not preset or entities_are_learned(nlp, self.name, key)
        self._report_limits(as_in_training(nlp, self.name, get_examples(), gold=gold))
        record(nlp, self.name, self.limits)
        annotating = nlp.config["training"]["annotating_components"] if nlp is not None else ()
        if self.limits["gold"] and not preset and not annotating:
            LOGGER.warning("%s: no document of the data has entities. %s", self.name, NOT_GIVEN)


def _groups(docs: Sequence[Doc]) -> Iterator[tuple[int, int]]:
    """[low, high) of neighbouring documents of at most MAX_WORDS words together, or one of more."""
    start, n_words = 0, 0
    for i, doc in enumerate(docs):
        if i > start and n_words + len(doc) > MAX_WORDS:
            yield start, i
            start, n_words = i, 0
        n_words += len(doc)
    yield start, len(docs)
