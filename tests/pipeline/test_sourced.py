"""Trainings that go on with components of another pipeline."""

import logging

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from thinc.api import Config

from spacy_luke.errors import ConfigError
from tests.pipeline.conftest import LISTENER, make_examples
from tests.pipeline.test_training_plan import CONFIG


@pytest.fixture(scope="module")
def folder(bert_dir, tmp_path_factory):
    """A saved pipeline of an encoder and its listener, and a corpus."""
    path = tmp_path_factory.mktemp("sourced")
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.to_disk(path / "joint")
    DocBin(docs=[eg.reference for eg in examples]).to_disk(path / "train.spacy")
    return path


def start(folder, names, labels=None, frozen=(), **blocks):
    """What ``spacy train`` does before the first update. blocks: of components that are not
    sourced."""
    config = Config().from_str(CONFIG.format(path=(folder / "train.spacy").as_posix()))
    source = {"source": str(folder / "joint")}
    config["nlp"]["pipeline"] = names
    config["components"] = {**dict.fromkeys(names, source), **blocks}
    config["training"]["frozen_components"] = list(frozen)
    config["initialize"]["components"] = {"luke_ner": {"labels": labels}}
    return init_nlp(config)


def test_a_listener_sourced_without_its_encoder_is_not_trained(folder):
    with pytest.raises(ConfigError, match="luke_ner listens to 'luke' of another pipeline") as err:
        start(folder, ["luke_ner"])
    assert 'replace_listeners = ["model.encoder"]' in str(err.value)


def test_both_ways_that_the_error_names_can_be_trained_and_saved(folder, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        both = start(folder, ["luke", "luke_ner"])
        source = {"source": str(folder / "joint"), "replace_listeners": ["model.encoder"]}
        alone = start(folder, ["luke_ner"], luke_ner=source)
    assert "was removed" not in caplog.text
    for nlp in (both, alone):
        examples = make_examples(nlp)
        nlp.update(examples, sgd=nlp.resume_training())
        nlp.to_disk(tmp_path)
        assert spacy.load(tmp_path).pipe_names == nlp.pipe_names


def test_a_listener_that_has_learned_with_another_encoder(folder, bert_dir, caplog):
    new = {"factory": "luke", "model": {"name": str(bert_dir)}}
    with caplog.at_level(logging.WARNING):
        start(folder, ["luke", "luke_ner"])
        assert "listens to is new" not in caplog.text
        start(folder, ["luke", "luke_ner"], luke=new)
    assert "luke_ner is not initialised (it is sourced" in caplog.text
    assert "but the luke that it listens to is new" in caplog.text


def test_a_frozen_listener_that_has_learned_nothing(folder, bert_dir, caplog):
    blocks = {
        "luke": {"factory": "luke", "model": {"name": str(bert_dir)}},
        "luke_ner": {"factory": "luke_ner", "model": {"encoder": LISTENER}},
    }
    with caplog.at_level(logging.WARNING):
        start(folder, ["luke", "luke_ner"], frozen=["luke_ner"], **blocks)
    assert "listens to is new" not in caplog.text


def test_an_encoder_after_its_listener_does_not_count(folder):
    with pytest.raises(ConfigError, match="luke_ner listens to 'luke' of another pipeline, or of"):
        start(folder, ["luke_ner", "luke"])


def test_another_encoder_before_is_not_taken_for_a_removed_one(folder, bert_dir, caplog):
    source = spacy.load(folder / "joint")
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", name="mine", config={"model": {"name": str(bert_dir)}})
    with caplog.at_level(logging.WARNING):
        for name in source.pipe_names:
            nlp.add_pipe(name, source=source)
        nlp.add_pipe("sentencizer")
    assert "was removed" not in caplog.text


def test_settings_of_the_initialisation_that_a_sourced_component_does_not_get(folder, caplog):
    with caplog.at_level(logging.WARNING):
        nlp = start(folder, ["luke", "luke_ner"], labels=["NEW"])
        said = caplog.text
        caplog.clear()
        start(folder, ["luke", "luke_ner"], labels=None)
        assert "is not used" not in caplog.text
    assert "[initialize.components.luke_ner] is not used" in said
    assert "NEW" not in nlp.get_pipe("luke_ner").labels
