"""Choose the settings of trained components on development data; no weight is changed.

For every component, in the order of the pipeline: the NIL bias and that of known names, in
two-stage mode the number of candidates and the filter's threshold (:mod:`.filter_tuning`),
calibration, and thresholds. Its network runs once over the data; the rest is decoding.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.training import Example

from ..calibration import (
    LEAST_ANSWERS,
    Bin,
    calibration_error,
    error_by_chance,
    fit_calibration,
    held_out_scores,
    reliability,
)
from ..errors import ConfigError, CorpusError
from ..metrics.answers import Answers
from ..report import LOGGER
from .classifier_pipe import ClassifierPipe
from .confidence import Confidence
from .filter_tuning import FilterChoice, OpenFilter, choose_filter, open_filter
from .nil_bias import choose_bias
from .thresholds import Goal, Thresholds, choose_thresholds, highest
from .trial import Trial

_SHOWN_LABELS = 5
_LEAST_SCORE = 0.01
"""If a row may have several labels, most are very unlikely, and say nothing about the scores of
those that could be written."""


@dataclass(frozen=True)
class Figures:
    """Precision, recall, F, calibration error (from 0 to 1) and reliability curve, on the
    development data. by_label: the figures of each label with gold annotation."""

    p: float
    r: float
    f: float
    calibration_error: float | None
    reliability: list[Bin]
    by_label: dict[str, "LabelFigures"] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Answers) -> "Figures":
        found = answers.scores, answers.right
        by_label = {
            x: LabelFigures(*answers.of_label(x).prf(), n)
            for x, n in sorted(answers.n_gold.items())
            if n
        }
        return cls(*answers.prf(), calibration_error(*found), reliability(*found), by_label)


@dataclass(frozen=True)
class LabelFigures:
    """Precision, recall and F of a label. n_gold: its annotations."""

    p: float
    r: float
    f: float
    n_gold: int


@dataclass
class Tuned:
    """What was chosen for a component.

    before, after: figures with the old and the new settings. held_out_error: the calibration error
    of answers that were not used to fit it and would be written; None without calibration, or if
    there are none. error_by_chance: the error to expect from exact scores. thresholds: None if the
    component has none (exactly one type per span). filter: None if none was chosen.
    """

    component: str = field(init=False)
    trial: InitVar[Trial]
    before: Figures
    after: Figures
    settings: dict[str, Any] = field(default_factory=dict)
    held_out_error: float | None = None
    error_by_chance: float | None = None
    thresholds: Thresholds | None = None
    filter: FilterChoice | None = None

    def __post_init__(self, trial: Trial) -> None:
        self.component = trial.name
        self.annotated = trial.annotated


def tunable(nlp: Language, names: Sequence[str] | None = None) -> list[str]:
    """The components that can be tuned, in the pipeline's order. Raises ConfigError if there is
    none, and for a name that is not one of them."""
    can = can_be_tuned(nlp)
    disabled = f" (disabled: {', '.join(nlp.disabled)})" if nlp.disabled else ""
    for name in names or ():
        if name in nlp.disabled:
            raise ConfigError(f"{name!r} is disabled in this pipeline.")
        if name not in can:
            known = ", ".join(can) or "none"
            raise ConfigError(
                f"{name!r} is not a component that can be tuned; these are: {known}{disabled}."
            )
    if not can:
        given = ", ".join(nlp.pipe_names) or "none"
        raise ConfigError(f"No component can be tuned: {given}{disabled}.")
    return [name for name in can if names is None or name in names]


def can_be_tuned(nlp: Language) -> list[str]:
    """The components that can be tuned, in the pipeline's order."""
    return [
        name
        for name, pipe in nlp.pipeline
        if isinstance(pipe, ClassifierPipe) and pipe.answers([]) is not None
    ]


def tune(
    nlp: Language,
    examples: Iterable[Example],
    goal: Goal,
    names: Sequence[str] | None = None,
    *,
    least_gold: int = 1,
    of_filter: bool = True,
    since: str | None = None,
) -> Iterator[Tuned]:
    """Tune components one after the other, in the pipeline and in its config.

    The components before each annotate the documents, as in the pipeline. A component with fewer
    than ``least_gold`` annotated answers, or without any right answer, is skipped with a warning,
    unless it is named. One that always gives an answer is only calibrated; if it is named, or all
    are such, a precision or recall is an error. Raises CorpusError if no component is left,
    ConfigError if the goal cannot be reached; the component keeps its settings then. Settings that
    are chosen on fewer than LEAST_ANSWERS annotated answers are warned of, and annotations with
    labels that no component has. of_filter: also choose the number of candidates and the filter's
    threshold. since: the component up to which the examples are annotated.
    """
    examples, n_tuned = list(examples), 0
    chosen = tunable(nlp, names)
    pipes: list[Any] = [nlp.get_pipe(name) for name in chosen]
    is_for_all = names is not None or all(map(_written_always, pipes))
    for name in chosen:
        trial = Trial(nlp, name, examples, since)
        trial.pipe.note_weights()
        own_goal = goal if is_for_all else possible_goal(name, trial.pipe, goal)
        opened = open_filter(trial, own_goal) if of_filter else None
        answers = trial.answers()
        gold = answers.n_gold
        n_gold = gold.total()
        lost = _shown_lost(trial.unknown_gold())
        if n_gold and lost:
            LOGGER.warning("%s: it is tuned without %s", name, lost)
        # A question without an answer says as much about scores as one with.
        of_questions = "no_answer" in trial.pipe.cfg
        n_asked = max(n_gold, len(answers.found)) if of_questions else n_gold
        if n_asked < least_gold or not n_gold:
            message = f"{name}: the development data has no annotation to tune on"
            if n_gold:
                message = (
                    f"{name}: the development data has only {n_gold} annotated answers to tune on, "
                    f"of {least_gold} that are needed"
                )
            message += f", but for {lost}" if lost else "."
            if names is not None:
                raise CorpusError(message)
            LOGGER.warning(message)
            continue
        before, filter_before = dict(trial.pipe.cfg), trial.filter_settings()
        try:
            with trial.kept_if_it_fails():
                tuned = _tune(trial, own_goal, opened)
        except CorpusError as err:
            if names is not None:
                raise
            LOGGER.warning("%s Its settings are as they were.", err)
            continue
        n_tuned += 1
        changed = filter_before != trial.filter_settings() or any(
            before.get(key) != value for key, value in tuned.settings.items()
        )
        if n_gold < LEAST_ANSWERS and changed:
            LOGGER.warning(
                "%s: the development data has only %d annotated answers that it could give. "
                "Settings chosen on fewer than %d may be worse on other data than those before.",
                name,
                n_gold,
                LEAST_ANSWERS,
            )
        elif own_goal.each_label and (
            few := {x: n for x, n in gold.items() if 0 < n < LEAST_ANSWERS}
        ):
            LOGGER.warning(
                "%s: thresholds of labels that are chosen on fewer than %d annotated answers may "
                "not keep what is wanted on other data: %s.",
                name,
                LEAST_ANSWERS,
                ", ".join(f"{x} ({n})" for x, n in sorted(few.items(), key=lambda x: x[1])),
            )
        yield tuned
        if name != chosen[-1]:
            examples, since = trial.annotated(), name
    if not n_tuned:
        raise CorpusError("The development data has no annotation to tune on, or no right answer.")


def possible_goal(name: str, pipe: ClassifierPipe, goal: Goal) -> Goal:
    """The goal of a component that is not named: one that always gives an answer is only
    calibrated, which is logged."""
    always = _written_always(pipe)
    if not always or goal == Goal():
        return goal
    LOGGER.warning(
        "%s writes %s: it is only calibrated, and %s is not looked for.",
        name,
        always,
        _shown(goal),
    )
    return Goal()


def _written_always(pipe: ClassifierPipe) -> str:
    """What a component writes whatever its score; empty if its scores have a threshold."""
    if pipe.layer == "types" and not pipe.cfg["multi_label"]:
        return "exactly one type per span"
    return "" if pipe.cfg.get("no_answer", True) else "an answer to every question"


def _tune(trial: Trial, goal: Goal, opened: OpenFilter | None) -> Tuned:
    cfg = trial.pipe.cfg
    figures = Figures.of(trial.answers())
    tuned = Tuned(trial, figures, figures)
    always = _written_always(trial.pipe)
    has_threshold = not always
    if always and goal != Goal():
        raise ConfigError(
            f"{trial.name} writes {always}, so no precision or recall can be chosen: it can only "
            "be calibrated."
        )
    least_before = cfg[trial.pipe.least_score]
    calibrated = cfg["calibration"] is not None
    untuned = (cfg["calibration"] or {}).get("before", least_before)
    trial.set(calibration=None, thresholds={})
    least = _LEAST_SCORE if cfg.get("multi_label") else 0.0
    if has_threshold:
        trial.set(**{trial.pipe.least_score: least})
    if "nil_bias" in cfg:
        if opened is not None:
            trial.predictions = opened.predictions
        choose_bias(trial, goal)
        if cfg.get("known") is not None:
            choose_bias(trial, goal, "known_bias")
        if opened is not None:
            tuned.filter = choose_filter(trial, goal, opened)
    held_out = _calibrate(trial, least, calibrated)
    if has_threshold:
        answers = trial.answers()
        own = trial.pipe.best_least_score(trial.examples) if goal == Goal() else None
        if goal == Goal() and not own and not any(answers.right):
            raise CorpusError(f"{trial.name}: no answer on the development data is right.")
        if own == inf:
            raise CorpusError(
                f"{trial.name}: on the development data it is best to give no answer at all: so "
                "few are right."
            )
        given = answers, goal, trial.pipe.answer_labels, least, cfg["calibration"] is not None
        chosen = choose_thresholds(*given) if own is None else Thresholds(own, {}, [])
        if chosen is None:
            raise ConfigError(
                f"{trial.name}: {_shown(goal)} cannot be reached on the development data with any "
                f"threshold; {highest(*given):g} can. Its settings are as they were."
            )
        possible = {
            x: highest(answers.of_label(x), replace(goal, each_label=False), *given[2:])
            for x in chosen.unreached
        }
        _warn_of_unreached(trial.name, chosen, goal, possible)
        # With a threshold for every label, the common one is that of labels to come.
        common = least_before if goal.each_label else chosen.threshold
        trial.set(**{trial.pipe.least_score: common, "thresholds": chosen.by_label})
        tuned.thresholds = chosen
    if cfg["calibration"] is not None:
        trial.set(calibration={**cfg["calibration"], "before": untuned})
    tuned.held_out_error = _error_of_written(trial, held_out, has_threshold)
    answers = trial.answers()
    tuned.after = Figures.of(answers)
    tuned.error_by_chance = error_by_chance(answers.scores) if answers.found else None
    of_list = ["known_bias"] if cfg.get("known") is not None else []
    names = ("nil_bias", *of_list, trial.pipe.least_score, "thresholds", "calibration")
    tuned.settings = {name: cfg[name] for name in names if name in cfg}
    return tuned


def _calibrate(trial: Trial, least: float, calibrated: bool) -> Answers:
    """Returns the answers that the calibration was fitted on, with scores that were not fitted on
    them; none without calibration.

    calibrated: whether the component had a calibration.
    """
    ancestors = trial.pipe.cfg.get("ancestors")
    if ancestors and not trial.pipe.cfg["multi_label"]:
        trial.set(ancestors=False)  # implied types have the score of the type that was chosen
    answers = trial.answers()
    if ancestors is not None:
        trial.set(ancestors=ancestors)
    found = answers.labels, answers.scores, answers.right
    table = fit_calibration(*found, least)
    trial.set(calibration=table)
    if table is None:
        if answers.found:
            LOGGER.warning(
                "%s: %d answers on the development data are too few for calibration (%d are "
                "needed); %s.",
                trial.name,
                len(answers.found),
                LEAST_ANSWERS,
                "the earlier calibration is removed, because it cannot be fitted anew"
                if calibrated
                else "scores stay as they are",
            )
        return Answers()
    scores = held_out_scores(*found, least)
    if scores is None:
        return Answers()
    return Answers([x._replace(score=y) for x, y in zip(answers.found, scores.tolist())])


def _error_of_written(trial: Trial, held_out: Answers, has_threshold: bool) -> float | None:
    """The calibration error of the answers that are not below the thresholds: of the others, which
    may be far more, nobody sees a score."""
    names = list(trial.pipe.answer_labels)
    of_label = np.asarray([names.index(x) for x in held_out.labels], dtype=np.int64)
    scores = np.asarray(held_out.scores)
    written = np.ones(len(scores), dtype=bool)
    if has_threshold:
        confidence = Confidence.of(trial.name, trial.pipe.cfg, names, trial.pipe.least_score)
        written = confidence.accepts(of_label, scores)
    right = np.asarray(held_out.right, dtype=bool)[written]
    return calibration_error(scores[written].tolist(), right.tolist())


def _warn_of_unreached(
    name: str, chosen: Thresholds, goal: Goal, possible: dict[str, float]
) -> None:
    """possible: the highest that each label reaches."""
    written = (
        "nothing is written"
        if goal.precision
        else f"everything with a score of at least {chosen.threshold:g} is written"
    )
    unreached = [f"{x} ({possible[x]:g} can)" for x in chosen.unreached]
    for labels, why in (
        (unreached, f"{_shown(goal)} cannot be reached for the labels"),
        (chosen.without_gold, "the development data has no annotation with the labels"),
    ):
        if labels:
            LOGGER.warning("%s: %s %s. Of these, %s.", name, why, ", ".join(labels), written)


def _shown_lost(unknown: Counter[str]) -> str:
    """Annotations that no component can give; empty if there are none."""
    if not unknown:
        return ""
    names = ", ".join(name for name, _ in unknown.most_common(_SHOWN_LABELS))
    more = ", ..." if len(unknown) > _SHOWN_LABELS else ""
    return f"{unknown.total()} annotations with labels that no component has: {names}{more}."


def _shown(goal: Goal) -> str:
    return f"precision {goal.precision:g}" if goal.precision else f"recall {goal.recall}"
