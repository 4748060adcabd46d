"""The shipped configs of entities, relations and types, with paths alone, on every data set."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spacy.util import load_config
from thinc.api import Config

from . import datasets, task_data
from .datasets import DATA_SETS, Corpora
from .task_data import RELATION_SETS, TYPING_SETS, TaskSet
from .task_rows import NER, RELATION, RELATION_TASKS, TYPED, TYPING
from .training import CONFIGS


@dataclass(frozen=True)
class Shipped:
    """A shipped config on a data set.

    config: its name. component: what it trains. scores: the names of precision, recall and F.
    prepare: data folder, work folder, ``limit`` and ``train_limit`` -> corpora. said: what a user
    has to say of the data: settings of the component, without its threshold.
    """

    config: str
    component: str
    scores: tuple[str, str, str]
    prepare: Callable[..., Corpora]
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Of the names of all scores of the component."""
        return self.scores[0].partition("_")[0]

    @property
    def has_threshold(self) -> bool:
        """Whether a score may be too low for an answer; else every mention gets one type."""
        return self.component != TYPING or self.said["multi_label"]

    def made(self, corpora: Corpora, encoder: str, seed: int) -> Config:
        """The config with its paths, and what is said of the data."""
        overrides: dict[str, Any] = {
            "paths.encoder": encoder,
            "system.seed": seed,
            "training.logger.progress_bar": False,
        }
        for part in ("train", "dev"):
            overrides[f"paths.{part}"] = str(getattr(corpora, part))
            if "spans_key" in self.said:
                overrides[f"corpora.{part}.spans_key"] = self.said["spans_key"]
        overrides.update({f"components.{self.component}.{x}": y for x, y in self.said.items()})
        return load_config(CONFIGS / f"{self.config}.cfg", overrides=overrides)


def entities(data: str) -> Shipped:
    scores = ("ents_p", "ents_r", "ents_f")
    return Shipped("ner", NER, scores, partial(datasets.prepare, data))


def relations(data: str) -> Shipped:
    scores = ("rels_p", "rels_r", "rels_f")
    return _of_task("relation", RELATION, scores, data, RELATION_SETS[data], RELATION_TASKS[data])


def types(data: str) -> Shipped:
    scores = ("types_micro_p", "types_micro_r", "types_micro_f")
    return _of_task("entity_typing", TYPING, scores, data, TYPING_SETS[data], TYPED)


def _of_task(
    config: str,
    component: str,
    scores: tuple[str, str, str],
    data: str,
    source: TaskSet,
    rows: dict[str, Any],
) -> Shipped:
    # The threshold there is that of a benchmark which chooses another on dev.
    said = {name: value for name, value in rows.items() if name != "threshold"}
    return Shipped(config, component, scores, partial(task_data.prepare, data, source), said)


SHIPPED: dict[str, Shipped] = {
    **{name: entities(name) for name in DATA_SETS},
    **{f"relations.{name}": relations(name) for name in RELATION_SETS},
    **{f"types.{name}": types(name) for name in TYPING_SETS},
}
"""By the names of data sets; those of relations and types begin with the task."""
