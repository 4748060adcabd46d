"""What a document does not annotate is neither learned nor scored; all else is, as before."""

import numpy as np
import pytest
from spacy.training import Example
from thinc.api import NumpyOps

from spacy_luke.annotations.annotated import set_annotated
from spacy_luke.annotations.relations import get_relations, set_relations
from spacy_luke.corpora.contexts import join_examples
from spacy_luke.layers.task_layer import head_of
from spacy_luke.metrics.entity_typing import typing_score
from spacy_luke.pipeline.class_loss import binary_loss, single_loss
from tests.pipeline.conftest import fit
from tests.pipeline.relation_data import make_examples, make_pipeline
from tests.pipeline.test_joint import TASKS, gradients, head, initialized, make

LAYER = {"luke_ner": "ents", "luke_relation": "relations", "luke_entity_typing": "types"}


def marked(examples, layer, labels=False):
    for eg in examples:
        set_annotated(eg.reference, layer, labels)
    return examples


@pytest.mark.parametrize("name", TASKS)
def test_a_component_learns_nothing_from_documents_without_its_layer_and_others_learn_as_before(
    bert_dir, name
):
    nlp, _ = initialized(bert_dir)

    def losses(examples) -> dict[str, float]:
        found: dict[str, float] = {}
        nlp.update(examples, sgd=False, losses=found, drop=0.0)
        return found

    before = losses(make_examples(nlp))
    assert all(before[task] > 0 and gradients(head(nlp, task)).any() for task in TASKS)
    for task in TASKS:
        for parameter in head(nlp, task).parameters():
            parameter.grad = None
    after = losses(marked(make_examples(nlp), LAYER[name]))
    assert after[name] == 0.0 and not gradients(head(nlp, name)).any()
    others = [task for task in TASKS if task != name]
    assert all(gradients(head(nlp, task)).any() for task in others)
    assert {task: after[task] for task in others} == {task: before[task] for task in others}


@pytest.mark.parametrize("name", TASKS)
def test_labels_come_from_documents_with_the_layer_alone(bert_dir, name):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    pipe = nlp.get_pipe(name)
    by_doc = [set(pipe._labels_of(eg.reference)) for eg in examples]
    poor = min((i for i, labels in enumerate(by_doc) if labels), key=lambda i: len(by_doc[i]))
    for task in TASKS:  # the others keep the same document
        marked([eg for i, eg in enumerate(examples) if i != poor], LAYER[task])
    nlp.initialize(lambda: examples)
    assert set(pipe.labels) == by_doc[poor] < set().union(*by_doc)
    assert pipe.limits["gold"] > 0


def test_scores_leave_out_what_is_not_annotated(bert_dir):
    nlp, examples = initialized(bert_dir)
    fit(nlp, examples, 120)
    scores = nlp.evaluate(make_examples(nlp, entities=False))
    assert scores["ents_f"] == scores["rels_f"] == scores["types_micro_f"] == 1.0
    first, *others = make_examples(nlp, entities=False)
    first.reference.ents = []  # would be wrong predictions
    set_relations(first.reference, [])
    wrong = nlp.evaluate([first, *others])
    assert wrong["ents_f"] < 1.0 and wrong["rels_f"] < 1.0
    for layer in LAYER.values():
        set_annotated(first.reference, layer, False)
    again = nlp.evaluate([first, *others])
    assert again["ents_f"] == again["rels_f"] == again["types_micro_f"] == 1.0


@pytest.fixture(params=[False, True], ids=["one label", "several"])
def relation(request, bert_dir):
    nlp = make_pipeline("luke_relation", bert_dir, "probe", multi_label=request.param)
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def test_only_labels_that_were_judged_are_known(relation):
    pipe = relation.get_pipe("luke_relation")
    label, other = pipe.labels[:2]
    examples = marked(make_examples(relation), "relations", [label])
    query = pipe._query([eg.predicted for eg in examples])
    classes, known = pipe._targets(examples, query)
    gold = {r.label for eg in examples for r in get_relations(eg.reference)}
    assert {label, other} <= gold
    positive = classes[:, 0] > 0
    assert positive.any() and known[:, 0].all() and not known[:, 1].any()
    assert {item.label for eg in examples for item in pipe._gold(eg.reference)} == {label}
    if pipe.multi_label:
        return
    rest = ~classes[:, : len(pipe.labels)].any(1) | (classes[:, -1] > 0)
    # In none of the judged labels, but maybe in another.
    assert rest.any() and (classes[rest, 0] == 0).all() and (classes[rest][:, 1:] == 1).all()


def test_pairs_of_different_texts_of_a_joined_document_are_not_known(relation):
    pipe = relation.get_pipe("luke_relation")
    apart = make_examples(relation)
    together = join_examples(apart)
    query = pipe._query([together.predicted])
    classes, known = pipe._targets([together], query)
    labelled = classes.any(1) if pipe.multi_label else classes[:, :-1].any(1)
    assert labelled.sum() == sum(len(get_relations(eg.reference)) for eg in apart) > 0
    entities = [len(eg.predicted.ents) for eg in apart]
    text = np.repeat(np.arange(len(apart)), entities)
    across = text[query.pairs[:, 0]] != text[query.pairs[:, 1]]
    assert across.any() and not across.all()
    assert not known[across].any() and known[~across].all()
    if not pipe.multi_label:
        assert not classes[across].any() and classes[~across].any(1).all()
    scores = pipe.model.predict(query)
    _, gradient = pipe._loss(query, scores, (classes, known))
    assert not gradient.logits[across[scores.rows]].any()
    assert gradient.logits[~across[scores.rows]].any()


def test_a_corpus_that_annotates_no_relations_does_not_unlearn_them(relation):
    """The sentences of which relations are not annotated are those that are asked about later."""
    pipe = relation.get_pipe("luke_relation")
    judged = make_examples(relation)
    unjudged = make_examples(relation)
    for eg in unjudged:
        set_relations(eg.reference, [])
    marked(unjudged, "relations")
    assert head_of(pipe.model).classes == pipe._classes()
    fit(relation, [*judged, *unjudged], 100)
    assert relation.evaluate(make_examples(relation))["rels_f"] == 1.0


def test_the_loss_of_one_of_several_classes_and_its_gradient():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 5)).astype("f")
    targets = np.asarray([[1, 0, 0, 0, 0], [0, 1, 0, 1, 1], [0] * 5, [1] * 5], dtype="f")
    ops = NumpyOps()
    loss, gradient = single_loss(ops, logits, targets)
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    expected = -(np.log(p[0, 0]) + np.log(p[1, [1, 3, 4]].sum()) + 0.0) / 3
    assert loss == pytest.approx(expected, rel=1e-5)
    assert not gradient[2].any() and np.abs(gradient[3]).max() < 1e-6
    numeric = np.zeros_like(logits)
    for at in np.ndindex(*logits.shape):
        moved = logits.astype("d")
        moved[at] += 1e-4
        up = single_loss(ops, moved, targets)[0]
        moved[at] -= 2e-4
        numeric[at] = (up - single_loss(ops, moved, targets)[0]) / 2e-4
    assert np.abs(numeric - gradient).max() < 1e-4


def test_classes_that_are_not_known_have_no_part_in_the_binary_loss():
    logits = np.asarray([[1.0, 2.0], [0.5, -1.0]], dtype="f")
    known = np.asarray([[True, False], [False, False]])
    loss, gradient = binary_loss(NumpyOps(), logits, np.zeros((2, 2)), known)
    assert loss == pytest.approx(np.log1p(np.exp(1.0)), rel=1e-5)
    assert (gradient != 0).tolist() == known.tolist()


def test_entities_that_are_not_annotated_may_be_given(bert_dir):
    """Relations are learned between entities of a corpus from which luke_ner learns nothing."""
    nlp, _ = initialized(bert_dir)
    examples = marked(make_examples(nlp), "ents")
    assert all(isinstance(eg, Example) and len(eg.predicted.ents) for eg in examples[:1])
    found: dict[str, float] = {}
    nlp.update(examples, sgd=False, losses=found)
    assert found["luke_ner"] == 0.0 and found["luke_relation"] > 0


def test_typed_spans_of_documents_without_annotated_entities_are_not_wrong(bert_dir):
    nlp, examples = initialized(bert_dir)
    (eg, *_) = examples
    predicted = eg.reference.copy()
    eg.reference.ents = list(eg.reference.ents)[:1]
    for marked_too, precision in ((False, 0.75), (True, 1.0)):
        if marked_too:
            set_annotated(eg.reference, "ents", False)
        score = typing_score([Example(predicted, eg.reference)])["types_micro_p"]
        assert (score < 1.0) is (precision < 1.0)
