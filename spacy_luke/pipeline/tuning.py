"""Choose the settings of trained components on development data; no weight is changed.

For every component, in the order of the pipeline: in two-stage mode the number of candidates and
the filter's threshold (:mod:`.filter_tuning`), the NIL bias, calibration, and thresholds. The
network runs a few times over the data; the rest is decoding.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.util import registry, resolve_dot_names

from ..calibration import (
    LEAST_ANSWERS,
    calibration_error,
    error_by_chance,
    fit_calibration,
    held_out_error,
)
from ..errors import ConfigError, CorpusError
from ..metrics.answers import Answers
from ..report import LOGGER
from .classifier_pipe import ClassifierPipe
from .filter_tuning import FilterChoice, choose_filter
from .model_card import refresh
from .nil_bias import choose_bias
from .thresholds import Goal, Thresholds, choose_thresholds
from .trial import Trial


@dataclass(frozen=True)
class Figures:
    """Precision, recall, F and calibration error, from 0 to 1, on the development data."""

    p: float
    r: float
    f: float
    calibration_error: float | None

    @classmethod
    def of(cls, answers: Answers) -> "Figures":
        return cls(*answers.prf(), calibration_error(answers.scores, answers.right))


@dataclass
class Tuned:
    """What was chosen for a component.

    before, after: figures with the old and the new settings. held_out_error: the calibration error
    if the calibration of every fifth of the documents is fitted on the others; None without
    calibration. error_by_chance: the error to expect from exact scores. thresholds: None if
    the component has none (exactly one type per span).
    """

    component: str
    before: Figures
    after: Figures
    settings: dict[str, Any] = field(default_factory=dict)
    held_out_error: float | None = None
    error_by_chance: float | None = None
    thresholds: Thresholds | None = None
    filter: FilterChoice | None = None


@registry.callbacks("spacy-luke.tune.v1")
def make_tune(
    corpus: str = "corpora.dev",
    components: list[str] | None = None,
    precision: float | None = None,
    recall: float | None = None,
    each_label: bool = False,
) -> Callable[[Language], Language]:
    """For ``[training.before_to_disk]``: tune every pipeline that training saves.

    corpus: the section of the config with the reader of the development data.
    components: all that can be tuned by default. precision, recall, each_label: :class:`.Goal`.

    Later evaluations of the same training use these settings until the next pipeline is saved.
    """
    goal = Goal(precision, recall, each_label)

    def callback(nlp: Language) -> Language:
        (reader,) = resolve_dot_names(nlp.config.interpolate(), [corpus])
        for tuned in tune(nlp, list(reader(nlp)), goal, components):
            LOGGER.info("%s: %s", tuned.component, tuned.settings)
        refresh(nlp)
        return nlp

    return callback


def tunable(nlp: Language, names: Sequence[str] | None = None) -> list[str]:
    """The components that can be tuned, in the pipeline's order. Raises ConfigError if there is
    none, and for a name that is not one of them."""
    can = [
        name
        for name, pipe in nlp.pipeline
        if isinstance(pipe, ClassifierPipe) and pipe.answers([]) is not None
    ]
    for name in names or ():
        if name not in can:
            known = ", ".join(can) or "none"
            raise ConfigError(f"{name!r} is not a component that can be tuned; these are: {known}.")
    if not can:
        raise ConfigError(f"No component can be tuned: {', '.join(nlp.pipe_names) or 'none'}.")
    return [name for name in can if names is None or name in names]


def tune(
    nlp: Language, examples: Sequence[Example], goal: Goal, names: Sequence[str] | None = None
) -> Iterator[Tuned]:
    """Tune components one after the other, in the pipeline and in its config.

    The components before each annotate the documents, as in the pipeline. Raises CorpusError if the
    examples have no gold annotation, ConfigError if the goal cannot be reached; the component keeps
    its settings then.
    """
    for name in tunable(nlp, names):
        trial = Trial(nlp, name, examples)
        with trial.kept_if_it_fails():
            tuned = _tune(trial, goal)
        yield tuned


def _tune(trial: Trial, goal: Goal) -> Tuned:
    cfg = trial.pipe.cfg
    answers = trial.answers()
    if not answers.n_gold.total():
        raise CorpusError(f"{trial.name}: the development data has no annotation to tune on.")
    tuned = Tuned(trial.name, Figures.of(answers), Figures.of(answers))
    trial.set(calibration=None, thresholds={}, threshold=0.0)
    tuned.filter = choose_filter(trial)
    if "nil_bias" in cfg:
        choose_bias(trial, goal)
    answers = trial.answers()
    _calibrate(trial, tuned, answers)
    if cfg.get("multi_label", True) or trial.pipe.layer != "types":
        tuned.thresholds = choose_thresholds(trial.answers(), goal)
        _check_goal(trial.name, tuned.thresholds, goal)
        trial.set(threshold=tuned.thresholds.threshold, thresholds=tuned.thresholds.by_label)
    answers = trial.answers()
    tuned.after = Figures.of(answers)
    tuned.error_by_chance = error_by_chance(answers.scores) if answers.found else None
    names = ("nil_bias", "threshold", "thresholds")
    tuned.settings = {name: cfg[name] for name in names if name in cfg}
    return tuned


def _calibrate(trial: Trial, tuned: Tuned, answers: Answers) -> None:
    found = answers.labels, answers.scores, answers.right
    table = fit_calibration(*found)
    trial.set(calibration=table)
    tuned.held_out_error = held_out_error(*found) if table else None
    if table is None:
        LOGGER.warning(
            "%s: %d answers on the development data are too few for calibration (%d are needed); "
            "scores stay as they are.",
            trial.name,
            len(answers.found),
            LEAST_ANSWERS,
        )


def _check_goal(name: str, chosen: Thresholds, goal: Goal) -> None:
    """Raise ConfigError if no label reaches the goal, and log those that do not."""
    if not chosen.unreached:
        return
    wanted = f"precision {goal.precision:g}" if goal.precision else f"recall {goal.recall:g}"
    if chosen.unreached == [""] or len(chosen.unreached) == len(chosen.by_label):
        raise ConfigError(
            f"{name}: {wanted} cannot be reached on the development data with any threshold. Its "
            "settings are as they were."
        )
    LOGGER.warning(
        "%s: %s cannot be reached for the labels %s. Of these, %s.",
        name,
        wanted,
        ", ".join(chosen.unreached),
        "nothing is written" if goal.precision else "everything is written",
    )
