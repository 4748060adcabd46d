"""Stock components on a shared encoder: predicted, frozen, copied, saved."""

import pickle
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam, fix_random_seed

from spacy_luke.errors import ConfigError
from tests.conftest import LANGUAGE
from tests.pipeline.conftest import (
    LISTENER,
    STOCK,
    WORDS,
    add_tagger,
    fit,
    parameters,
    shared,
    tagged_examples,
)


def tags(nlp: Language) -> list[str]:
    return [token.tag_ for token in nlp(Doc(nlp.vocab, words=WORDS))]


def trained_tagger(directory: Path) -> tuple[Language, list[Example]]:
    """``luke``, and a tagger on a stock listener."""
    pytest.importorskip("spacy_transformers", reason="stock listeners need spacy-transformers")
    nlp, examples = shared(directory, n_ner=0, tagger=True)
    fit(nlp, examples, 60)
    assert set(tags(nlp)) == {"NNP", "X"}
    return nlp, examples


def test_a_stock_listener_predicts_the_same_while_its_upstream_is_disabled(bert_dir, tmp_path):
    nlp, _ = trained_tagger(bert_dir)
    expected = tags(nlp)
    with nlp.select_pipes(disable=["luke"]):
        assert tags(nlp) == expected
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path, disable=["luke"])
    assert tags(loaded) == tags(deepcopy(loaded)) == expected
    assert tags(pickle.loads(pickle.dumps(loaded))) == expected


def test_a_stock_listener_on_a_frozen_encoder_learns_without_annotating_components(
    bert_dir, caplog
):
    nlp, examples = trained_tagger(bert_dir)
    before, head = parameters(nlp), nlp.get_pipe("tagger").model.get_ref("softmax")
    start = head.get_param("W").copy()
    for _ in range(3):
        nlp.update(examples, sgd=Adam(1e-2), exclude=["luke"])
    assert np.array_equal(parameters(nlp), before)
    assert not np.array_equal(head.get_param("W"), start)
    assert caplog.text.count("takes no part in an update") == 1


def test_a_copy_of_a_stock_listeners_model_alone_works_as_before(bert_dir):
    nlp, _ = trained_tagger(bert_dir)
    doc = nlp(Doc(nlp.vocab, words=WORDS))
    model = nlp.get_pipe("tagger").model
    assert np.array_equal(model.copy().predict([doc])[0], model.predict([doc])[0])


@pytest.fixture
def beside_transformer(bert_dir):
    """A tagger that was trained on spaCy's transformer, ``luke`` between, and its tags before."""
    pytest.importorskip("spacy_transformers", reason="needs spacy-transformers")
    fix_random_seed(0)
    nlp = spacy.blank(LANGUAGE)
    fast = {"name": str(bert_dir), "tokenizer_config": {"use_fast": True}}
    nlp.add_pipe("transformer", config={"model": fast})
    add_tagger(nlp, STOCK)
    examples = tagged_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    expected = tags(nlp)
    assert set(expected) == {"NNP", "X"}
    other = spacy.blank(LANGUAGE)
    other.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    other.initialize()
    return nlp, other, examples, expected


def test_states_of_a_transformer_are_not_replaced_in_silence(bert_dir, beside_transformer, caplog):
    nlp, other, _, expected = beside_transformer
    nlp.add_pipe("luke", source=other, after="transformer")
    nlp(Doc(nlp.vocab, words=WORDS))
    assert "luke replaces the states that documents have already" in caplog.text
    caplog.clear()
    nlp(Doc(nlp.vocab, words=WORDS))
    assert not caplog.text
    nlp.remove_pipe("luke")
    (node,) = nlp.get_pipe("transformer").listeners
    assert tags(nlp) == expected
    node.luke_link.wanted = node.upstream_name = "transformer"  # as the warning says
    fresh = spacy.blank(LANGUAGE)
    fresh.add_pipe(
        "luke", config={"model": {"name": other.get_pipe_config("luke")["model"]["name"]}}
    )
    fresh.initialize()
    nlp.add_pipe("luke", source=fresh, after="transformer")
    assert tags(nlp) == expected and not caplog.text


def test_states_of_any_other_kind_are_replaced_too(bert_dir):
    nlp, _ = trained_tagger(bert_dir)
    doc = Doc(nlp.vocab, words=WORDS)
    doc._.trf_data = object()  # as of other packages
    assert [token.tag_ for token in nlp(doc)] == tags(nlp)


def test_a_stock_component_is_not_saved_with_a_luke_that_it_would_not_find(bert_dir, tmp_path):
    nlp, _ = trained_tagger(bert_dir)
    nlp.rename_pipe("luke", "encoder")
    (node,) = nlp.get_pipe("encoder").listeners
    nlp.to_disk(tmp_path / "any")  # to any upstream
    assert tags(spacy.load(tmp_path / "any")) == tags(nlp)
    config = nlp.get_pipe_config("tagger")["model"]["tok2vec"]
    config["upstream"] = node.luke_link.wanted = "luke"
    with pytest.raises(ConfigError, match="The upstream of tagger is 'encoder' now"):
        nlp.to_disk(tmp_path / "named")


def test_a_stock_component_whose_encoder_was_removed_is_not_saved_in_silence(
    bert_dir, tmp_path, caplog
):
    nlp = spacy.blank(LANGUAGE)
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    add_tagger(nlp, LISTENER)
    examples = tagged_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.to_disk(tmp_path / "whole")
    assert "removed" not in caplog.text
    moved = spacy.blank(LANGUAGE)
    for name in ("luke", "tagger"):
        moved.add_pipe(name, source=nlp)
    nlp.remove_pipe("luke")
    nlp.to_disk(tmp_path / "broken")
    assert "listens to 'luke', which was removed from a pipeline" in caplog.text
    caplog.clear()
    nlp.remove_pipe("tagger")
    moved.to_disk(tmp_path / "moved")
    assert "removed" not in caplog.text


def test_a_stock_component_is_not_loaded_with_another_encoder(bert_dir, tmp_path):
    nlp = spacy.blank(LANGUAGE)
    nlp.add_pipe("luke", name="first", config={"model": {"name": str(bert_dir)}})
    nlp.add_pipe("luke", name="last", config={"model": {"name": str(bert_dir)}})
    add_tagger(nlp, LISTENER)
    examples = tagged_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.to_disk(tmp_path)
    with pytest.raises(ConfigError, match="tagger listens to 'last'"):
        spacy.load(tmp_path, exclude=["last"])
    nlp.remove_pipe("first")
    nlp.rename_pipe("last", "luke")
    nlp.get_pipe("luke").from_disk(tmp_path / "first", exclude=["vocab"])  # of another pipeline
