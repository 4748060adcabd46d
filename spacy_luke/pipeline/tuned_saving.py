"""Training tunes the pipelines that it saves, and is otherwise the same as without."""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from logging import WARNING, LogRecord
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.training import Example
from spacy.util import registry, resolve_dot_names

from ..calibration import LEAST_ANSWERS
from ..errors import ConfigError, CorpusError
from ..report import LOGGER
from .classifier_pipe import ClassifierPipe
from .model_card import record_scores, refresh
from .thresholds import Goal
from .tuning import can_be_tuned, possible_goal, tunable, tune

_NUMBER = re.compile(r"(?<!\w)\d+(\.\d+)?(e[-+]?\d+)?(?!\w)")
"""Not in a name, such as P17."""


@registry.callbacks("spacy-luke.tune.v1")
def make_tune(
    corpus: str | None = None,
    components: list[str] | None = None,
    precision: float | None = None,
    recall: float | None = None,
    each_label: bool = False,
) -> Callable[[Language], Language]:
    """For ``[training.before_to_disk]``: tune every pipeline that training saves.

    corpus: the section of the config with the reader of the development data; None:
        ``training.dev_corpus``.
    components: by default all that can be tuned and are not frozen. precision, recall, each_label:
        :class:`.Goal`. If it cannot be reached (yet), this is logged.

    A component for which the data has fewer than LEAST_ANSWERS annotated answers stays as it is,
    and so does the filter of two-stage mode, with which only the speed changes. A copy is tuned and
    saved with its scores: training, and what it reports, stay as they are. What is warned of is
    logged where it is not what was warned of when the pipeline was saved before.
    """
    goal = Goal(precision, recall, each_label)
    changes = _Changes()
    readers: list[Callable[[Language], Iterable[Example]]] = []

    def callback(nlp: Language) -> Language:
        config = nlp.config.interpolate()["training"]
        names = tunable(nlp, components) if components else can_be_tuned(nlp)
        names = [name for name in names if components or name not in config["frozen_components"]]
        with changes.logged(), _same_random_numbers():
            if not names:
                LOGGER.warning(
                    "The saved pipeline is not tuned: %s.",
                    "all that could be is frozen" if can_be_tuned(nlp) else "nothing can be",
                )
                return nlp
            if not readers:
                name = corpus or config["dev_corpus"]
                readers.extend(resolve_dot_names(nlp.config.interpolate(), [name]))
            goals = {
                name: goal if components else possible_goal(name, pipe, goal)
                for name, pipe in nlp.pipeline
                if name in names and isinstance(pipe, ClassifierPipe)
            }
            try:
                return _tuned_copy(nlp, readers[0], goals)
            except Exception as err:  # not a reason to lose what was trained
                LOGGER.warning("The saved pipeline is not tuned. %s: %s", type(err).__name__, err)
                return nlp

    return callback


def _tuned_copy(
    nlp: Language,
    reader: Callable[[Language], Iterable[Example]],
    goals: dict[str, Goal],
) -> Language:
    """goals: of each component that is to be tuned."""
    tuned = _copy(nlp)
    examples, since = list(reader(tuned)), None
    for name, goal in goals.items():
        # One that cannot be tuned does not keep the others from it.
        try:
            (result,) = tune(
                *(tuned, examples, goal, [name]),
                least_gold=LEAST_ANSWERS,
                of_filter=False,
                since=since,
            )
        except (ConfigError, CorpusError) as err:
            LOGGER.warning("%s of the saved pipeline is not tuned. %s", name, err)
        else:
            LOGGER.info("%s: %s", name, result.settings)
            examples, since = result.annotated(), name
    if since == tuned.pipe_names[-1]:
        record_scores(tuned, examples, are_annotated=True)
    else:
        record_scores(tuned, list(reader(tuned)))
    refresh(tuned)
    return tuned


def _copy(nlp: Language) -> Language:
    """A copy without the optimizer, whose schedules cannot be copied. The vocabulary, which may
    have large vectors, is shared, and so are components of others that cannot be copied."""
    shared: dict[int, Any] = {id(nlp._optimizer): None, id(nlp.vocab): nlp.vocab}
    try:
        return deepcopy(nlp, dict(shared))
    except Exception:
        for _, pipe in nlp.components:
            if not isinstance(pipe, ClassifierPipe):
                try:
                    deepcopy(pipe, dict(shared))
                except Exception:
                    shared[id(pipe)] = pipe
        return deepcopy(nlp, dict(shared))


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """A context after which random numbers are drawn as if it had not been: a reader may augment
    the data."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])


class _Changes:
    """Keeps back warnings as long as they are those of the time before."""

    def __init__(self) -> None:
        self._before: set[str] = set()

    @contextmanager
    def logged(self) -> Iterator[None]:
        """A time: what the package logs in this context is logged in the end."""
        records: list[LogRecord] = []

        def keep(record: LogRecord) -> bool:
            records.append(record)
            return False

        LOGGER.addFilter(keep)
        try:
            yield
        finally:
            LOGGER.removeFilter(keep)
            warnings = {_without_numbers(x) for x in records if x.levelno >= WARNING}
            is_new = warnings != self._before
            if is_new and self._before:
                LOGGER.warning(
                    "For the pipeline that is saved now, this holds instead of what was warned of "
                    "before:"
                    if warnings
                    else "What was warned of before does not hold for the pipeline that is saved "
                    "now."
                )
            for record in records:
                if is_new or record.levelno < WARNING:
                    LOGGER.handle(record)
            self._before = warnings


def _without_numbers(record: LogRecord) -> str:
    """Numbers differ from save to save."""
    return _NUMBER.sub("0", record.getMessage())
