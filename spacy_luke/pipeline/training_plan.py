"""The length of a training, from the size of its corpus.

A schedule with a warm-up and a linear decay has to know its last step, and a config cannot know how
large the corpus is. This callback counts one epoch of batches and fills in what the config leaves
at 0, before ``spacy train`` reads it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.util import registry, resolve_dot_names
from wasabi import msg

from ..errors import ConfigError, CorpusError


@dataclass(frozen=True)
class Epoch:
    """One pass over the training corpus: documents of the corpus, batches and their words."""

    docs: int
    batches: int
    words: int


@dataclass(frozen=True)
class Plan:
    """Steps of the training, of its warm-up, and between two evaluations."""

    steps: int
    warmup_steps: int
    eval_frequency: int
    why: str


@registry.callbacks("spacy-luke.plan_training.v1")
def make_plan_training(
    words: int = 350_000, epochs: float = 4.0, warmup: float = 0.1, evaluations: int = 8
) -> Callable[[Language], Language]:
    """For ``[initialize.after_init]``: choose the steps of a training by the size of its corpus.

    A training sees at least ``words`` words and makes at least ``epochs`` passes: a small corpus is
    seen many times, a large one a few times. One epoch of ``[training.batcher]`` is counted, so
    the batch size is accounted for.

    Only settings that are 0 are chosen: ``max_steps`` (unless ``max_epochs`` is set, which then
    decides), ``eval_frequency``, and ``total_steps`` and ``warmup_steps`` of
    ``optimizer.learn_rate``. Others stay. The choice is printed, and is in the ``config.cfg`` of
    the trained pipeline.

    words, epochs: the least that a training sees of its corpus.
    warmup: share of the steps in which the learning rate rises. Not used if ``total_steps`` is set.
    evaluations: how often the pipeline is evaluated.

    Raises ConfigError for values that cannot work, and if the corpus is streamed
    (``max_epochs = -1``) without ``max_steps``; CorpusError if it has no batches.
    """
    if not (words >= 0 and epochs >= 0 and words + epochs > 0):
        raise ConfigError(
            f"plan_training: words is {words} and epochs {epochs}; one must be above 0, and "
            "neither below."
        )
    if not 0 <= warmup <= 1:
        raise ConfigError(f"plan_training.warmup is {warmup}; it must be from 0 to 1.")
    if evaluations < 1:
        raise ConfigError(f"plan_training.evaluations is {evaluations}; it must be at least 1.")

    def plan_training(nlp: Language) -> Language:
        training = nlp.config["training"]
        if not open_settings(training):
            return nlp
        plan = make_plan(nlp, words, epochs, warmup, evaluations)
        chosen = fill_in(training, plan)
        msg.info(f"Training plan: {plan.why}. Chosen: {chosen}.")
        return nlp

    return plan_training


def open_settings(training: dict[str, Any]) -> list[str]:
    """The settings of ``[training]`` that are 0 and can be chosen."""
    found = [name for name in ("max_steps", "eval_frequency") if not training[name]]
    if training["max_epochs"] > 0 and "max_steps" in found:
        found.remove("max_steps")
    schedule = training["optimizer"].get("learn_rate")
    if isinstance(schedule, dict) and schedule.get("total_steps") == 0:
        found.append("total_steps")
    return found


def make_plan(nlp: Language, words: int, epochs: float, warmup: float, evaluations: int) -> Plan:
    """See :func:`make_plan_training`."""
    training = nlp.config.interpolate()["training"]
    max_steps, max_epochs = training["max_steps"], training["max_epochs"]
    last = 0
    if max_epochs == -1:
        if not max_steps:
            raise ConfigError(
                "[training] max_epochs is -1 (the corpus is streamed) and max_steps 0: the size of "
                "the corpus is unknown. Set max_steps."
            )
        steps, why = max_steps, f"{max_steps:,} steps, as set"
    else:
        epoch = count_epoch(nlp)
        found = (
            f"{epoch.docs:,} documents of {epoch.words:,} words are {epoch.batches:,} batches per "
            "epoch."
        )
        ends = max_epochs * epoch.batches if max_epochs else math.inf
        if max_steps and max_steps <= ends:
            steps, reason = max_steps, "as set"
        elif max_epochs:
            steps, reason = max_epochs * epoch.batches, f"max_epochs is {max_epochs}"
            last = steps - 1  # spaCy counts from 0, and stops there
        else:
            wanted = math.ceil(max(epochs, words / epoch.words) * epoch.batches)
            every = math.ceil(wanted / evaluations)
            steps = every * math.ceil(wanted / every)  # the last step is evaluated
            reason = f"at least {words:,} words and {epochs:g} epochs"
        passes = steps / epoch.batches
        shown = f"{passes:,.0f}" if passes >= 10 else f"{passes:.2g}"
        why = f"{found} {steps:,} steps, {shown} epochs ({reason})"
    every = frequency(last or steps, evaluations)
    return Plan(steps, round(warmup * steps), every, why)


def frequency(last: int, evaluations: int) -> int:
    """Steps between about so many evaluations, of which one is as near to the last step as can be:
    there the learning rate is lowest, and spaCy evaluates at multiples only."""
    most = max(1, math.ceil(last / evaluations))
    return min(range(most, most // 2, -1), key=lambda every: last % every)


def count_epoch(nlp: Language) -> Epoch:
    """Read the training corpus once, and count a pass of the config's batcher over it."""
    config = nlp.config.interpolate()
    settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    try:
        (corpus,) = resolve_dot_names(config, [settings["train_corpus"]])
        examples = list(corpus(nlp))
    except (OSError, ValueError) as err:
        raise ConfigError(
            f"plan_training: the training corpus ({settings['train_corpus']}) cannot be read: "
            f"{err} To initialise without it, outside of spacy train, set initialize.after_init "
            "to null."
        ) from err
    batches = [sum(len(eg.predicted) for eg in batch) for batch in settings["batcher"](examples)]
    if not sum(batches):
        raise CorpusError("The training corpus ([corpora.train]) has no words.")
    return Epoch(len(examples), len(batches), sum(batches))


def fill_in(training: dict[str, Any], plan: Plan) -> str:
    """Write a plan into the settings of ``[training]`` that are 0; return what was written."""
    left = open_settings(training)
    chosen: dict[str, int] = {}
    if "max_steps" in left:
        chosen["max_steps"] = training["max_steps"] = plan.steps
    if "total_steps" in left:
        schedule = training["optimizer"]["learn_rate"]
        chosen["total_steps"] = schedule["total_steps"] = plan.steps
        if not schedule.get("warmup_steps"):
            chosen["warmup_steps"] = schedule["warmup_steps"] = plan.warmup_steps
    if "eval_frequency" in left:
        chosen["eval_frequency"] = training["eval_frequency"] = plan.eval_frequency
    return ", ".join(f"{name} = {value}" for name, value in chosen.items())
