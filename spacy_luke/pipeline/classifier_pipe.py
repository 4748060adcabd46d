"""The base of every component that classifies spans: labels, prediction, updates."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypedDict

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ..annotations.annotated import Layer, is_annotated
from ..errors import ConfigError, TrainingError
from ..layers.published_head import load_published_head, published_labels
from ..layers.task_layer import (
    Query,
    Scores,
    drop_gradients,
    encoder_below,
    encoder_of,
    has_head,
    head_of,
    initialize_head,
    learn_from,
    scorer_of,
    set_head,
)
from ..report import LOGGER
from ..validation import ComponentSettings, Name, Probability
from .card import record
from .class_loss import Targets
from .saving import KeepsEncoderApart

PUBLISHED_MODES = ("full", "markers")
"""The modes that published classifiers were trained in, of candidate spans and of given spans."""


class Settings(TypedDict):
    """The settings that all classifying components have."""

    labels: list[Name]
    spans_key: Name | None
    threshold: Probability


class ClassifierPipe(KeepsEncoderApart, Generic[Query, Scores]):
    """A component whose model, a task layer, answers a query about documents with scores.

    A subclass says how documents become a query, what gold classes its rows have, what the loss is,
    and in which order the classifier has the classes; and it writes annotations
    (``set_annotations``, as in all spaCy components). ``docs/adding_a_task.md`` leads through one.

    cfg: the settings, with the labels among them; each is validated whenever it is set. limits: how
    much of the training data cannot be predicted, by reason, once initialised.
    """

    architecture: ClassVar[str] = ""
    """The registered architecture of its model."""
    node: ClassVar[str] = ""
    """The name of that model's node."""
    layer: ClassVar[Layer] = "ents"
    """The layer of annotation that it learns: documents may say that theirs is not complete."""
    out_of_reach: ClassVar[tuple[str, ...]] = ()
    """The reasons in ``limits`` for which gold cannot be learned at all."""
    settings: ClassVar[type] = Settings
    """Annotates what ``cfg`` may hold."""
    published_nil: ClassVar[str] = ""
    """The class of a published checkpoint that is not a label."""

    def __init__(
        self, vocab: Vocab, model: Model, name: str, scorer: Callable | None, **cfg: Any
    ) -> None:
        if model.name != self.node:
            raise ConfigError(f"{name}.model must be {self.architecture}, got {model.name!r}.")
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.cfg = ComponentSettings(name, self.settings, cfg)
        self.cfg["labels"] = []
        self.limits: dict[str, int] = {}
        self._n_updates = 0

    # What a subclass says

    def _classes(self) -> list[Any]:
        """The classes in the classifier's order: the labels, and what else it tells apart."""
        raise NotImplementedError

    def _query(self, docs: Sequence[Doc]) -> Query:
        raise NotImplementedError

    def _targets(self, examples: Sequence[Example], query: Query) -> Targets:
        """The gold classes of a query's rows."""
        raise NotImplementedError

    def _loss(self, query: Query, scores: Scores, targets: Targets) -> tuple[float, Scores]:
        """The loss, and its gradient in the place of the scores."""
        raise NotImplementedError

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        """The labels of a gold document."""
        raise NotImplementedError

    def _find_limits(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, int]:
        """Count, and log, what of the training data cannot be predicted, by reason."""
        return {}

    def _before_update(self, query: Query, targets: Targets) -> Query:
        """The query of an update, once its targets are known."""
        return query

    @property
    def _gold_key(self) -> str | None:
        """The spans group that the entities are in, or None for ``Doc.ents``."""
        return self.cfg["spans_key"]

    # Labels

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
        if has_head(self.model):
            rows = [old.index(x) if x in old else None for x in self._classes()]
            set_head(self.model, head_of(self.model).resize(rows))
            head_of(self.model).classes = self._classes()
        return 1

    def _append(self, label: Any) -> bool:
        if not isinstance(label, str) or not label or label == self.published_nil:
            raise ConfigError(f"{self.name}: {label!r} cannot be a label.")
        if label in self.labels:
            return False
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return True

    def _check_classes(self) -> None:
        """Raise ConfigError if the settings name other classes than the model has learned."""
        if not has_head(self.model):
            return
        head, named = head_of(self.model), self._classes()
        if head.classes is None and head.n_classes == len(named):  # saved without names
            head.classes = named
        if head.classes != named:
            learned = head.n_classes if head.classes is None else head.classes
            raise ConfigError(
                f"{self.name} has learned other classes than its settings name: {learned}, not "
                f"{named}. Settings that say which classes there are (labels, and such as "
                "pair_order, symmetric and multi_label) cannot be changed after nlp.initialize(), "
                "but by add_label."
            )

    # Prediction and training

    def predict(self, docs: Iterable[Doc]) -> tuple[Query, Scores]:
        """The query that the documents make, and its scores; documents are not changed."""
        self._check_classes()
        query = self._query(list(docs))
        return query, self._scores(query)

    def _scores(self, query: Query) -> Scores:
        return self.model.predict(query)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch. A batch without rows has zero loss but still notifies a shared
        encoder."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        docs = [eg.predicted for eg in examples]
        if not any(len(doc) for doc in docs):
            return losses
        self._check_classes()
        set_dropout_rate(self.model, drop)
        self._n_updates += 1
        try:
            query = self._query(docs)
            targets = self._targets(examples, query)
            learn_from(self.model, examples)
            scores, backprop = self.model.begin_update(self._before_update(query, targets))
            loss, d_scores = self._loss(query, scores, targets)
            if not math.isfinite(loss):
                raise TrainingError(
                    f"the loss is {loss}. No step of this component or its encoder was taken."
                )
            backprop(d_scores)
        except TrainingError as err:
            drop_gradients(self.model)
            raise TrainingError(f"{self.name}, update {self._n_updates}: {err}") from err
        except BaseException:
            drop_gradients(self.model)
            raise
        if sgd not in (None, False):
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Change the weights, while no other thread predicts with them."""
        with encoder_of(self.model).lock.writing():
            super().finish_update(sgd)

    def get_loss(
        self, examples: Iterable[Example], scores: tuple[Query, Scores]
    ) -> tuple[float, Scores]:
        """The loss and its gradient for predictions made by :meth:`predict`."""
        query, values = scores
        return self._loss(query, values, self._targets(list(examples), query))

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[str] | None = None,
    ) -> None:
        """Collect labels, read the encoder's weights, and report what cannot be predicted.

        labels: the labels, instead of those in the data. Without either, those of a published
        classifier of this task; if it has none, ConfigError is raised. So it is if nothing of the
        gold annotation can be predicted.
        """
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        names = set(labels or ())
        if labels is None:
            for eg in self._annotated(get_examples()):
                names.update(self._labels_of(eg.reference))
        encoder_below(self.model).initialize()
        self._initialize_classes(names)
        self.limits = self._find_limits(nlp, get_examples)
        self._check_reach()
        record(nlp, self.name, self.limits)

    def _check_reach(self) -> None:
        """Raise ConfigError if nothing of the gold annotation can be learned: a training would end
        with a score of 0."""
        gold = self.limits.get("gold", 0)
        lost = {x: n for x in self.out_of_reach if (n := self.limits.get(x, 0))}
        if gold and sum(lost.values()) >= gold:
            reasons = ", ".join(f"{n} {reason}" for reason, n in lost.items())
            raise ConfigError(
                f"{self.name}: nothing can be learned, because all {gold} gold annotations of the "
                f"training data are out of reach ({reasons}). Compare the settings with the data."
            )

    def _annotated(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples in which the layer of this component is annotated."""
        return (eg for eg in examples if is_annotated(eg.reference, self.layer))

    def _initialize_classes(self, names: set[str]) -> None:
        """Take the labels of the data, or those of a published classifier, and draw or read the
        classifier. The encoder has its weights."""
        if not names and not self.labels:
            names = self._published_labels()
        for label in sorted(names):
            self._append(label)
        if not self.labels:
            under = f" under {self._gold_key!r}" if self._gold_key else ""
            raise ConfigError(
                f"{self.name}: no labels. The training data has none{under}, and the encoder no "
                "published classifier of this task. Labels may also be given as "
                f"[initialize.components.{self.name}] labels."
            )
        classes = self._classes()
        initialize_head(self.model, len(classes))
        head_of(self.model).classes = classes
        found = load_published_head(self.model, classes)
        if found:
            LOGGER.info("%s: classifier rows read from the checkpoint: %s.", self.name, found)
            self._warn_of_mode()

    def _published_labels(self) -> set[str]:
        published = published_labels(self.model)
        if published and self.published_nil in set(self._classes()) - set(published):
            raise ConfigError(
                f"{self.name}: the published classifier has no class {self.published_nil!r}, "
                "and one of our own would be guessed. In id2label of its config.json, give "
                f"that name to the class that means none of the labels {published}."
            )
        return set(published) - {self.published_nil}

    def _warn_of_mode(self) -> None:
        mode = scorer_of(self.model).mode
        if mode not in PUBLISHED_MODES:
            LOGGER.warning(
                "%s: the checkpoint's classifier was trained in mode %s, and here mode is %s: "
                "until it is trained again its answers are not those of the checkpoint. Set mode, "
                "or use 'spacy luke import'.",
                self.name,
                " or ".join(PUBLISHED_MODES),
                mode,
            )

    # Files

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> "ClassifierPipe":
        """Read the component from a directory. Raises ConfigError if its model has learned other
        classes than its settings name."""
        super().from_disk(path, exclude=exclude)
        self._check_loaded(exclude)
        return self

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ClassifierPipe":
        super().from_bytes(data, exclude=exclude)
        self._check_loaded(exclude)
        return self

    def _check_loaded(self, exclude: Iterable[str]) -> None:
        if not {"cfg", "model"} & set(exclude):
            self._check_classes()
