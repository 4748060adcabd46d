"""New classifiers begin at the shares of their classes."""

import numpy as np
import pytest

from spacy_luke.calibration import sigmoid
from spacy_luke.layers.task_head import NEW_LABEL
from spacy_luke.layers.task_layer import begin_at, head_of
from spacy_luke.pipeline.class_shares import ClassShares
from tests.pipeline.relation_data import make_examples, make_pipeline


def shares(counted: ClassShares) -> list[float]:
    logits = counted.logits()
    assert logits is not None
    return sigmoid(logits).tolist()


def test_only_what_is_annotated_counts() -> None:
    counted = ClassShares(exclusive=False)
    assert counted.logits() is None
    classes = np.array([[1, 1], [0, 1], [0, 0], [1, 0]], "f")
    known = np.array([[True, True], [True, True], [True, False], [True, False]])
    counted.add((classes, known))
    assert shares(counted) == pytest.approx([2.5 / 5, 2.5 / 3])
    counted.add((classes, np.array([False, False, True, False])))  # whole rows
    assert shares(counted) == pytest.approx([2.5 / 6, 2.5 / 4])


def test_of_exclusive_classes_what_is_certain_counts() -> None:
    counted = ClassShares(exclusive=True)
    # a; b; a's label is not annotated, so a or nil; nil; nothing is annotated: not learned from.
    classes = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1], [0, 0, 0]], "f")
    known = np.array(
        [[True] * 3, [True] * 3, [False, True, True], [True] * 3, [False, False, True]]
    )
    counted.add((classes, known))
    logits = counted.logits()
    assert logits is not None
    assert np.exp(logits).tolist() == pytest.approx([1.5 / 4, 1.5 / 5, 2.5 / 5])


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_new_component_expects_what_the_data_has(bert_dir, multi_label) -> None:
    nlp = make_pipeline("luke_relation", bert_dir, "probe", multi_label=multi_label)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_relation")
    query, scores = pipe.predict([eg.predicted for eg in examples])
    gold, _ = pipe._targets(examples, query)
    bias = head_of(pipe.model).classifier.bias.detach().numpy()
    share = sigmoid if multi_label else np.exp
    assert share(bias) == pytest.approx((gold.sum(0) + 0.5) / (len(gold) + 1))
    # So updates do not have to learn it first.
    loss, _ = pipe.get_loss(examples, (query, scores))
    p = np.maximum(gold.mean(0), 1e-9)
    entropy = -(p * np.log(p) + (multi_label * (1 - p) * np.log1p(-p))).sum()
    blind = len(p) * np.log(2) if multi_label else np.log(len(p))
    assert loss < 1.2 * entropy < 0.9 * blind


def test_without_a_bias_a_classifier_begins_as_it_is(bert_dir) -> None:
    nlp = make_pipeline("luke_relation", bert_dir, "markers", multi_label=True)  # as published
    nlp.initialize(lambda: make_examples(nlp))
    assert head_of(nlp.get_pipe("luke_relation").model).classifier.bias is None


def test_a_bias_that_is_there_stays(bert_dir) -> None:
    nlp = make_pipeline("luke_relation", bert_dir, "probe", multi_label=True)
    nlp.initialize(lambda: make_examples(nlp))
    model = nlp.get_pipe("luke_relation").model
    before = head_of(model).classifier.bias.tolist()
    begin_at(model, np.ones(len(before)))
    assert head_of(model).classifier.bias.tolist() == before


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_label_that_is_added_begins_improbable(bert_dir, multi_label) -> None:
    nlp = make_pipeline("luke_relation", bert_dir, "probe", multi_label=multi_label)
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("luke_relation")
    names, before = pipe._classes(), head_of(pipe.model).classifier.bias.tolist()
    pipe.add_label("visited")
    after = dict(zip(pipe._classes(), head_of(pipe.model).classifier.bias.tolist(), strict=True))
    lowest = min(*before, min(max(before), 0.0) - NEW_LABEL)
    assert after.pop("visited") == pytest.approx(lowest)
    assert after == dict(zip(names, before, strict=True))
