"""A run of an encoder: what begins with it, and when."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example

from spacy_luke.layers.encoder import module_of
from spacy_luke.layers.encoder_run import EncoderRun, place
from spacy_luke.layers.listener import encoder_node
from spacy_luke.layers.task_layer import encoder_below, fits
from spacy_luke.model import precision
from spacy_luke.model.packing import Words
from tests.pipeline.conftest import LISTENER, WORDS, make_examples


def listening(directory):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(directory)}})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}})
    nlp.initialize(lambda: make_examples(nlp))
    return nlp, encoder_below(nlp.get_pipe("luke_ner").model)


def test_nothing_happens_until_it_begins(bert_dir):
    nlp, node = listening(bert_dir)
    docs = [Doc(nlp.vocab, words=WORDS)]
    encoder = module_of(encoder_node(node)).train()
    rates = {x.p for x in encoder.modules() if isinstance(x, torch.nn.Dropout)}
    nlp.get_pipe("luke").upstream.open([Example(doc, doc.copy()) for doc in docs])
    node.attrs["dropout_rate"] = 0.75
    run = EncoderRun(node, docs, is_train=True)
    assert node.attrs["link"].batch is not None and not run.trains
    assert {x.p for x in encoder.modules() if isinstance(x, torch.nn.Dropout)} == rates
    with run:
        assert run.trains and node.attrs["link"].batch is None  # once per batch
        assert {x.p for x in encoder.modules() if isinstance(x, torch.nn.Dropout)} == {0.75}
        with EncoderRun(node, docs, is_train=True) as again:
            assert not again.trains and not encoder.training


@pytest.mark.usefixtures("bf16")
def test_gradients_and_precision_are_those_of_before_at_its_end(bert_dir):
    nlp, node = listening(bert_dir)
    docs = [Doc(nlp.vocab, words=WORDS)]
    encoder_node(node).attrs["settings"].mixed_precision = True
    assert torch.is_grad_enabled()
    try:
        with EncoderRun(node, docs, is_train=False) as run:
            assert not torch.is_grad_enabled()
            states = run.encode_words(Words(np.array([2, 5, 3]), np.array([0, 3])))
            assert states.keys[0].dtype == torch.bfloat16  # the encoder, and not the head
            assert not torch.is_autocast_enabled(run.device.type)
            raise KeyError
    except KeyError:
        pass
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("has", [True, False])
def test_mixed_precision_is_float32_where_bf16_would_be_emulated(bert_dir, bf16, monkeypatch, has):
    monkeypatch.setattr(precision, "has_bf16", lambda device: has)
    nlp, node = listening(bert_dir)
    vectors = []
    for mixed in (False, True):
        encoder_node(node).attrs["settings"].mixed_precision = mixed
        doc = nlp.get_pipe("luke")(Doc(nlp.vocab, words=WORDS))
        vectors.append(doc._.luke.token_vectors)
    exact, mixed = vectors
    assert np.array_equal(exact, mixed) != has
    assert np.linalg.norm(exact - mixed) < 0.05 * np.linalg.norm(exact)


def test_placing_spans_and_telling_which_fit_changes_nothing(bert_dir):
    nlp, node = listening(bert_dir)
    pipe = nlp.get_pipe("luke_ner")
    docs = [Doc(nlp.vocab, words=WORDS)]
    encoder = module_of(encoder_node(node)).train()
    nlp.get_pipe("luke").upstream.open([Example(doc, doc.copy()) for doc in docs])
    query = pipe._query(docs)
    assert place(node, docs, query.table, query.of_doc).fits.all()
    assert fits(pipe.model, query).all()
    assert encoder.training and node.attrs["link"].batch is not None
