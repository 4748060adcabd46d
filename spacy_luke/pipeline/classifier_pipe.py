"""The base of every component that classifies spans: labels, prediction, updates."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ..annotations.annotated import Layer, is_annotated
from ..errors import ConfigError, ModelError, TrainingError
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
    set_query_maker,
)
from ..metrics.answers import Answers
from ..report import LOGGER
from ..validation import Name, check_dropout, check_numbers, setting
from .class_loss import Targets
from .confidence import unknown_labels
from .model_card import record
from .saving import SavesEncoderApart, check_fixed_settings
from .score_names import warn_of_equal_score_names
from .tokenizer import warn_of_tokenizer
from .tuned_settings import HasTunedSettings

PUBLISHED_MODES = ("full", "markers")
"""The modes that published classifiers were trained in: of candidate spans, of given spans."""
MANY_UPDATES, LEAST_LEARNED = 500, 0.02
"""After so many updates the best score of a component should not be below this share."""
_SHARES = ("_f", "_f1", "_em", "_acc")
"""How the names of scores end that are shares of right answers."""


def lost_user_data(layer: Layer) -> str:
    """A hint where a layer of annotation may have been lost."""
    if layer == "ents":
        return ""
    return " (A DocBin keeps relations and types if it is made with store_user_data=True.)"


class ClassifierPipe(HasTunedSettings, SavesEncoderApart, Generic[Query, Scores]):
    """A component whose model, a task layer, computes the scores of a query.

    A subclass makes the query from documents, gives the gold classes of its rows, the loss and the
    order of the classes, and writes annotations (``set_annotations``, as in all spaCy components).
    ``docs/adding_a_task.md`` shows a complete one.

    Its settings are attributes (:class:`.HasSettings`), also those that are tuned
    (:class:`.HasTunedSettings`).

    limits: counts of gold annotations that cannot be predicted, by reason; set by ``initialize``.
    """

    architecture: ClassVar[str] = ""
    """The registered architecture of its model."""
    node: ClassVar[str] = ""
    """The name of that model's node."""
    layer: ClassVar[Layer] = "ents"
    """The layer of annotation that is learned; in a document it may be declared incomplete."""
    out_of_reach: ClassVar[tuple[str, ...]] = ()
    """The reasons in ``limits`` for which a gold annotation cannot be learned at all."""
    published_nil: ClassVar[str] = ""
    """The class of published checkpoints that means "none of the labels"."""

    _labels: list[Name] = setting("labels")

    limits: dict[str, int]

    def __init__(
        self, vocab: Vocab, model: Model, name: str, scorer: Callable | None, **cfg: Any
    ) -> None:
        if model.name != self.node:
            raise ConfigError(f"{name}.model must be {self.architecture}, got {model.name!r}.")
        self.vocab = vocab
        self.model = model
        set_query_maker(model, self._query)
        self.name = name
        self.scorer = scorer
        self.cfg = {**cfg, "labels": [], "thresholds": {}, "calibration": None}
        self.limits = {}
        self._n_updates = 0
        self._says_unscored = self._says_unlearned = True

    # For subclasses

    def _classes(self) -> list[Any]:
        """All classes in the order of the classifier's rows: the labels, and any others."""
        raise NotImplementedError

    def _query(self, docs: Sequence[Doc]) -> Query:
        raise NotImplementedError

    def _targets(self, examples: Sequence[Example], query: Query) -> Targets:
        """The gold classes of a query's rows."""
        raise NotImplementedError

    def _loss(self, query: Query, scores: Scores, targets: Targets) -> tuple[float, Scores]:
        """The loss, and its gradient for every score."""
        raise NotImplementedError

    def _labels_of(self, doc: Doc) -> Iterable[str]:
        """The labels of a gold document."""
        raise NotImplementedError

    def _find_limits(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, int]:
        """Count and log the gold annotations that cannot be predicted, by reason."""
        return {}

    def answers(self, examples: Iterable[Example]) -> Answers | None:
        """The annotations of the predicted documents with their scores, and whether they are right,
        as the component's metric counts them; None if the component cannot be tuned."""
        return None

    def best_least_score(self, examples: Iterable[Example]) -> float | None:
        """The least score of an answer with which the component's own metric is best, for predicted
        documents whose answers have any score; None if that metric is the F of :meth:`answers`."""
        return None

    @property
    def answer_labels(self) -> tuple[str, ...]:
        return self.labels

    def _query_to_learn(self, docs: Sequence[Doc]) -> Query:
        """The query of an update."""
        return self._query(docs)

    def _before_update(self, query: Query, targets: Targets) -> tuple[Query, Targets]:
        """The query and the targets of an update, once these are known."""
        return query, targets

    def _missing_input(self, query: Query) -> str:
        """What a query lacks that the documents should have, and how to give it to them; empty if
        it can be learned from."""
        return ""

    @property
    def _gold_key(self) -> str | None:
        """The name of the spans group with the gold entities, or None for ``Doc.ents``."""
        return None

    # Labels

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._labels)

    @property
    def label_data(self) -> list[str]:
        return list(self.labels)

    @property
    def is_resizable(self) -> bool:
        return True

    def add_label(self, label: str) -> int:
        """Add a label; a trained classifier keeps its rows of the other classes.

        Returns 1, or 0 if the component has the label. Raises ConfigError for a value that cannot
        be a label, such as ``published_nil``.
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
            reserved = " (here it is the name of the class for none; rename it in the data)"
            why = reserved if label and label == self.published_nil else ""
            raise ConfigError(f"{self.name}: {label!r} cannot be a label{why}.")
        if label in self.labels:
            return False
        self._labels = [*self._labels, label]
        self.vocab.strings.add(label)
        return True

    def _check_classes(self) -> None:
        """Raise ConfigError if the settings name other classes than the model has learned."""
        if not has_head(self.model):
            return
        head, named = head_of(self.model), self._classes()
        if head.classes is None and head.n_classes == len(named):  # an older file without names
            head.classes = named
        if head.classes != named:
            learned = head.n_classes if head.classes is None else head.classes
            raise ConfigError(
                f"{self.name} has learned other classes than its settings name: {learned}, not "
                f"{named}. Settings that determine the classes (labels, pair_order, symmetric, "
                "multi_label) cannot be changed after nlp.initialize(); labels can be added with "
                "add_label."
            )

    def _unknown_labels(self, labels: Sequence[str]) -> ConfigError:
        return ConfigError(
            f"{self.name}: labels {labels} are in the data but not in the component; add them with "
            "add_label (if it is sourced, before: load its pipeline, add them, and save it), or "
            "initialise with all of the training data."
        )

    # Prediction and training

    def predict(self, docs: Iterable[Doc]) -> tuple[Query, Scores]:
        """The query of the documents, and its scores; documents are not changed. Raises ModelError
        if a score is not a number: weights are damaged, and any answer would be chance."""
        self._check_ready()
        query = self._query(list(docs))
        return query, self._checked_scores(query)

    def _check_ready(self) -> None:
        """Raise an error if there is nothing to predict with, and warn if the encoder is gone."""
        if not has_head(self.model):
            raise ConfigError(f"{self.name} has no weights yet: call nlp.initialize().")
        self._check_classes()
        self._warn_of_moved_encoder()

    def _checked_scores(self, query: Query) -> Scores:
        """The scores of a query, with logits in NumPy."""
        try:
            scores: Any = self._scores(query)
            logits = self.model.ops.to_numpy(scores.logits)  # once, for all that reads them
            check_numbers(logits)
        except ModelError as err:
            raise ModelError(f"{self.name}: {err}") from err
        return scores._replace(logits=logits)

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
        encoder. Raises TrainingError if the loss or a gradient is NaN or infinite."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        docs = [eg.predicted for eg in examples]
        if not any(len(doc) for doc in docs):
            return losses
        self._check_classes()
        check_dropout(drop)
        set_dropout_rate(self.model, drop)
        self._n_updates += 1
        try:
            query = self._query_to_learn(docs)
            query, targets = self._before_update(query, self._targets(examples, query))
            # A later batch of a few texts may have none.
            if self._n_updates == 1 and (missing := self._missing_input(query)):
                LOGGER.warning("%s: the first batch %s", self.name, missing)
            learn_from(self.model, examples)
            scores, backprop = self.model.begin_update(query)
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
        """Take the optimizer's step while no other thread predicts with the encoder."""
        self._forget_tuning()
        with encoder_of(self.model).lock.writing():
            super().finish_update(sgd)

    def get_loss(
        self, examples: Iterable[Example], scores: tuple[Query, Scores]
    ) -> tuple[float, Scores]:
        """The loss and its gradient for predictions made by :meth:`predict`."""
        query, values = scores
        return self._loss(query, values, self._targets(list(examples), query))

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """What the scorer says. All values are None if the references have nothing to score; this
        is logged, the first time, because ``spacy train`` shows 0 then. Logged, too, is a component
        that has learned next to nothing, beside others whose scores are good."""
        scores = super().score(examples, **kwargs)
        if self._says_unscored and scores and all(x is None for x in scores.values()):
            self._says_unscored = False
            LOGGER.warning(
                "%s: the documents have no gold annotation for it, so all of its scores are None. "
                "spacy train shows them as 0, and cannot tell by them which model is best.",
                self.name,
            )
        self._warn_of_nothing_learned(scores)
        return scores

    def _warn_of_nothing_learned(self, scores: dict[str, Any]) -> None:
        shares = [x for name, x in scores.items() if name.endswith(_SHARES) and x is not None]
        best = max(shares, default=1.0)
        if not self._says_unlearned or self._n_updates < MANY_UPDATES or best >= LEAST_LEARNED:
            return
        self._says_unlearned = False
        LOGGER.warning(
            "%s: after %d updates its best score is %.1f %%: it has learned next to nothing. Train "
            "it longer (for example by initialize.after_init.words), on more data or with another "
            "rate; or its answers are right, but below %s.",
            self.name,
            self._n_updates,
            100 * best,
            self.least_score,
        )

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[str] | None = None,
    ) -> None:
        """Collect labels, read the encoder's weights, and count what cannot be predicted.

        labels: used instead of the labels in the data. If both are missing, the labels of the
        checkpoint's classifier are used.

        Raises ConfigError if there are no labels at all, and if no gold annotation can be learned.
        """
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        if nlp is not None:
            pipes = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, ClassifierPipe)]
            if pipes[:1] in ([], [self]):  # once
                warn_of_tokenizer(nlp)
        names = set(labels or ())
        if labels is None:
            for eg in self._annotated(get_examples()):
                names.update(self._labels_of(eg.reference))
        encoder_below(self.model).initialize()
        self._forget_tuning()
        self._n_updates, self._says_unlearned = 0, True
        self._initialize_classes(names, **self._head_config(nlp, get_examples))
        self.limits = self._find_limits(nlp, get_examples)
        self._check_reach()
        warn_of_equal_score_names(nlp, self)
        record(nlp, self.name, self.limits)

    def _check_reach(self) -> None:
        """Raise ConfigError if no gold annotation can be learned: the score would always be 0."""
        gold = self.limits.get("gold", 0)
        lost = {x: n for x in self.out_of_reach if (n := self.limits.get(x, 0))}
        if gold and sum(lost.values()) >= gold:
            reasons = ", ".join(f"{n} {reason}" for reason, n in lost.items())
            raise ConfigError(
                f"{self.name}: nothing can be learned, because all {gold} gold annotations of the "
                f"training data are out of reach ({reasons}). Compare the settings with the data."
            )

    def _annotated(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples whose references have this component's layer annotated."""
        return (eg for eg in examples if is_annotated(eg.reference, self.layer))

    def _head_config(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, Any]:
        """Settings of a new head that depend on the data."""
        return {}

    def _initialize_classes(self, names: set[str], **config: Any) -> None:
        """Set the labels (those of the data, or of a published classifier) and initialise the
        classifier, from the checkpoint if possible. The encoder's weights have been read. config:
        see :meth:`_head_config`."""
        if not names and not self.labels:
            names = self._published_labels()
        for label in sorted(names):
            self._append(label)
        if not self.labels:
            group = f" in the spans group {self._gold_key!r}" if self._gold_key else ""
            raise ConfigError(
                f"{self.name}: no labels. The training data has none{group} (spacy assemble does "
                "not read it), and the encoder's "
                f"checkpoint has no classifier for this task.{lost_user_data(self.layer)} Labels "
                f"can also be set in [initialize.components.{self.name}] labels. To train without "
                f"this component, leave it out: --nlp.pipeline with the names of the others."
            )
        classes = self._classes()
        initialize_head(self.model, len(classes), **config)
        head_of(self.model).classes = classes
        read = load_published_head(self.model, classes)
        if read:
            LOGGER.info("%s: classifier rows read from the checkpoint: %s.", self.name, read)
            self._check_mode()

    def _published_labels(self) -> set[str]:
        published = published_labels(self.model)
        if published and self.published_nil in set(self._classes()) - set(published):
            raise ConfigError(
                f"{self.name}: the published classifier has no class {self.published_nil!r}, "
                "and an untrained one would be wrong. In id2label of its config.json, give "
                f"that name to the class that means none of the labels {published}."
            )
        return set(published) - {self.published_nil}

    def _check_mode(self) -> None:
        """Log a warning if the model's mode is not the mode of published classifiers."""
        mode = scorer_of(self.model).mode
        if mode not in PUBLISHED_MODES:
            LOGGER.warning(
                "%s: the checkpoint's classifier was trained in mode %s, and the component's mode "
                "is %s: predictions differ from those of the checkpoint until it is trained again. "
                "Set mode, or use 'spacy luke import'.",
                self.name,
                " or ".join(PUBLISHED_MODES),
                mode,
            )

    # Files

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """Write the component to a directory. See :meth:`.SavesEncoderApart.to_disk`.

        Raises ConfigError for thresholds of labels that it does not have, too: it could be loaded,
        but not predict."""
        self._warn_of_moved_encoder()
        exclude, unknown = tuple(exclude), unknown_labels(self.thresholds, self.answer_labels)
        if unknown and self.answer_labels and "cfg" not in exclude:
            raise ConfigError(
                f"{self.name}.thresholds names {unknown}, which are not its labels. What was "
                "written is no whole pipeline."
            )
        super().to_disk(path, exclude=exclude)

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> "ClassifierPipe":
        """Read the component from a directory.

        Raises ConfigError if its model has learned other classes than its settings name, or with
        other settings of the model that are fixed.
        """
        self._before_loading(exclude)
        super().from_disk(path, exclude=exclude)
        self._check_loaded(exclude)
        check_fixed_settings(Path(path), scorer_of(self.model))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        self._warn_of_moved_encoder()
        return super().to_bytes(exclude=exclude)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ClassifierPipe":
        self._before_loading(exclude)
        super().from_bytes(data, exclude=exclude)
        self._check_loaded(exclude)
        return self

    def _before_loading(self, exclude: Iterable[str]) -> None:
        """Older files have no calibration; the present one is not theirs."""
        if "cfg" not in exclude:
            self.cfg.update(thresholds={}, calibration=None)

    def _check_loaded(self, exclude: Iterable[str]) -> None:
        if not {"cfg", "model"} & set(exclude):
            self._check_classes()
            self.note_weights()
