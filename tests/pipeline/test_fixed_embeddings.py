"""Embeddings that an encoder was initialised with are not changed by settings at loading."""

import pytest
import spacy

from spacy_luke.errors import ConfigError
from tests.pipeline.conftest import LISTENER, WORDS

ENCODER = {"@architectures": "spacy-luke.LukeEncoder.v1", "word_shapes": True}


@pytest.fixture
def saved(bert_dir, tmp_path):
    """A pipeline, in whose settings the given ones can be overridden."""
    nlp = spacy.blank("en")
    encoder = {**ENCODER, "name": str(bert_dir), "entity_labels": ["PER", "LOC"]}
    nlp.add_pipe("luke", config={"model": encoder})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}})
    nlp.initialize(lambda: _examples(nlp))
    nlp.to_disk(tmp_path / "model")
    return tmp_path / "model"


def _examples(nlp):
    doc = spacy.tokens.Doc(nlp.vocab, words=WORDS, ents=["B-PER", "I-PER", *"OOO", "B-LOC", "O"])
    return [spacy.training.Example(doc.copy(), doc)]


@pytest.mark.parametrize(
    "name, value",
    [("word_shapes", False), ("entity_labels", ["LOC", "PER"]), ("entity_aware", False)],
)
def test_they_cannot_be_overridden_at_loading(saved, name, value):
    with pytest.raises(ConfigError, match=f"LukeEncoder.{name} is .* cannot be changed"):
        spacy.load(saved, config={f"components.luke.model.{name}": value})
    nlp = spacy.load(saved)
    assert spacy.load(saved, config={"components.luke.model.overlap": 16})(" ".join(WORDS))
    other = spacy.blank("en")
    config = {**nlp.get_pipe_config("luke")["model"], name: value}
    other.add_pipe("luke", config={"model": config})
    with pytest.raises(ConfigError, match=f"LukeEncoder.{name} is .* cannot be changed"):
        other.from_bytes(nlp.to_bytes(exclude=["luke_ner"]), exclude=["luke_ner"])
    other.initialize()
    assert other(" ".join(WORDS))


def test_they_can_be_changed_by_initialising_again(saved):
    nlp = spacy.load(saved)
    nlp.get_pipe_config("luke")  # as in the config of a new training
    config = nlp.config.copy()
    config["components"]["luke"]["model"]["word_shapes"] = False
    other = spacy.util.load_model_from_config(config)
    other.initialize(lambda: _examples(other))
    assert other.get_pipe("luke_ner").labels == ("LOC", "PER")
