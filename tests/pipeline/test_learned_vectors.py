"""Vectors of entities as a part of the update: ``max_vector_age = 0``."""

import numpy as np
import pytest
import spacy
import torch

from spacy_luke.errors import ConfigError
from spacy_luke.layers import text_vectors
from spacy_luke.layers.encoder_run import EncoderRun
from spacy_luke.layers.task_layer import encoder_below, encoder_of, head_of
from spacy_luke.model.candidate_head import CandidateHead
from spacy_luke.pipeline import entity_vectors
from tests.pipeline.conftest import LISTENER, fit
from tests.pipeline.linker_data import TEXTS, links, make_docs, make_examples, make_linker

ARCHITECTURE = {"@architectures": "spacy-luke.LukeEncoder.v1"}


@pytest.fixture
def linker(bert_dir, tmp_path):
    def make(age=0, **encoder):
        block = {**ARCHITECTURE, "name": str(bert_dir), "max_learn_rate": None, **encoder}
        nlp = make_linker(block, tmp_path / "kb", max_vector_age=age)
        # Else the only term with vectors that are not divided by the temperature is 0.
        head = head_of(nlp.get_pipe("luke_linker").model).part("candidates", CandidateHead)
        for layer in (head.words, head.sentence, head.mask):
            torch.nn.init.normal_(layer.weight, std=0.1)
        return nlp

    return make


def gradients(nlp):
    """Of the encoder's parameters, without an update, and the loss."""
    pipe = nlp.get_pipe("luke_linker")
    losses: dict[str, float] = {}
    pipe.update(make_examples(nlp), losses=losses, drop=0.0)
    named = list(encoder_of(pipe.model).network.named_parameters())
    found = {name: p.grad.clone() for name, p in named if p.grad is not None}
    for _, parameter in named:
        parameter.grad = None
    return found, losses["luke_linker"]


def texts_made(monkeypatch):
    """A list that gets the number of texts of every call that makes vectors without learning."""
    made = []
    vectors = text_vectors.text_vectors
    monkeypatch.setattr(
        "spacy_luke.pipeline.entity_vectors.text_vectors",
        lambda encoder, docs: made.append(len(docs)) or vectors(encoder, docs),
    )
    return made


def slope(nlp, direction, step=1e-3):
    """The change of the loss, per length, in a direction of the encoder's weights."""
    pipe = nlp.get_pipe("luke_linker")
    module = encoder_of(pipe.model)
    length = float(torch.sqrt(sum((x.double() ** 2).sum() for x in direction.values())))
    found = []
    for sign in (1, -2):
        with torch.no_grad(), module.changing():
            for name, parameter in module.network.named_parameters():
                if name in direction:
                    parameter += sign * step / length * direction[name]
        examples = make_examples(nlp)
        found.append(pipe.get_loss(examples, pipe.predict([eg.predicted for eg in examples]))[0])
    return (found[0] - found[1]) / (2 * step), length


def test_gradients_are_the_slope_of_the_loss_through_the_vectors(linker):
    """Those of fixed vectors are not: a prediction makes vectors of the changed weights."""
    nlp = linker()
    found, _ = gradients(nlp)
    change, length = slope(nlp, found)
    assert change == pytest.approx(length, rel=0.02)
    nlp = linker(age=1)
    found, _ = gradients(nlp)
    change, length = slope(nlp, found)
    assert not 0.8 < change / length < 1.25


def test_the_loss_is_that_of_a_prediction(linker):
    losses = [gradients(linker(age))[1] for age in (0, 1)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_many_texts_are_learned_in_parts(linker, monkeypatch):
    calls = []
    encode = EncoderRun.encode_words
    monkeypatch.setattr(EncoderRun, "encode_words", lambda *args: calls.append(1) or encode(*args))
    whole, loss = gradients(linker())
    assert len(calls) == 2  # of the documents, and of the texts
    monkeypatch.setattr(text_vectors, "_MOST_KEPT", 30)
    parts, same = gradients(linker())
    assert len(calls) == 3 + 2 * 4  # three texts are longer than 13 pieces; all again for gradients
    assert loss == pytest.approx(same, rel=1e-5) and whole.keys() == parts.keys()
    for name in whole:
        assert np.allclose(whole[name], parts[name], atol=1e-4 + 1e-3 * whole[name].abs().max())


@pytest.mark.parametrize("shared", [False, True])
def test_a_batch_without_candidates_teaches_only_nil(bert_dir, tmp_path, shared):
    architecture = LISTENER if shared else ARCHITECTURE
    nlp = make_linker({**architecture, "name": str(bert_dir)}, tmp_path / "kb")
    text = [("She disagreed , zzqqx .", [(3, 4, "NIL")])]
    assert np.isfinite(fit(nlp, make_examples(nlp, text), 2)["luke_linker"])


def test_mentions_that_teach_nothing_cost_no_texts(bert_dir, tmp_path, monkeypatch):
    nlp = make_linker(bert_dir, tmp_path / "kb")
    learned = []
    vectors = text_vectors.learned_vectors
    monkeypatch.setattr(
        "spacy_luke.layers.candidate_scorer.learned_vectors",
        lambda run, docs: learned.append([doc.text for doc in docs]) or vectors(run, docs),
    )
    texts = [
        ("Tokyo sang .", [(0, 1, "")]),
        ("Kyoto disagreed .", [(0, 1, "ada")]),
        ("Ada Lovelace sang .", [(0, 2, "ada")]),
    ]
    nlp.update(make_examples(nlp, texts))
    assert learned == [["Ada Lovelace: was born in London"]]


def test_very_many_words_of_texts_are_warned_of_once(linker, monkeypatch, caplog):
    spacy.util.logger.propagate = True
    for most, n in ((21, 1), (22, 0)):
        monkeypatch.setattr(entity_vectors, "_MANY_WORDS", most)
        nlp = linker()
        fit(nlp, make_examples(nlp, [TEXTS[1], TEXTS[2]]), 2)
        told = [x for x in caplog.messages if x.startswith("An update learns the vectors of 3")]
        assert len(told) == n and all("22 words" in x for x in told)
        caplog.clear()


def test_texts_have_the_dropout_of_the_update(linker, monkeypatch):
    nlp, found = linker(), []

    def learned(run, docs):
        found.append(learned_vectors(run, docs))
        return found[-1]

    learned_vectors = text_vectors.learned_vectors
    monkeypatch.setattr("spacy_luke.layers.candidate_scorer.learned_vectors", learned)
    for drop in (0.0, 0.0, 0.3, 0.3):
        nlp.get_pipe("luke_linker").update(make_examples(nlp), drop=drop)
    assert torch.equal(found[0], found[1])
    assert not torch.allclose(found[1], found[2], atol=1e-3)
    assert not torch.allclose(found[2], found[3], atol=1e-3)


def test_a_prediction_makes_them_once(linker, monkeypatch):
    nlp = linker()
    fit(nlp, make_examples(nlp), 2)
    made = texts_made(monkeypatch)
    list(nlp.pipe(make_docs(nlp)))
    list(nlp.pipe(make_docs(nlp)))
    assert made == [4]


def test_the_default_is_to_learn_them(bert_dir, tmp_path):
    pipe = make_linker(bert_dir, tmp_path / "kb").get_pipe("luke_linker")
    assert pipe.max_vector_age == 0
    with pytest.raises(ConfigError, match="max_vector_age"):
        pipe.max_vector_age = -1


def test_a_frozen_encoder_makes_vectors_once(linker, monkeypatch):
    nlp = linker(learn_rate_factor=0.0)
    made = texts_made(monkeypatch)
    fit(nlp, make_examples(nlp), 3)
    assert len(made) == 1


@pytest.mark.parametrize("frozen", [False, True])
def test_a_shared_encoder_learns_them_if_it_is_updated(bert_dir, tmp_path, frozen, monkeypatch):
    nlp = make_linker({**LISTENER, "name": str(bert_dir)}, tmp_path / "kb", max_vector_age=0)
    pipe = nlp.get_pipe("luke_linker")
    weights = encoder_of(pipe.model).network.layers
    before = {name: x.clone() for name, x in weights.state_dict().items()}
    made = texts_made(monkeypatch)
    with nlp.select_pipes(disable=["luke"] if frozen else []):
        losses = [fit(nlp, make_examples(nlp), 1, rate=1e-3)["luke_linker"] for _ in range(5)]
    assert len(made) == (1 if frozen else 0)
    changed = any(not torch.equal(x, before[name]) for name, x in weights.state_dict().items())
    assert changed != frozen and np.isfinite(losses).all()
    assert encoder_below(pipe.model).name == "luke-listener"


def test_training_learns_the_links(linker):
    nlp = linker()
    fit(nlp, make_examples(nlp), 60, rate=1e-3)
    docs = list(nlp.pipe(make_docs(nlp)))
    assert [links(doc)[0] for doc in docs] == ["city", "band", "ada", "city", "city", "NIL"]
