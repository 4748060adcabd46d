"""Components on one encoder encode a document's words once, and never with old weights."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc

from spacy_luke.layers import word_passes
from spacy_luke.model.encoder import LukeModel
from tests.pipeline.conftest import fit
from tests.pipeline.relation_data import make_examples

LISTENER = {"@architectures": "spacy-luke.LukeListener.v1"}
CONSUMERS = ("luke_relation", "luke_entity_typing")


@pytest.fixture
def nlp(bert_dir):
    torch.manual_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}, "nil_bias": 0.5})
    for name in CONSUMERS:
        nlp.add_pipe(name, config={"model": {"encoder": LISTENER}, "threshold": 0.0})
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


@pytest.fixture
def calls(monkeypatch):
    """Grows by one at every word pass."""
    made = []
    original = LukeModel.encode_words

    def encode_words(self, *args):
        made.append(1)
        return original(self, *args)

    monkeypatch.setattr(LukeModel, "encode_words", encode_words)
    return made


def answers(nlp):
    docs = list(nlp.pipe([Doc(nlp.vocab, words=WORDS), Doc(nlp.vocab, words=WORDS[2:])]))
    relations = [r.score for doc in docs for r in doc._.relations]
    types = [score for doc in docs for ent in doc.ents for score in ent._.types.values()]
    return [ent.text for doc in docs for ent in doc.ents], np.asarray(relations + types)


WORDS = ["Ada", "Lovelace", "met", "Charles", "Babbage", "in", "London", "."]


def test_three_components_need_one_word_pass(nlp, calls):
    ents, scores = answers(nlp)
    assert ents and len(scores)
    assert len(calls) == 1


def test_the_answers_are_those_of_passes_of_their_own(nlp, calls, monkeypatch):
    ents, scores = answers(nlp)
    monkeypatch.setattr(word_passes, "MOST_ROWS", 0)
    nlp.get_pipe("luke").model.shims[0].module.passes.clear()
    others, other_scores = answers(nlp)
    assert len(calls) == 1 + 3
    assert others == ents and np.abs(scores - other_scores).max() < 1e-6


def test_a_component_on_an_encoder_of_its_own_remembers_nothing(nlp):
    nlp.remove_pipe("luke_ner")
    nlp.remove_pipe("luke_entity_typing")
    doc = make_examples(nlp)[3].predicted
    nlp.get_pipe("luke_relation").predict([doc])
    assert nlp.get_pipe("luke").model.shims[0].module.passes.find(()) is None
    assert not nlp.get_pipe("luke").model.shims[0].module.passes._passes


def test_trained_weights_are_not_answered_for_by_old_passes(nlp, tmp_path):
    before = answers(nlp)[1]
    fit(nlp, make_examples(nlp), 1, rate=1e-2)
    ents, after = answers(nlp)
    nlp.to_disk(tmp_path)
    loaded_ents, loaded = answers(spacy.load(tmp_path))
    assert ents == loaded_ents and np.allclose(after, loaded, atol=1e-5)
    assert before.shape != after.shape or not np.allclose(before, after, atol=1e-4)


def test_weights_written_by_hand_are_seen(nlp, calls):
    answers(nlp)
    module = nlp.get_pipe("luke").model.shims[0].module
    with torch.no_grad():
        module.network.layers[0].qkv.weight.mul_(2.0)
    calls.clear()
    answers(nlp)
    assert len(calls) == 1


def test_memory_is_bounded_by_rows(nlp, monkeypatch):
    monkeypatch.setattr(word_passes, "MOST_ROWS", 40)
    passes = nlp.get_pipe("luke").model.shims[0].module.passes
    for n in (5, 10, 20, 30, 60):
        nlp(Doc(nlp.vocab, words=["to"] * n))
    rows = [n for n, _ in passes._passes.values()]
    assert rows and sum(rows) <= 40
