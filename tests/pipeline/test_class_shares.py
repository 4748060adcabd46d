"""New classifiers of any number of classes begin at the shares of these."""

import numpy as np
import pytest

from spacy_luke.calibration import sigmoid
from spacy_luke.layers.task_layer import begin_at, head_of
from spacy_luke.pipeline.class_shares import ClassShares
from tests.pipeline.relation_data import make_examples, make_pipeline


def shares(counted: ClassShares) -> list[float]:
    logits = counted.logits()
    assert logits is not None
    return sigmoid(logits).tolist()


def test_only_what_is_annotated_counts() -> None:
    counted = ClassShares()
    assert counted.logits() is None
    classes = np.array([[1, 1], [0, 1], [0, 0], [1, 0]], "f")
    known = np.array([[True, True], [True, True], [True, False], [True, False]])
    counted.add((classes, known))
    assert shares(counted) == pytest.approx([2.5 / 5, 2.5 / 3])
    counted.add((classes, np.array([False, False, True, False])))  # whole rows
    assert shares(counted) == pytest.approx([2.5 / 6, 2.5 / 4])


def test_a_new_component_expects_what_the_data_has(bert_dir) -> None:
    nlp = make_pipeline("luke_relation", bert_dir, "probe", multi_label=True)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("luke_relation")
    query, scores = pipe.predict([eg.predicted for eg in examples])
    gold, _ = pipe._targets(examples, query)
    bias = head_of(pipe.model).classifier.bias.detach().numpy()
    assert sigmoid(bias) == pytest.approx((gold.sum(0) + 0.5) / (len(gold) + 1))
    # So updates do not have to learn it first.
    loss, _ = pipe.get_loss(examples, (query, scores))
    p = gold.mean(0)
    entropy = -(p * np.log(p) + (1 - p) * np.log1p(-p)).sum()
    assert loss < 1.2 * entropy < 0.9 * len(p) * np.log(2)


@pytest.mark.parametrize("config", [{"multi_label": False}, {"multi_label": True}])
def test_other_classifiers_begin_as_they_are(bert_dir, config) -> None:
    mode = "markers" if config["multi_label"] else "probe"  # markers: no bias, as published
    nlp = make_pipeline("luke_relation", bert_dir, mode, **config)
    nlp.initialize(lambda: make_examples(nlp))
    bias = head_of(nlp.get_pipe("luke_relation").model).classifier.bias
    assert bias is None if mode == "markers" else not bias.any()


def test_a_bias_that_is_there_stays(bert_dir) -> None:
    nlp = make_pipeline("luke_relation", bert_dir, "probe", multi_label=True)
    nlp.initialize(lambda: make_examples(nlp))
    model = nlp.get_pipe("luke_relation").model
    before = head_of(model).classifier.bias.tolist()
    begin_at(model, np.ones(len(before)))
    assert head_of(model).classifier.bias.tolist() == before
