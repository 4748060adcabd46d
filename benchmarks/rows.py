"""The rows of the NER tables: one spaCy training config each.

All rows share encoder, batches, steps, dropout, weight decay, clipping and schedule; fresh
weights learn at five times the encoder's rate. ``configs/ner.cfg`` is the base; its sentencizer is
left out, because the corpora come in sentences.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from thinc.api import Config

from .baselines import ARCHITECTURE, FACTORY
from .datasets import READER, SPANS_KEY, Corpora
from .training import (
    HEAD_FACTOR,
    EpochSettings,
    base_config,
    block_of,
    encoder_block,
    training_config,
)

MODES = ("two-stage", "probe", "full")
ROWS = ("token", "ner", "spancat", "full", "probe", "two-stage")
COMPONENT = "ner"


@dataclass(frozen=True)
class Settings(EpochSettings):
    """Of a run of NER. n_sents: sentences a document. negative_weight: of stock ``spancat``
    alone. train_limit: training documents, 0 for all."""

    max_words: int = 8
    n_sents: int = 1
    negative_weight: float | None = None
    train_limit: int = 0

    def record(self) -> dict[str, Any]:
        # Left out if it is not set, as in records that are older than it.
        return {k: v for k, v in super().record().items() if k != "train_limit" or v}


def make_config(row: str, corpora: Corpora, settings: Settings, seed: int, gpu: bool) -> Config:
    """The training config of a row. gpu: use PyTorch's allocator."""
    base = base_config("ner")
    return training_config(
        base,
        COMPONENT,
        component_of(row, block_of(base, "luke_ner"), settings),
        corpora,
        settings,
        seed=seed,
        gpu=gpu,
        rate=settings.learn_rate * rate_factor(row),
        reader="spacy.Corpus.v1" if settings.n_sents == 1 else READER,
        score="ents_f",
    )


def rate_factor(row: str) -> float:
    """By what the learning rate of the optimizer is that of the encoder."""
    return 1.0 if row in MODES else HEAD_FACTOR


def component_of(row: str, component: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """A row's component, from the base config's ``luke_ner``."""
    component["suggester"] = {
        "@misc": "spacy-luke.sentence_spans_suggester.v1",
        "max_words": settings.max_words,
    }
    component["nil_bias"] = 0.0
    model = component["model"]
    encoder = encoder_block(model["encoder"], settings)
    if row in MODES:
        model.update(encoder=encoder, mode=row, learn_rate_factor=HEAD_FACTOR)
        model["predict_layout"] = None  # full has its own; here, a document is a sentence
        return component
    # The optimizer's rate is that of the Thinc head here, and the encoder's a fifth of it.
    encoder["learn_rate_factor"] = 1.0 / HEAD_FACTOR
    if row == "token":
        encoder["pooling"] = "first"
        return {
            "factory": FACTORY,
            "model": {"@architectures": ARCHITECTURE, "tok2vec": encoder},
        }
    if row == "ner":
        return {
            "factory": "ner",
            "model": {
                "@architectures": "spacy.TransitionBasedParser.v2",
                "state_type": "ner",
                "extra_state_tokens": False,
                "hidden_width": 64,
                "maxout_pieces": 2,
                "use_upper": False,
                "tok2vec": encoder,
            },
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
