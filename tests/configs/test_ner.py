"""``configs/ner.cfg`` is complete: it builds without data, weights or a network."""

from pathlib import Path

import pytest
from spacy.schemas import ConfigSchemaTraining
from spacy.util import load_config, load_model_from_config, registry, resolve_dot_names

CONFIG = Path(__file__).parents[2] / "configs" / "ner.cfg"


@pytest.fixture(scope="module")
def nlp():
    return load_model_from_config(load_config(CONFIG), auto_fill=False, validate=True)


def test_the_pipeline_builds_without_weights(nlp):
    assert nlp.pipe_names == ["sentencizer", "luke_ner"]


def test_nothing_is_left_to_defaults(nlp):
    filled = load_model_from_config(load_config(CONFIG), auto_fill=True).config
    assert filled.to_str(interpolate=False) == nlp.config.to_str(interpolate=False)


def test_training_resolves(nlp):
    settings = registry.resolve(nlp.config.interpolate()["training"], schema=ConfigSchemaTraining)
    train, dev = resolve_dot_names(
        nlp.config.interpolate(), [settings["train_corpus"], settings["dev_corpus"]]
    )
    assert callable(train) and callable(dev)
    assert settings["max_steps"] == nlp.config["training"]["optimizer"]["learn_rate"]["total_steps"]


def test_candidates_see_sentences_in_training():
    training = load_config(CONFIG)["training"]
    assert training["annotating_components"] == ["sentencizer"]


@pytest.mark.parametrize(
    "overrides",
    [
        {"paths.encoder": "some/encoder"},
        {"components.luke_ner.model.mode": "full"},
        {"components.luke_ner.model.encoder.mixed_precision": True},
        {"components.luke_ner.model.encoder.word_shapes": False},
        {"training.optimizer.learn_rate.initial_rate": 0.00002},
    ],
)
def test_the_documented_overrides_build(overrides):
    config = load_config(CONFIG, overrides=overrides)
    load_model_from_config(config, auto_fill=False, validate=True)
