"""Queries with a gap: what is learned, and what cannot be."""

import logging

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import ConfigValidationError, fix_random_seed

from spacy_luke.calibration import sigmoid
from spacy_luke.errors import ConfigError, InputError
from spacy_luke.layers import encoder_run
from spacy_luke.layers.task_layer import head_of
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune
from tests.pipeline.cloze_data import (
    ANSWERS,
    ENTS,
    FILLER,
    answered,
    asked,
    best,
    long_text,
    make,
    make_examples,
)
from tests.pipeline.conftest import LISTENER, fit


@pytest.fixture(scope="module")
def untrained(luke_dir):
    nlp = make(luke_dir)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def test_training_in_parts_has_the_same_gradients(luke_dir, monkeypatch):
    gradients = []
    for most in (8192, 30):
        monkeypatch.setattr(encoder_run, "MAX_ROWS", most)
        nlp = make(luke_dir)
        doc = long_text(nlp, *ANSWERS)
        examples = [Example(doc, answered(doc, *ANSWERS.values()))]
        nlp.initialize(lambda examples=examples: examples)
        pipe = nlp.get_pipe("luke_cloze")
        losses = pipe.update(examples, drop=0.0)
        head = head_of(pipe.model).classifier.weight.grad
        gradients.append((losses["luke_cloze"], head.numpy().copy()))
    assert gradients[0][0] == pytest.approx(gradients[1][0], abs=1e-6)
    np.testing.assert_allclose(gradients[0][1], gradients[1][1], atol=1e-6)


def test_targets_are_mentions_of_right_entities(untrained):
    pipe = untrained.get_pipe("luke_cloze")
    doc = asked(untrained, "@placeholder a .", "@placeholder b .", "@placeholder c .")
    gold = answered(doc, "Ada", None, "Zoe")
    gold._.completions = [[("Ada", [gold[0:1]])], [], [("Zoe", [])]]
    targets, known = pipe._targets([Example(doc, gold)], pipe._query([doc]))
    assert targets[:, 0].tolist() == [1, 0, 0, 0, 1, 0] + [0] * 12
    assert known.tolist() == [True] * 6 + [False] * 6 + [True] * 6
    doc.ents = [Span(doc, a, b, "X", kb_id="1" if a in (0, 14) else "") for a, b in ENTS]
    targets, _ = pipe._targets([Example(doc, gold)], pipe._query([doc]))
    assert targets[:6, 0].tolist() == [1, 0, 0, 0, 1, 1]


def test_the_loss_is_binary_cross_entropy_of_mentions(untrained):
    pipe = untrained.get_pipe("luke_cloze")
    (example,) = make_examples(untrained)
    scores = pipe.predict([example.predicted])
    loss, d_scores = pipe.get_loss([example], scores)
    logits = scores[1].logits[:, 0].astype(float)
    right = np.asarray([e.text == x for x in ANSWERS.values() for e in example.predicted.ents])
    p = sigmoid(logits)
    assert loss == pytest.approx(-np.log(np.where(right, p, 1 - p)).mean(), rel=1e-5)
    np.testing.assert_allclose(d_scores.logits[:, 0], (p - right) / len(p), atol=1e-6)


def test_what_cannot_be_learned_is_counted(bert_dir):
    nlp = make(bert_dir, encoder={"window": 40})
    doc = asked(nlp, *["@placeholder lived ."] * 4)
    gold = answered(doc, "Ada", "Zoe", None, "Tokyo")
    bare = asked(nlp)
    long = asked(nlp, "@placeholder .", text=f"Ada met {FILLER * 30}".strip(), ents=[(0, 60)])
    long_gold = answered(long, long.ents[0].text)
    examples = [Example(doc, gold), Example(bare, gold.copy()), Example(long, long_gold)]
    nlp.initialize(lambda: examples)
    limits = nlp.get_pipe("luke_cloze").limits
    assert limits == {"gold": 7, "not asked": 3, "no candidate": 1, "too long": 1}


def test_nothing_to_learn_is_an_error(bert_dir):
    nlp = make(bert_dir)
    doc = asked(nlp, "@placeholder lived .")
    for predicted, gold in ((asked(nlp), answered(doc, "Ada")), (doc, answered(doc, "Zoe"))):
        with pytest.raises(ConfigError, match="nothing can be learned, because all 1 gold"):
            nlp.initialize(lambda x=predicted, y=gold: [Example(x, y)])
    other = asked(nlp, "@placeholder met .")
    with pytest.raises(InputError, match="not the 1 of its reference"):
        nlp.initialize(lambda: [Example(other, answered(doc, "Ada"))])


def test_queries_without_known_answers_are_not_learned(bert_dir):
    nlp = make(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    doc = asked(nlp, "@placeholder lived .")
    losses = nlp.update([Example(doc, doc.copy())], losses={})
    assert losses["luke_cloze"] == 0
    assert nlp.update([Example(asked(nlp), asked(nlp))], losses={})["luke_cloze"] == 0


def test_it_learns_on_a_shared_encoder(bert_dir):
    fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    for name in ("one", "two"):
        nlp.add_pipe("luke_cloze", name=name, config={"model": {"encoder": LISTENER}})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    losses = fit(nlp, examples, 80)
    assert losses["one"] < 0.05 and losses["two"] < 0.05
    assert best(nlp(asked(nlp, *ANSWERS))) == list(ANSWERS.values())


def test_documents_without_queries_are_reported_when_training_goes_on(luke_dir, caplog):
    nlp = make(luke_dir)
    nlp.initialize(lambda: make_examples(nlp))
    examples = make_examples(nlp)
    examples[0].predicted._.queries = []
    nlp.update(examples)
    assert "luke_cloze: the first batch has no query" in caplog.text
    assert "no entity" not in caplog.text


def test_without_queries_others_are_scored_but_a_training_ends(luke_dir, caplog):
    """As ``spacy evaluate`` reads documents, and as a training with spaCy's corpus reader."""
    nlp = make(luke_dir, scorer={"@scorers": "spacy-luke.luke_cloze_scorer.v1"})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    bare = [Example(Doc(nlp.vocab, words=[x.text for x in examples[0].x]), examples[0].reference)]
    with caplog.at_level(logging.WARNING):
        nlp.evaluate(bare)
        scores = nlp.evaluate(bare)
    assert scores["cloze_em"] is scores["cloze_queries"] is None and scores["speed"] > 0
    assert caplog.text.count("completions are not scored") == 1
    nlp.update(examples, sgd=nlp.create_optimizer())
    with pytest.raises(InputError, match="Set Doc._.queries"):
        nlp.evaluate(bare)


def test_nothing_is_written_as_labels(luke_dir):
    """``spacy init labels`` would write a file that no component reads."""
    nlp = make(luke_dir)
    assert nlp.get_pipe("luke_cloze").label_data is None
    nlp.config["initialize"]["components"]["luke_cloze"] = {"labels": ["X"]}
    with pytest.raises(ConfigValidationError, match="labels"):
        nlp.initialize(lambda: make_examples(nlp))


def test_targets_do_not_depend_on_white_space(untrained):
    """A predicted and a reference text may differ in it."""
    pipe, vocab = untrained.get_pipe("luke_cloze"), untrained.vocab
    doc = Doc(vocab, words=["Al", "Bo", "met", "."])
    gold = Doc(vocab, words=["   ", "Al", "Bo", "met", "."], spaces=[False, True, True, True, True])
    doc.ents = [Span(doc, i, i + 1, "X") for i in (0, 1)]
    gold.ents = [Span(gold, i, i + 1, "X") for i in (1, 2)]
    for x in (doc, gold):
        x._.queries = ["@placeholder left ."]
    gold._.completions = [[("Al", [gold.ents[0]])]]
    targets, _ = pipe._targets([Example(doc, gold)], pipe._query([doc]))
    assert targets[:, 0].tolist() == [1, 0]


def test_tuning_does_not_take_completions_away(luke_dir):
    """The share of right answers only falls if some queries get none."""
    nlp = make(luke_dir)
    nlp.initialize(lambda: make_examples(nlp))
    fit(nlp, make_examples(nlp), 5)
    before = nlp.evaluate(make_examples(nlp))["cloze_em"]
    list(tune(nlp, make_examples(nlp) * 20, Goal()))
    assert nlp.get_pipe("luke_cloze").threshold == 0.0
    assert nlp.evaluate(make_examples(nlp))["cloze_em"] == before < 1
