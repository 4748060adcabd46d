"""Vectors of a knowledge base are made by an encoder, are its own, and are never mixed."""

import logging

import numpy as np
import pytest
import spacy
import torch

from spacy_luke.errors import ConfigError, KnowledgeBaseError
from spacy_luke.kb.entity import Entity
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.kb.normalize import normalize_name
from spacy_luke.layers.encoder import module_of
from spacy_luke.layers.text_vectors import encoder_hash, text_vectors
from spacy_luke.pipeline.entity_vectors import (
    find_encoder,
    make_name_vectors,
    make_vectors,
    vectors_hash,
)
from tests.kb.conftest import build
from tests.pipeline.conftest import LISTENER, fit
from tests.pipeline.linker_data import make_examples, make_linker

RECORDS = [
    {"id": "a", "name": "Ada Lovelace", "description": "was born in London"},
    {"id": "b", "name": "Tokyo", "description": "the capital of Japan"},
    {"id": "c", "name": "Charles Babbage"},
]


@pytest.fixture
def nlp(bert_dir):
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("luke", config={"model": encoder})
    nlp.initialize()
    return nlp


@pytest.fixture
def kb(nlp, tmp_path):
    build(tmp_path / "kb", RECORDS)
    return MappedKB.open(tmp_path / "kb", nlp.vocab)


def expected(nlp, texts):
    return text_vectors(nlp.get_pipe("luke").model, [nlp.make_doc(x) for x in texts])


def test_vectors_are_those_of_names_and_descriptions(nlp, kb):
    assert make_vectors(nlp, kb) == 3
    texts = ["Ada Lovelace: was born in London", "Tokyo: the capital of Japan", "Charles Babbage"]
    assert np.allclose(kb.tables.vectors, expected(nlp, texts), atol=1e-6)
    assert np.allclose(kb.get_vector("b"), expected(nlp, texts)[1], atol=1e-6)
    assert make_vectors(nlp, kb) == 0  # all are there
    assert make_vectors(nlp, kb, "name") == 3
    assert np.allclose(kb.get_vector("b"), expected(nlp, ["Tokyo"])[0], atol=1e-6)
    assert make_vectors(nlp, kb, "name", half=True) == 3
    assert kb.tables.vectors.dtype == np.float16
    assert np.allclose(kb.get_vector("b"), expected(nlp, ["Tokyo"])[0], atol=1e-3)


def test_only_missing_vectors_are_made_and_all_after_a_change_of_weights(nlp, kb, tmp_path):
    make_vectors(nlp, kb)
    added = kb.edited(add=[Entity("d", "London", {"London": 1.0})], remove=["c"])
    before = np.array(added.tables.vectors)
    assert make_vectors(nlp, added) == 1
    kept = [added.tables.ids.find(x) for x in "ab"]
    assert np.array_equal(added.tables.vectors[kept], before[kept])
    assert added.get_vector("d").any()
    encoder = find_encoder(nlp)
    added.check_vectors(vectors_hash(encoder, nlp.tokenizer, "description"))
    module = module_of(encoder)
    with torch.no_grad(), module.changing():
        next(iter(module.network.layers.parameters())).view(-1)[0] += 0.1
    with pytest.raises(KnowledgeBaseError, match="made by weights"):
        added.check_vectors(vectors_hash(encoder, nlp.tokenizer, "description"))
    assert make_vectors(nlp, added) == len(added) == 3
    added.check_vectors(vectors_hash(encoder, nlp.tokenizer, "description"))
    added.to_disk(tmp_path / "saved")
    loaded = MappedKB.open(tmp_path / "saved", nlp.vocab)
    assert np.array_equal(loaded.tables.vectors, added.tables.vectors)


@pytest.mark.parametrize("lang", ["xx", "no bytes"])
def test_vectors_by_another_tokenizer_are_made_again(nlp, kb, lang):
    """``don't`` are other tokens, and so other pieces. A tokenizer need not have bytes."""
    kb = kb.edited(add=[Entity("d", "don't", {"don't": 1.0})])
    make_vectors(nlp, kb)
    before = kb.get_vector("d")
    split = spacy.blank("xx").tokenizer
    nlp.tokenizer = split if lang == "xx" else lambda text: split(text)
    assert make_vectors(nlp, kb) == 4 and make_vectors(nlp, kb) == 0
    assert not np.allclose(kb.get_vector("d"), before, atol=1e-4)
    if lang != "xx":
        nlp.tokenizer = partial_split(split)
        assert make_vectors(nlp, kb) == 4


def partial_split(split):
    def another(text):
        return split(text)

    return another


def test_a_linker_has_the_tokenizer_with_which_it_is_initialised(bert_dir, tmp_path):
    nlp = make_linker(bert_dir, tmp_path / "kb")
    nlp.tokenizer = spacy.blank("xx").tokenizer
    nlp.initialize()
    pipe = nlp.get_pipe("luke_linker")
    make_vectors(nlp, pipe.kb)
    first = pipe.kb.vectors_hash
    nlp.to_disk(tmp_path / "saved")
    assert pipe.kb.vectors_hash == first


def test_an_empty_knowledge_base_has_no_vectors_but_their_width(nlp):
    kb = MappedKB(nlp.vocab)
    assert make_vectors(nlp, kb) == 0 and kb.entity_vector_length == 32


def test_the_encoder_is_that_of_a_component_or_of_its_upstream(nlp):
    nlp.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}})
    assert encoder_hash(find_encoder(nlp, "luke_ner")) == encoder_hash(find_encoder(nlp))
    with pytest.raises(ConfigError, match="'sentencizer', which has no encoder"):
        find_encoder(nlp, "sentencizer")
    with pytest.raises(ConfigError, match="No component has an encoder"):
        find_encoder(spacy.blank("en"))


def test_vectors_of_names_are_those_of_names_as_written(nlp, kb):
    assert make_name_vectors(nlp, kb) == 3
    names = ["Ada Lovelace", "Charles Babbage", "Tokyo"]
    rows = [kb.tables.keys.find(normalize_name(x, "en")) for x in names]
    assert np.allclose(kb.tables.name_vectors[rows], expected(nlp, names), atol=1e-6)
    kb.check_name_vectors(vectors_hash(find_encoder(nlp), nlp.tokenizer, "name"))
    assert make_name_vectors(nlp, kb) == 0 and not kb.has_vectors
    added = kb.edited(add=[Entity("d", "London", {"London": 1.0})])
    assert make_name_vectors(nlp, added) == 1
    assert make_name_vectors(nlp, added, half=True) == 4


@pytest.mark.parametrize(
    "encoder, age, n", [({}, 10, 1), ({}, 1, 0), ({"learn_rate_factor": 0.0}, 10, 0)]
)
def test_vectors_that_changed_since_training_used_them_are_told(
    encoder, age, n, bert_dir, tmp_path, caplog
):
    """Once. With an age of 1 they are made in every update; a frozen encoder changes nothing."""
    spacy.util.logger.propagate = True
    caplog.set_level(logging.WARNING, spacy.util.logger.name)
    block = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir), **encoder}
    nlp = make_linker({**block, "max_learn_rate": None}, tmp_path / "kb", max_vector_age=age)
    fit(nlp, make_examples(nlp), 25, rate=1e-3)
    assert caplog.text.count("vectors of entities have changed (mean cosine") == n
