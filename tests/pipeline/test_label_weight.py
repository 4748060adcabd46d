"""Whether there is an entity, and which label it has, as two questions."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_luke.errors import ConfigError
from spacy_luke.layers.task_head import NEW_LABEL
from spacy_luke.layers.task_layer import head_of
from tests.pipeline.conftest import (
    ANNOTATED,
    entities,
    fit,
    make_examples,
    make_ner,
    probabilities,
    trained,
)


def test_whether_labels_are_a_question_of_their_own_is_fixed_by_training(ner, tmp_path):
    """The likeliest label has its log odds; a saved head is not read as one of the other kind."""
    for label_weight, other in ((3.0, None), (None, 3.0)):
        nlp = ner(label_weight=label_weight)
        trained(nlp)
        doc = Doc(nlp.vocab, words=ANNOTATED[0][0].split(" "))
        assert entities(nlp(doc.copy()))
        _, scores = nlp.get_pipe("luke_ner").predict([doc])
        probability = probabilities(scores.logits)[:, :-1].max(1)
        odds = np.log(probability / (1 - probability))
        top = scores.logits[:, :-1].max(1)
        assert np.allclose(odds, top, atol=1e-3) == (label_weight is not None)
        nlp.to_disk(tmp_path)
        again = spacy.load(tmp_path)
        assert entities(again(doc.copy())) == entities(nlp(doc.copy()))
        changed = {"components": {"luke_ner": {"model": {"label_weight": other}}}}
        with pytest.raises(ConfigError, match="label_weight.*cannot be changed"):
            spacy.load(tmp_path, config=changed)


def test_labels_apart_need_the_class_no_entity(bert_dir):
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    scorer = {"@architectures": "spacy-luke.SpanScorer.v1", "encoder": encoder}
    model = {**scorer, "activation": "logistic", "label_weight": 3.0}
    with pytest.raises(ConfigError, match="label_weight needs the class"):
        spacy.blank("en").add_pipe("spancat", config={"model": model})


def test_a_label_beside_a_single_one_begins_improbable(bert_dir):
    """A single label has nothing to learn, so it is no better than a new one."""

    def data(*labels):
        return [(text, [x for x in spans if x[2] in labels]) for text, spans in ANNOTATED]

    only = data("PER")
    nlp = make_ner(bert_dir, label_weight=3.0)
    examples = make_examples(nlp, only)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    docs = [Doc(nlp.vocab, words=text.split(" ")) for text, _ in only]
    before = [entities(nlp(doc.copy())) for doc in docs]
    assert any(before)
    nlp.get_pipe("luke_ner").add_label("LOC")
    assert [entities(nlp(doc.copy())) for doc in docs] == before
    examples = make_examples(nlp, data("PER", "LOC"))
    fit(nlp, examples, 60)
    assert nlp.evaluate(examples)["ents_f"] == 1.0


def test_labels_that_are_added_one_by_one_begin_alike(ner):
    """If each began below the one before it, the last would not be learned."""
    nlp = ner(label_weight=3.0)
    trained(nlp)
    pipe = nlp.get_pipe("luke_ner")
    before = head_of(pipe.model).classifier.bias.detach().clone()
    new = [f"NEW{i}" for i in range(6)]
    for label in new:
        pipe.add_label(label)
    biases = dict(zip(pipe.labels, head_of(pipe.model).classifier.bias.tolist(), strict=False))
    begun = before[:-1].max().item() - NEW_LABEL
    assert [biases[label] for label in new] == pytest.approx([begun] * len(new))
    data = [
        (text, [(a, b, new[-1] if label == "PER" else label) for a, b, label in spans])
        for text, spans in ANNOTATED
    ]
    examples = make_examples(nlp, data)
    fit(nlp, examples, 60, rate=1e-3)
    assert nlp.evaluate(examples)["ents_per_type"][new[-1]]["f"] == 1.0
