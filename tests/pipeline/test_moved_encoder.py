"""A tuned component whose shared encoder learns without it."""

import logging

import pytest
import spacy

from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune
from tests.pipeline.conftest import LISTENER, fit, make_examples

MOVED = "ner was tuned, and its encoder has been trained since"


@pytest.fixture
def nlp(bert_dir):
    """Two components on one encoder, tuned."""
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    for name in ("ner", "second"):
        nlp.add_pipe("luke_ner", name=name, config={"model": {"encoder": LISTENER}})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 40)
    tune_all(nlp)
    return nlp


def tune_all(nlp):
    list(tune(nlp, [eg for _ in range(12) for eg in make_examples(nlp)], Goal()))
    assert all(nlp.get_pipe(name).calibration for name in ("ner", "second"))


def learn(nlp, **settings):
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 1e-3
    for _ in range(2):  # the first step waits for components that took part in the batch before
        nlp.update(make_examples(nlp), sgd=optimizer, **settings)


def test_it_is_told_of_once_when_it_predicts(nlp, caplog):
    with caplog.at_level(logging.WARNING):
        learn(nlp, exclude=["ner"])
        assert not nlp.get_pipe("second").calibration and nlp.get_pipe("ner").calibration
        assert MOVED not in caplog.text
        nlp("Ada Lovelace lived in London.")
        assert caplog.text.count(MOVED) == 1
        learn(nlp, exclude=["ner"])
        nlp("Ada Lovelace lived in London.")
        assert caplog.text.count(MOVED) == 1
        tune_all(nlp)
        nlp("Ada Lovelace lived in London.")
        assert caplog.text.count(MOVED) == 1
        learn(nlp, exclude=["ner"])
        nlp("Ada Lovelace lived in London.")
        assert caplog.text.count(MOVED) == 2


@pytest.mark.parametrize(
    "save", [lambda nlp, path: nlp.to_disk(path), lambda nlp, _: nlp.to_bytes()]
)
def test_saving_tells_of_it_too(nlp, tmp_path, caplog, save):
    with caplog.at_level(logging.WARNING):
        learn(nlp, exclude=["ner"])
        save(nlp, tmp_path)
    assert caplog.text.count(MOVED) == 1


def test_tuning_again_at_once_is_silent(nlp, caplog):
    with caplog.at_level(logging.WARNING):
        learn(nlp, exclude=["ner"])
        tune_all(nlp)
        nlp("Ada Lovelace lived in London.")
    assert MOVED not in caplog.text


def test_a_frozen_one_is_told_of_too(nlp, caplog):
    with caplog.at_level(logging.WARNING), nlp.select_pipes(disable="ner"):
        learn(nlp)
    with caplog.at_level(logging.WARNING):
        nlp("Ada Lovelace lived in London.")
    assert MOVED in caplog.text


def test_what_was_tuned_for_the_present_weights_is_not(nlp, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        nlp("Ada Lovelace lived in London.")
        learn(nlp, exclude=["luke", "second"])  # the encoder does not learn
        nlp.to_disk(tmp_path)
        spacy.load(tmp_path)("Ada Lovelace lived in London.")
        learn(nlp)  # forgets its tuning
        nlp.from_disk(tmp_path)("Ada Lovelace lived in London.")
        still = nlp.resume_training()
        still.learn_rate = 0.0
        for _ in range(2):
            nlp.update(make_examples(nlp), sgd=still, exclude=["ner"])
        nlp("Ada Lovelace lived in London.")
        learn(nlp)
        tune_all(nlp)
        nlp("Ada Lovelace lived in London.")
    assert "has been trained since" not in caplog.text
