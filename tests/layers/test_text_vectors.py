"""Vectors of texts are means of word states, and the hash changes with whatever they depend on."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc

from spacy_luke.layers.encoder import module_of
from spacy_luke.layers.listener import is_listener
from spacy_luke.layers.text_vectors import encoder_hash, text_vectors
from tests.pipeline.conftest import LISTENER

TEXTS = ["Ada", "Charles Babbage of London", "the island of Japan .", "", "Tokyo " * 300]


def pipeline(directory, **settings):
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(directory), **settings}
    nlp.add_pipe("luke", config={"model": encoder})
    nlp.initialize()
    return nlp


@pytest.fixture(scope="module")
def nlp(bert_dir):
    return pipeline(bert_dir)


def docs_of(nlp):
    return [Doc(nlp.vocab, words=text.split()) for text in TEXTS]


def test_a_text_is_the_mean_of_its_words_whatever_its_company(nlp):
    model = nlp.get_pipe("luke").model
    together = text_vectors(model, docs_of(nlp))
    assert together.dtype == np.float32 and together.shape == (5, 32)
    for i, doc in enumerate(docs_of(nlp)):
        assert np.allclose(text_vectors(model, [doc])[0], together[i], atol=1e-5)
    assert not together[3].any()
    assert np.allclose(np.linalg.norm(together[[0, 1, 2, 4]], axis=1), 1.0, atol=1e-5)
    doc = nlp(docs_of(nlp)[0])  # one piece
    words = doc._.luke.token_vectors[0]
    assert np.allclose(together[0], words / np.linalg.norm(words), atol=1e-5)


def test_a_listener_has_its_encoder_s_vectors_and_hash(nlp):
    other = spacy.blank("en")
    other.add_pipe("luke", source=nlp)
    other.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}})
    (listener,) = filter(is_listener, other.get_pipe("luke_ner").model.walk())
    upstream = other.get_pipe("luke").model
    assert np.array_equal(
        text_vectors(listener, docs_of(other)), text_vectors(upstream, docs_of(other))
    )
    assert (
        encoder_hash(listener) == encoder_hash(upstream) == encoder_hash(nlp.get_pipe("luke").model)
    )


def test_the_hash_changes_with_weights_and_inputs_and_not_by_saving(nlp, bert_dir, tmp_path):
    before = encoder_hash(nlp.get_pipe("luke").model)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    model = loaded.get_pipe("luke").model
    assert encoder_hash(model) == before
    assert encoder_hash(pipeline(bert_dir, word_shapes=True).get_pipe("luke").model) != before
    module = module_of(model)
    with torch.no_grad(), module.changing():
        next(iter(module.network.layers.parameters())).view(-1)[0] += 1e-3
    assert encoder_hash(model) != before


def test_the_entity_table_is_no_part_of_it(nlp):
    model = nlp.get_pipe("luke").model
    module = module_of(model)
    before = encoder_hash(model)
    table = module.network.entity_embeddings
    with torch.no_grad():
        for parameter in table.parameters():
            parameter.view(-1)[0] += 1.0
    assert encoder_hash(model) == before
