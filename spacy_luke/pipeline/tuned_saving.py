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

_NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]\d+)?")


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
    saved with its scores: training, and what it reports, stay as they are. What is logged of a
    saved pipeline is what was not said of the one before.
    """
    goal = Goal(precision, recall, each_label)
    changes, untuned = _Changes(), set[str]()
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
                name: goal if components else possible_goal(pipe, goal)
                for name, pipe in nlp.pipeline
                if name in names and isinstance(pipe, ClassifierPipe)
            }
            try:
                return _tuned_copy(nlp, readers[0], goals, untuned)
            except Exception as err:  # not a reason to lose what was trained
                untuned.update(names)
                LOGGER.warning("The saved pipeline is not tuned. %s: %s", type(err).__name__, err)
                return nlp

    return callback


def _tuned_copy(
    nlp: Language,
    reader: Callable[[Language], Iterable[Example]],
    goals: dict[str, Goal],
    untuned: set[str],
) -> Language:
    """goals: of each component that is to be tuned. untuned: those that were saved as trained
    before, and it was said; updated."""
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
            untuned.add(name)
            LOGGER.warning("%s of the saved pipeline is not tuned. %s", name, err)
        else:
            if name in untuned:
                untuned.remove(name)
                LOGGER.warning("%s of the saved pipeline is tuned now.", name)
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
    """A filter of log messages that keeps back those of the time before."""

    def __init__(self) -> None:
        self._before: set[str] = set()
        self._now: set[str] = set()

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Filter what the package logs in this context; the contexts are the times."""
        self._now = set()
        LOGGER.addFilter(self.filter)
        try:
            yield
        finally:
            LOGGER.removeFilter(self.filter)
            self._before = self._now

    def filter(self, record: LogRecord) -> bool:
        message = record.getMessage()
        if record.levelno >= WARNING:
            # Its numbers differ from save to save.
            message = _NUMBER.sub("0", message)
        self._now.add(message)
        return message not in self._before
