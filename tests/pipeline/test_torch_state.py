"""What a host process has set in torch changes no answer, and breaks no training."""

import os
import pickle
from copy import deepcopy

import numpy as np
import pytest
import spacy
import torch

from tests.pipeline.relation_data import make_examples
from tests.pipeline.test_joint import answers, encoder, initialized, weights
from tests.pipeline.test_shared_batches import sgd


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def learns(nlp) -> None:
    before = weights(encoder(nlp))
    nlp.update(make_examples(nlp), sgd=sgd())
    assert np.abs(weights(encoder(nlp)) - before).max() > 0


def test_another_default_type_changes_no_answer(bert_dir, tmp_path):
    nlp, _ = initialized(bert_dir)
    nlp.to_disk(tmp_path)
    expected = answers(nlp)
    torch.set_default_dtype(torch.float64)
    try:
        assert answers(nlp) == expected
        loaded = spacy.load(tmp_path)
        assert answers(loaded) == expected
        learns(loaded)
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_pipeline_made_under_another_default_type_has_float32_weights(bert_dir, double):
    nlp, _ = initialized(bert_dir)
    for _, pipe in nlp.pipeline:
        shims = [shim for node in pipe.model.walk() for shim in node.shims]
        parameters = [p for shim in shims if shim.module for p in shim.module.parameters()]
        assert {p.dtype for p in parameters} <= {torch.float32}
    learns(nlp)
    answers(nlp)


@pytest.mark.parametrize("context", [torch.inference_mode, torch.no_grad])
def test_what_was_loaded_or_made_without_gradients_can_be_trained(bert_dir, tmp_path, context):
    nlp, _ = initialized(bert_dir)
    nlp.to_disk(tmp_path)
    with context():
        loaded, (made, _) = spacy.load(tmp_path), initialized(bert_dir)
        assert answers(loaded) == answers(nlp)
    learns(loaded)
    learns(made)
    with context():
        learns(made)


def test_what_was_copied_without_gradients_can_be_trained(bert_dir):
    nlp, _ = initialized(bert_dir)
    expected = answers(nlp)
    with torch.inference_mode():
        copied = deepcopy(nlp)
        pickled = pickle.loads(pickle.dumps(nlp))
        alone = deepcopy(nlp)
        for name in alone.pipe_names[1:]:
            alone.replace_listeners("luke", name, ["model.encoder"])
    for each in (copied, pickled):
        assert answers(each) == expected
        learns(each)
    assert answers(alone) == expected
    alone.update(make_examples(alone), sgd=sgd())  # each component has its own encoder


def test_a_path_that_is_not_utf8_can_be_loaded(bert_dir, tmp_path):
    nlp, _ = initialized(bert_dir)
    path = os.fsdecode(os.fsencode(tmp_path) + b"/p\xff\xe9")
    try:
        os.mkdir(path)
    except OSError as err:
        pytest.skip(f"this file system has no such names: {err}")
    nlp.to_disk(path)
    assert answers(spacy.load(path)) == answers(nlp)
