"""Gradients of micro-batches add up to those of one batch."""

import numpy as np
import pytest
import torch
from spacy.tokens import Doc
from thinc.api import set_dropout_rate

from spacy_luke.layers.span_network import SpanQuery, SpanScores
from spacy_luke.layers.task_layer import encoder_below, head_of
from tests.pipeline.conftest import ANNOTATED, make_examples, make_ner

TEXTS = [text.split(" ") for text, _ in ANNOTATED] + [["Kyoto"], ["in", "Paris", "."] * 7]
PARTS = [TEXTS[:2], TEXTS[2:5], TEXTS[5:]]


def summed_loss_gradients(nlp, batches) -> dict[str, np.ndarray]:
    """Gradients of sum(logits ** 2) / 2 over all candidates, batch by batch."""
    pipe = nlp.get_pipe("luke_ner")
    modules = [head_of(pipe.model), encoder_below(pipe.model).shims[0].module]
    for module in modules:
        module.zero_grad()
    set_dropout_rate(pipe.model, 0.0)
    for texts in batches:
        docs = [Doc(nlp.vocab, words=words) for words in texts]
        query = SpanQuery(docs, pipe.suggester(docs, ops=pipe.model.ops))
        scores, backprop = pipe.model.begin_update(query)
        backprop(
            SpanScores(
                scores.rows,
                scores.logits.copy(),
                scores.filtered,
                scores.filter_logits.copy(),
            )
        )
    return {
        f"{i}.{name}": p.grad.numpy().copy()
        for i, module in enumerate(modules)
        for name, p in module.named_parameters()
        if p.grad is not None
    }


@pytest.mark.usefixtures("bf16")
@pytest.mark.parametrize("mode", ["two-stage", "probe", "full"])
@pytest.mark.parametrize("mixed,tolerance", [(False, 1e-5), (True, 2e-2)])
def test_three_micro_batches_equal_one_batch(bert_dir, mode, mixed, tolerance):
    encoder = {"mixed_precision": mixed}
    nlp = make_ner(bert_dir, encoder=encoder, mode=mode, candidates_per_word=100.0)
    nlp.initialize(lambda: make_examples(nlp))
    whole = summed_loss_gradients(nlp, [TEXTS])
    parts = summed_loss_gradients(nlp, PARTS)
    assert whole.keys() == parts.keys() and len(whole) > 20
    scale = np.sqrt(sum((g**2).sum() for g in whole.values()))
    difference = np.sqrt(sum(((whole[k] - parts[k]) ** 2).sum() for k in whole))
    assert scale > 0 and difference / scale < tolerance


@pytest.mark.usefixtures("bf16")
def test_gradients_stay_float32_under_mixed_precision(bert_dir):
    nlp = make_ner(bert_dir, encoder={"mixed_precision": True})
    nlp.initialize(lambda: make_examples(nlp))
    found = summed_loss_gradients(nlp, [TEXTS])
    assert {g.dtype for g in found.values()} == {np.dtype("float32")}


def test_gradient_checkpointing_changes_no_gradient(bert_dir):
    results = []
    for checkpointing in (False, True):
        torch.manual_seed(0)
        nlp = make_ner(bert_dir, encoder={"gradient_checkpointing": checkpointing})
        nlp.initialize(lambda nlp=nlp: make_examples(nlp))
        results.append(summed_loss_gradients(nlp, [TEXTS]))
    for name, gradient in results[0].items():
        assert np.allclose(gradient, results[1][name], atol=1e-6), name
