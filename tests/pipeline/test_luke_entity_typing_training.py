"""Entity types: what is learned, and what stays out of it."""

import logging

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations.types import get_types, set_types
from spacy_luke.errors import ConfigError
from tests.pipeline.conftest import fit
from tests.pipeline.relation_data import SENTENCES, annotate, make_examples
from tests.pipeline.typing_data import (
    GOLD,
    LEAVES,
    MODES,
    PATHS,
    make,
    one_type_each,
    types_of,
)


@pytest.mark.parametrize("mode", MODES)
def test_it_learns_sets_of_types_and_that_there_are_none(bert_dir, tmp_path, mode):
    nlp = make(bert_dir, mode)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    assert set(nlp.get_pipe("luke_entity_typing").labels) == PATHS
    fit(nlp, examples, 80)
    assert types_of(nlp) == GOLD
    scores = nlp.evaluate(make_examples(nlp))
    assert scores["types_acc"] == scores["types_micro_f"] == scores["types_macro_f"] == 1.0
    nlp.to_disk(tmp_path)
    assert types_of(spacy.load(tmp_path)) == GOLD


@pytest.mark.parametrize("mode", MODES)
def test_it_learns_exactly_one_type(bert_dir, mode):
    nlp = make(bert_dir, mode, multi_label=False)
    examples = one_type_each(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    expected = [[set(ent._.types) for ent in eg.reference.ents] for eg in examples]
    assert types_of(nlp) == expected


@pytest.mark.parametrize("multi_label", [True, False])
def test_a_path_implies_those_above_it(bert_dir, multi_label):
    nlp = make(bert_dir, ancestors=True, multi_label=multi_label)
    examples = one_type_each(nlp)
    nlp.initialize(lambda: examples)
    labels = set(nlp.get_pipe("luke_entity_typing").labels)
    assert labels == (PATHS if multi_label else LEAVES)
    fit(nlp, examples, 60)
    ada = nlp(examples[0].predicted.copy()).ents[0]
    assert set(ada._.types) == {"/person", "/person/scientist"}
    assert ada._.types["/person"] >= ada._.types["/person/scientist"]
    scores = nlp.evaluate(examples)
    assert scores["types_acc"] == scores["types_micro_f"] == 1.0


def test_of_a_path_and_those_above_it_one_type_is_learned_and_none_lost(bert_dir):
    nlp = make(bert_dir, ancestors=True, multi_label=False)
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("luke_entity_typing")
    assert set(pipe.labels) == LEAVES and pipe.limits["several types"] == 0
    plain = make(bert_dir, multi_label=False)
    plain.initialize(lambda: make_examples(plain))
    assert plain.get_pipe("luke_entity_typing").limits["several types"] == 2


# What counts


def gradient_of(nlp, examples) -> np.ndarray:
    pipe = nlp.get_pipe("luke_entity_typing")
    query = pipe._query([eg.predicted for eg in examples])
    _, scores = pipe.predict([eg.predicted for eg in examples])
    return pipe.get_loss(examples, (query, scores))[1].logits


@pytest.mark.parametrize("multi_label", [True, False])
def test_a_span_of_unknown_types_stays_out_of_the_loss(bert_dir, multi_label):
    nlp = make(bert_dir, multi_label=multi_label)
    nlp.initialize(lambda: make_examples(nlp))
    words = SENTENCES[1][0].split(" ")
    reference = annotate(Doc(nlp.vocab, words=words), SENTENCES[1][1], types=False)
    predicted = reference.copy()
    set_types(reference.ents[0], {"/place": 1.0})
    assert get_types(reference.ents[1]) is None
    gradient = gradient_of(nlp, [Example(predicted, reference)])
    assert gradient[0].any() and not gradient[1].any()
    set_types(reference.ents[1], {})
    gradient = gradient_of(nlp, [Example(predicted, reference)])
    if multi_label:  # all of its types are wrong
        assert (gradient[1] > 0).all()
    else:  # none of the classes says that
        assert not gradient[1].any()


def test_predicted_spans_that_gold_does_not_have_teach_nothing(bert_dir):
    nlp = make(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    reference = make_examples(nlp)[0].reference
    predicted = Doc(nlp.vocab, words=[token.text for token in reference])
    predicted.ents = [Span(predicted, 2, 3, "X"), Span(predicted, 5, 6, "LOC")]
    gradient = gradient_of(nlp, [Example(predicted, reference)])
    assert not gradient[0].any() and gradient[1].any()


def test_a_type_that_is_not_known_is_named(bert_dir):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples[1:2])
    with pytest.raises(ConfigError, match="'/person"):
        nlp.update(examples, sgd=False)


def test_gold_out_of_reach_is_counted_by_reason(bert_dir, caplog):
    nlp = make(bert_dir, encoder={"window": 20, "overlap": 5})
    examples = make_examples(nlp)
    examples[0].predicted.set_ents([], default="outside")  # the others have theirs
    examples[1].reference[3:4]._.types = {"/event": 1.0}  # no entity of gold, either
    examples[1].reference[4:5]._.types = {"/event": 0.2}
    doc = Doc(nlp.vocab, words=["London"] * 30)
    annotate(doc, [(0, 25, "LOC", ["/place"]), (26, 27, "LOC", ["/place"])])
    examples.append(Example(annotate(doc.copy(), [(0, 25, "LOC", [])], types=False), doc))
    with caplog.at_level(logging.INFO, logger="spacy.luke"):
        nlp.initialize(lambda: examples)
    limits = nlp.get_pipe("luke_entity_typing").limits
    names = ("gold", "no entity", "too long", "several types", "no type")
    assert limits == dict(zip(names, (15, 4, 1, 0, 0)))
    assert "15 gold spans have types. 4 are not entities of the documents and 1 are" in caplog.text
    assert "no document of the data has entities" not in caplog.text


def test_training_without_entities_is_warned_of_and_changes_nothing(bert_dir, caplog):
    nlp = make(bert_dir)
    examples = make_examples(nlp, entities=False)
    nlp.initialize(lambda: examples)
    assert "no document of the data has entities" in caplog.text
    assert nlp.get_pipe("luke_entity_typing").limits["no entity"] == 0  # of gold entities
    caplog.clear()
    losses = fit(nlp, examples, 3)
    assert losses["luke_entity_typing"] == 0.0
    assert caplog.text.count("the first batch has no entity") == 1


def test_where_a_component_predicts_the_entities_in_training_nothing_is_warned_of(bert_dir, caplog):
    nlp = make(bert_dir)
    nlp.add_pipe("ner", first=True)
    nlp.add_pipe("sentencizer", first=True)
    annotating = nlp.config["training"]["annotating_components"] = ["sentencizer", "ner"]
    nlp.initialize(lambda: make_examples(nlp, entities=False))
    assert "no document of the data has entities" not in caplog.text
    annotating.remove("ner")  # a sentencizer predicts none
    nlp.initialize(lambda: make_examples(nlp, entities=False))
    assert "no document of the data has entities" in caplog.text


def test_gold_with_a_low_score_teaches_that_it_is_not_there(bert_dir):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    ada = examples[0].reference.ents[0]
    ada._.types = {**ada._.types, "/animal": 0.0}
    nlp.initialize(lambda: examples)
    assert "/animal" not in nlp.get_pipe("luke_entity_typing").labels


def test_gold_without_a_type_is_counted_where_one_is_always_predicted(bert_dir, caplog):
    nlp = make(bert_dir, multi_label=False)
    examples = one_type_each(nlp)
    set_types(examples[0].reference.ents[0], {})
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe("luke_entity_typing").limits["no type"] == 1
    assert "1 no type, though one is always predicted" in caplog.text
