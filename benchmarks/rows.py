"""The rows of the NER tables: one spaCy training config each.

All rows share encoder, batches, steps, dropout, weight decay, clipping and schedule; fresh
weights learn at five times the encoder's rate. ``configs/ner.cfg`` is the base; its sentencizer is
left out, because the corpora come in sentences.
"""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spacy.util import load_config
from thinc.api import Config

from .baselines import ARCHITECTURE, FACTORY
from .datasets import READER, SPANS_KEY, Corpora

MODES = ("two-stage", "probe", "full")
ROWS = ("token", "spancat", "full", "probe", "two-stage")
BASE = Path(__file__).resolve().parents[1] / "configs" / "ner.cfg"
HEAD_FACTOR = 5.0
COMPONENT = "ner"


@dataclass(frozen=True)
class Settings:
    """What one run was trained with; equal settings, row, data and seed are the same run.

    learn_rate: peak rate of the encoder. n_sents: sentences a document. limit: documents of
    each file, 0 for all. negative_weight: of stock ``spancat`` alone. overrides: further
    config values by dotted name, with ``component`` for the row's component.
    """

    learn_rate: float = 2e-4
    epochs: int = 3
    batch_size: int = 16
    max_words: int = 8
    n_sents: int = 1
    limit: int = 0
    mixed_precision: bool = False
    encoder: str = ""
    negative_weight: float | None = None
    overrides: dict[str, Any] = field(default_factory=dict)

    def steps(self, n_train: int) -> int:
        return self.epochs * math.ceil(n_train / self.batch_size)

    def record(self) -> dict[str, Any]:
        """As written to results: the encoder by its name, not its place."""
        return {**asdict(self), "encoder": Path(self.encoder).name}


def make_config(row: str, corpora: Corpora, settings: Settings, seed: int, gpu: bool) -> Config:
    """The training config of a row. gpu: use PyTorch's allocator."""
    base = load_config(BASE)
    steps = settings.steps(corpora.n_train)
    component = _component(row, _span_component(base), settings)
    rate = settings.learn_rate * (1.0 if row in MODES else HEAD_FACTOR)
    reader = "spacy.Corpus.v1" if settings.n_sents == 1 else READER
    training = copy.deepcopy(base["training"])
    training["optimizer"]["learn_rate"] = {
        "@schedules": "warmup_linear.v1",
        "warmup_steps": max(1, steps // 10),
        "total_steps": steps,
        "initial_rate": rate,
    }
    training.update(
        seed=seed,
        gpu_allocator="pytorch" if gpu else None,
        train_corpus="corpora.train",
        dev_corpus="corpora.dev",
        max_epochs=settings.epochs,
        max_steps=0,
        patience=0,
        # The last weights are used, so the loop's own evaluation is only the one of step 0.
        eval_frequency=steps + 1,
        score_weights={"ents_f": 1.0},
        frozen_components=[],
        annotating_components=[],
        before_to_disk=None,
        before_update=None,
        logger={"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False},
        batcher={"@batchers": "spacy.batch_by_sequence.v1", "size": settings.batch_size},
    )
    config = Config(
        {
            "nlp": {**base["nlp"], "pipeline": [COMPONENT]},
            "components": {COMPONENT: component},
            "corpora": {
                "train": {"@readers": reader, "path": str(corpora.train)},
                "dev": {"@readers": reader, "path": str(corpora.dev), "limit": 4},
            },
            "training": training,
            "initialize": {"vectors": None},
        }
    )
    return _override(config, settings.overrides)


def _span_component(base: Config) -> dict[str, Any]:
    """The ``luke_ner`` block of a config."""
    for block in base["components"].values():
        if block.get("factory") == "luke_ner":
            return block
    raise ValueError(f"{BASE} has no luke_ner component.")


def _component(row: str, base: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """A row's component, from the base config's ``luke_ner``."""
    component = copy.deepcopy(base)
    component["suggester"] = {
        "@misc": "spacy-luke.sentence_spans_suggester.v1",
        "max_words": settings.max_words,
    }
    component["nil_bias"] = 0.0
    model = component["model"]
    encoder = {
        **model["encoder"],
        "name": settings.encoder,
        "mixed_precision": settings.mixed_precision,
        "new_learn_rate_factor": HEAD_FACTOR,
        "learn_rate_factor": 1.0,
    }
    if row in MODES:
        model.update(encoder=encoder, mode=row, learn_rate_factor=HEAD_FACTOR)
        return component
    # The optimizer's rate is that of the Thinc head here, and the encoder's a fifth of it.
    encoder["learn_rate_factor"] = 1.0 / HEAD_FACTOR
    if row == "token":
        encoder["pooling"] = "first"
        return {
            "factory": FACTORY,
            "model": {"@architectures": ARCHITECTURE, "tok2vec": encoder},
        }
    if row != "spancat":
        raise ValueError(f"row {row!r} is not known; choose from {', '.join(ROWS)}.")
    return {
        "factory": "spancat_singlelabel",
        "spans_key": SPANS_KEY,
        "allow_overlap": False,
        "negative_weight": 1.0 if settings.negative_weight is None else settings.negative_weight,
        "suggester": component["suggester"],
        "model": {
            "@architectures": "spacy.SpanCategorizer.v1",
            "tok2vec": encoder,
            "reducer": {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 128},
            "scorer": {"@layers": "Softmax.v2"},
        },
    }


@contextmanager
def changed(settings: Any, values: dict[str, Any]) -> Iterator[None]:
    """Change attributes of a component's settings for a while."""
    old = {name: getattr(settings, name) for name in values}
    for name, value in values.items():
        setattr(settings, name, value)
    try:
        yield
    finally:
        for name, value in old.items():
            setattr(settings, name, value)


def _override(config: Config, overrides: dict[str, Any]) -> Config:
    """Set values by dotted name; every name must be in a block that is there."""
    for name, value in overrides.items():
        *path, last = name.split(".")
        if path and path[0] == "component":
            path[:1] = ["components", COMPONENT]
        block = config
        for part in path:
            if part not in block:
                raise ValueError(f"--set {name}: the config has no block {part!r}.")
            block = block[part]
        block[last] = value
    return config
