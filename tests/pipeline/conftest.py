"""Small annotated sentences and pipelines on tiny encoders."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam, fix_random_seed

from spacy_luke.layers.task_layer import head_of
from spacy_luke.pipeline.classifier_pipe import ClassifierPipe
from tests.conftest import LANGUAGE
from tests.pipeline.published_data import labels_of

ANNOTATED = [
    ("Ada Lovelace was born in London .", [(0, 2, "PER"), (5, 6, "LOC")]),
    ("Tokyo is the capital of Japan .", [(0, 1, "LOC"), (5, 6, "LOC")]),
    ("The University of Tokyo was founded in 1877 .", [(1, 4, "ORG")]),
    ("France and Germany signed in New York City .", [(0, 1, "LOC"), (2, 3, "LOC"), (5, 8, "LOC")]),
    ("She disagreed , of course !", []),
]
WORDS = ["Ada", "Lovelace", "was", "born", "in", "London", "."]
LISTENER = {"@architectures": "spacy-luke.LukeListener.v1"}


def make_examples(nlp: Language, data: Sequence[tuple[str, list]] = ANNOTATED) -> list[Example]:
    examples = []
    for text, spans in data:
        words = text.split(" ")
        reference = Doc(nlp.vocab, words=words)
        ents = [spacy.tokens.Span(reference, a, b, label=label) for a, b, label in spans]
        reference.set_ents(ents, default="outside")
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return examples


MODEL_SETTINGS = (
    "mode",
    "layout",
    "predict_layout",
    "max_pieces",
    "max_entities",
    "candidates_per_word",
    "train_candidates_per_word",
    "filter_threshold",
    "label_weight",
)


def make_ner(
    directory: Path, encoder: dict[str, Any] | None = None, lang: str = LANGUAGE, **config: Any
) -> Language:
    """A blank pipeline with luke_ner; keys of the model's config may be given at top level."""
    fix_random_seed(0)
    nlp = spacy.blank(lang)
    model = {key: config.pop(key) for key in MODEL_SETTINGS if key in config}
    model["encoder"] = {
        "@architectures": "spacy-luke.LukeEncoder.v1",
        "name": str(directory),
        **(encoder or {}),
    }
    nlp.add_pipe("luke_ner", config={"model": model, **config})
    return nlp


def undecided(nlp: Language) -> Language:
    """Make all classes about as probable. New ones of relations begin at their shares, and
    mostly find nothing; tests that compare what is found without training need something. With
    ``label_weight``, "no entity" is as probable as all labels together."""
    with torch.no_grad():
        for _, pipe in nlp.pipeline:
            bias = head_of(pipe.model).classifier.bias if isinstance(pipe, ClassifierPipe) else None
            if bias is not None:
                bias.zero_()
                if "label_weight" in head_of(pipe.model).config:
                    bias[-1] = -math.log(len(bias) - 1)
    return nlp


def fit(nlp: Language, examples: list[Example], steps: int, rate: float = 5e-3) -> dict[str, float]:
    optimizer = Adam(rate, L2=0.0, use_averages=False)
    losses: dict[str, float] = {}
    for _ in range(steps):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses, drop=0.0)
    return losses


def probabilities(logits: np.ndarray) -> np.ndarray:
    """(n, n_classes) -> the same shape."""
    logits = logits.astype(np.float64)
    return np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))


@pytest.fixture()
def ner(bert_dir: Path) -> Callable[..., Language]:
    def make(**config: Any) -> Language:
        return make_ner(bert_dir, **config)

    return make


def entities(doc: Doc) -> list[tuple[int, int, str]]:
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


def trained(nlp: Language, steps: int = 60) -> list[Example]:
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, steps)
    return examples


@pytest.fixture(scope="session")
def published(make_checkpoint):
    """architecture -> a directory with such a head; one for all tests."""
    made: dict[tuple, Path] = {}

    def make(architecture: str, kind: str = "luke", **settings) -> Path:
        key = (architecture, kind, *sorted(settings.items()))
        if key not in made:
            config = {**labels_of(architecture), **settings}
            made[key] = make_checkpoint(kind, architecture, **config)
        return made[key]

    return make


STOCK = {
    "@architectures": "spacy-transformers.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": {"@layers": "reduce_mean.v1"},
}


def add_tagger(nlp: Language, tok2vec: dict) -> None:
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
    nlp.add_pipe("tagger", config={"model": model})


def tagged_examples(nlp: Language) -> list[Example]:
    examples = make_examples(nlp)
    for eg in examples:
        for token in eg.reference:
            token.tag_ = "NNP" if token.is_title else "X"
    return examples


def shared(directory: Path, n_ner: int = 1, tagger: bool = False) -> tuple[Language, list[Example]]:
    fix_random_seed(0)
    nlp = spacy.blank(LANGUAGE)
    nlp.add_pipe("luke", config={"model": {"name": str(directory)}})
    if tagger:
        add_tagger(nlp, STOCK)
    for i in range(n_ner):
        nlp.add_pipe("luke_ner", name=f"ner{i}", config={"model": {"encoder": LISTENER}})
    examples = tagged_examples(nlp)
    nlp.initialize(lambda: examples)
    return nlp, examples


def parameters(nlp: Language) -> np.ndarray:
    module = nlp.get_pipe("luke").model.shims[0].module
    return np.concatenate([p.detach().cpu().numpy().ravel() for p in module.parameters()])
