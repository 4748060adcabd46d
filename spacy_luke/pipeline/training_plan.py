"""Choose the length of a training by the size of its corpus.

A learning rate with warm-up and linear decay needs the number of steps, and a config does not know
the size of the corpus. This callback counts the batches of one epoch and sets the settings that are
0 in the config, before ``spacy train`` reads them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.util import registry, resolve_dot_names
from wasabi import msg

from ..errors import ConfigError, CorpusError
from .sourced import check_sourced

_MOST_EPOCHS = 1000
"""Of a training that the words of its corpus would make longer."""
_FEW_STEPS = 100
"""Fewer hardly teach anything."""
_LONG_AFTER = 1.25
"""A learning rate that would need so many times the steps of the training."""
_COUNTED, _MOST_DRAWS = 200, 20
"""Batches that are counted, and passes over the corpus for that: a batcher may draw."""


@dataclass(frozen=True)
class Epoch:
    """One pass over the training corpus. words: in the mean of the passes that were counted. ends:
    batches after each of these. grows: the size of batches follows a schedule."""

    docs: int
    words: int
    ends: list[int]
    grows: bool

    @property
    def batches(self) -> float:
        """In the mean."""
        return self.ends[-1] / len(self.ends)

    def steps(self, passes: float) -> float:
        """Of so many passes; if they are more than were counted, as many each as in the mean."""
        if self.grows and passes <= len(self.ends):
            return float(np.interp(passes, range(len(self.ends) + 1), [0, *self.ends]))
        return passes * self.batches

    def passes(self, steps: float) -> float:
        """The inverse of :meth:`steps`."""
        if self.grows and steps <= self.ends[-1]:
            return float(np.interp(steps, [0, *self.ends], range(len(self.ends) + 1)))
        return steps / self.batches


@dataclass(frozen=True)
class Plan:
    """Steps of the training, of its warm-up, and between evaluations. last: the last step that can
    be evaluated. reason: shown to the user. is_set: whether ``max_steps`` was given."""

    steps: int
    warmup_steps: int
    eval_frequency: int
    last: int
    reason: str
    is_set: bool


@registry.callbacks("spacy-luke.plan_training.v1")
def make_plan_training(
    words: int = 350_000, epochs: float = 4.0, warmup: float = 0.1, evaluations: int = 8
) -> Callable[[Language], Language]:
    """For ``[initialize.after_init]``: choose the steps of a training by the size of its corpus.

    A training reads at least ``words`` words (but the corpus at most 1,000 times) and makes at
    least ``epochs`` passes, so a small corpus is read many times and a large corpus a few times.
    The batches of ``[training.batcher]`` are counted, in several passes if they are few, because a
    batcher may draw, and in all passes if their size follows a schedule; so the result accounts for
    the batch size.

    Only settings that are 0 are set: ``max_steps`` (not if ``max_epochs`` is set, which then
    decides; ``total_steps``, if that is set), ``eval_frequency``, and ``total_steps`` and
    ``warmup_steps`` of ``optimizer.learn_rate``. The choice is printed, and saved in the pipeline's
    ``config.cfg``. What cannot work is warned of, also if everything is set (but not if epochs
    decide then): an evaluation after the last step, or after ``patience`` has ended the training, a
    warm-up that does not end, a learning rate that ends before or long after the training, and a
    training of a few steps. If nothing is left to choose, this is printed, too.

    words, epochs: least number of words, and of passes over the corpus.
    warmup: share of the steps in which the learning rate rises. Not used if ``total_steps`` is set.
    evaluations: number of evaluations in the training.

    Raises ConfigError for invalid values, also of ``[training]``, if the corpus is streamed
    (``max_epochs = -1``) and ``max_steps`` is not set, and for what :func:`.check_sourced` finds;
    CorpusError if the corpus has no batches.
    """
    if not (words >= 0 and epochs >= 0 and words + epochs > 0):
        raise ConfigError(
            f"plan_training: words is {words} and epochs is {epochs}; one must be above 0, and "
            "neither may be negative."
        )
    if not 0 <= warmup <= 1:
        raise ConfigError(f"plan_training.warmup is {warmup}; it must be from 0 to 1.")
    if evaluations < 1:
        raise ConfigError(f"plan_training.evaluations is {evaluations}; it must be at least 1.")

    def plan_training(nlp: Language) -> Language:
        check_sourced(nlp)
        training = nlp.config.interpolate()["training"]
        for name in ("max_steps", "eval_frequency"):
            if training[name] < 0:
                raise ConfigError(f"[training] {name} is {training[name]}; it must be at least 0.")
        names = open_settings(training)
        if names:
            plan = make_plan(nlp, words, epochs, warmup, evaluations)
            chosen = fill_in(nlp.config["training"], names, plan)
            msg.info(f"Training plan: {plan.reason}. Chosen: {chosen}.")
        else:
            msg.info("Training plan: the config sets all steps; words and epochs change nothing.")
            if not training["max_steps"] or training["max_epochs"] >= 1:
                return nlp
            plan = Plan(training["max_steps"], 0, 0, training["max_steps"], "as set", True)
        for warning in unsuited(nlp.config.interpolate()["training"], plan):
            msg.warn(f"Training plan: {warning}")
        return nlp

    return plan_training


def open_settings(training: dict[str, Any]) -> list[str]:
    """The settings of ``[training]`` that are 0 and can be chosen."""
    names = [name for name in ("max_steps", "eval_frequency") if not training[name]]
    if training["max_epochs"] > 0 and "max_steps" in names:
        names.remove("max_steps")
    if _schedule(training).get("total_steps") == 0:
        names.append("total_steps")
    return names


def make_plan(nlp: Language, words: int, epochs: float, warmup: float, evaluations: int) -> Plan:
    """See :func:`make_plan_training`."""
    training = nlp.config.interpolate()["training"]
    max_steps, max_epochs = training["max_steps"], training["max_epochs"]

    def least_epochs(n_words: int) -> float:
        return max(epochs, min(words / n_words, _MOST_EPOCHS))

    last = 0
    if max_epochs == -1:
        if not max_steps:
            raise ConfigError(
                "[training] max_epochs is -1 (the corpus is streamed) and max_steps 0: the size of "
                "the corpus is unknown. Set max_steps."
            )
        steps, reason = max_steps, f"{max_steps:,} steps, as set"
    else:
        total_steps = _schedule(training).get("total_steps")
        most_steps = max_steps or (0 if max_epochs else total_steps) or math.inf

        def most_passes(n_words: int) -> float:
            if most_steps < math.inf:  # little depends on them
                return min(max_epochs or math.inf, _MOST_DRAWS)
            return max_epochs or least_epochs(n_words)

        epoch = count_epoch(nlp, most_passes, most_steps)
        epoch_end = round(epoch.steps(max_epochs)) if max_epochs else math.inf
        if max_steps and max_steps <= epoch_end:
            steps, rule = max_steps, "as set"
        elif max_epochs:
            steps, rule = int(epoch_end), f"max_epochs is {max_epochs}"
            last = steps - 1  # spaCy counts steps from 0
        elif total_steps:
            steps, rule = total_steps, "total_steps of the learning rate"
        else:
            least = math.ceil(epoch.steps(least_epochs(epoch.words)))
            every = math.ceil(least / evaluations)
            steps = every * math.ceil(least / every)  # a multiple: the last step is evaluated
            rule = f"at least {words:,} words and {epochs:g} epochs"
            if words / epoch.words > _MOST_EPOCHS > epochs:
                rule = f"at most {_MOST_EPOCHS:,} epochs for {words:,} words"
        passes = epoch.passes(steps)
        n_epochs = f"{passes:,.0f}" if passes >= 10 else f"{passes:.2g}"
        reason = (
            f"{epoch.docs:,} documents of {epoch.words:,} words are {epoch.batches:,.0f} batches "
            f"per epoch. {steps:,} steps, {n_epochs} epochs ({rule})"
        )
    last = last or steps
    is_set = steps == max_steps
    return Plan(steps, round(warmup * steps), frequency(last, evaluations), last, reason, is_set)


def unsuited(training: dict[str, Any], plan: Plan) -> Iterator[str]:
    """What cannot work, with the settings of ``[training]`` as they are now."""
    if plan.steps < _FEW_STEPS:
        more = "set max_steps higher" if plan.is_set else "smaller batches make more"
        yield f"{plan.steps} steps teach little; {more}."
    if training["eval_frequency"] > plan.last:
        yield (
            f"eval_frequency is {training['eval_frequency']}, and the last step {plan.last}: only "
            "the untrained pipeline is evaluated, and saved as the best."
        )
    patience = training["patience"]
    if 0 < patience < min(training["eval_frequency"], plan.steps):
        yield (
            f"patience is {patience}, and eval_frequency {training['eval_frequency']}: the "
            f"training ends at step {patience}, before its first evaluation. Set patience = 0."
        )
    total_steps = _schedule(training).get("total_steps")
    if total_steps and total_steps < plan.steps:
        yield (
            f"total_steps of the learning rate is {total_steps}, and the training has "
            f"{plan.steps} steps: those after it change nothing if the rate is 0 by then."
        )
    if total_steps and total_steps > _LONG_AFTER * plan.steps:
        yield (
            f"total_steps of the learning rate is {total_steps}, and the training has "
            f"{plan.steps} steps: it ends while the rate is still high. Set total_steps = 0."
        )
    if (_schedule(training).get("warmup_steps") or 0) >= plan.steps > 1:
        yield (
            f"warmup_steps is {_schedule(training)['warmup_steps']}, and the training has "
            f"{plan.steps} steps: the learning rate never reaches initial_rate."
        )


def _schedule(training: dict[str, Any]) -> dict[str, Any]:
    """The settings of the learning rate; none if it is a constant."""
    schedule = training["optimizer"].get("learn_rate")
    return schedule if isinstance(schedule, dict) else {}


def frequency(last: int, evaluations: int) -> int:
    """Steps from one evaluation to the next, for about ``evaluations`` of them.

    spaCy evaluates at multiples of this number only. The last multiple should be as close as
    possible to the last step, because the learning rate is lowest there. With 10 steps and 3
    evaluations the result is 3: evaluations after 3, 6 and 9 steps. If epochs decide, and their
    batches are drawn, a training may end anywhere between two multiples.
    """
    largest = max(1, math.ceil(last / evaluations))
    return min(range(largest, largest // 2, -1), key=lambda every: last % every)


def count_epoch(nlp: Language, passes: Callable[[int], float], most_steps: float) -> Epoch:
    """Read the training corpus, and count the batches that the config's batcher makes of it.

    passes: how many the training makes over so many words. If the size of batches follows a
    schedule (a block with ``@schedules``), which goes on from one pass to the next, all are
    counted, or as many as ``most_steps`` steps are.
    """
    config = nlp.config.interpolate()
    settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    try:
        (corpus,) = resolve_dot_names(config, [settings["train_corpus"]])
        examples = list(corpus(nlp))
    except (OSError, ValueError) as err:
        raise ConfigError(
            f"plan_training: the training corpus ({settings['train_corpus']}) cannot be read: "
            f"{err} To initialise outside of spacy train without a corpus, set "
            "initialize.after_init to null."
        ) from err
    grows = _has_schedule(config["training"]["batcher"])
    n_words, ends, enough = 0, [0], False
    while not enough:
        sizes = [sum(len(eg.predicted) for eg in batch) for batch in settings["batcher"](examples)]
        if not sum(sizes):
            raise CorpusError("The training corpus ([corpora.train]) has no words.")
        n_words += sum(sizes)
        ends.append(ends[-1] + len(sizes))
        n_draws = len(ends) - 1
        if grows:
            enough = ends[-1] >= most_steps or n_draws >= passes(round(n_words / n_draws))
        else:
            enough = ends[-1] >= _COUNTED or n_draws >= _MOST_DRAWS
    return Epoch(len(examples), round(n_words / n_draws), ends[1:], grows)


def _has_schedule(batcher: dict[str, Any]) -> bool:
    """Whether a setting of a batcher, or of one in it, changes from batch to batch."""
    blocks = [x for x in batcher.values() if isinstance(x, dict)]
    return any("@schedules" in x or _has_schedule(x) for x in blocks)


def fill_in(training: dict[str, Any], open_names: Sequence[str], plan: Plan) -> str:
    """Set settings of ``[training]``, and return them as text."""
    chosen: dict[str, int] = {}
    if "max_steps" in open_names:
        chosen["max_steps"] = training["max_steps"] = plan.steps
    if "total_steps" in open_names:
        schedule = training["optimizer"]["learn_rate"]
        chosen["total_steps"] = schedule["total_steps"] = plan.steps
        if not schedule.get("warmup_steps"):
            chosen["warmup_steps"] = schedule["warmup_steps"] = plan.warmup_steps
    if "eval_frequency" in open_names:
        chosen["eval_frequency"] = training["eval_frequency"] = plan.eval_frequency
    return ", ".join(f"{name} = {value}" for name, value in chosen.items())
