"""Where the known spans of luke_ner come from, and what ``initialize`` counts and tells of them."""

import logging

import numpy as np
import pytest
import spacy

from spacy_luke.errors import ConfigError
from spacy_luke.layers.span_network import set_prior
from spacy_luke.layers.task_layer import head_of
from tests.pipeline.conftest import ANNOTATED, entities, fit, make_examples, make_ner
from tests.pipeline.known_data import TWO_WORDS, listed_examples, with_group, words


def test_training_without_the_group_is_told(bert_dir, caplog):
    nlp = make_ner(bert_dir, known="known")
    with caplog.at_level(logging.WARNING):
        nlp.initialize(lambda: make_examples(nlp))
    assert "no document of the training data has a span in the group 'known'" in caplog.text
    fit(nlp, listed_examples(nlp), 1)
    assert nlp(with_group(words(nlp, ANNOTATED[1][0]))) is not None


def test_the_list_is_counted_and_ordinary_words_are_named(bert_dir, caplog):
    nlp = make_ner(bert_dir, known="known")
    examples = listed_examples(nlp, [*ANNOTATED, *[ANNOTATED[4]] * 3])
    for eg in examples[4:]:
        with_group(eg.predicted, [(4, 5, "place", "")])
    with caplog.at_level(logging.INFO):
        nlp.initialize(lambda: examples)
    assert "4 of 9 spans of the group 'known' are entities of the training data" in caplog.text
    assert "4 of its 8 entities are in the group" in caplog.text
    assert "place: 5 NIL, 3 LOC" in caplog.text and "name: 1 PER" in caplog.text
    assert "mostly no entities: course (4)" in caplog.text


@pytest.mark.parametrize("ordinary", [False, True])
def test_a_list_made_of_the_annotations_is_told(bert_dir, caplog, ordinary):
    """Also if it is not always right."""
    nlp = make_ner(bert_dir, known="known")
    examples = make_examples(nlp)
    for eg in examples:
        spans = [(x.start, x.end, x.label_, "") for x in eg.reference.ents]
        if ordinary:
            spans += [
                (i, i + 1, "x", "") for i, word in enumerate(eg.predicted) if word.text == "."
            ]
        with_group(eg.predicted, spans)
    with caplog.at_level(logging.WARNING):
        nlp.initialize(lambda: examples)
    assert "8 of the 8 entities of the training data are in the group 'known'" in caplog.text


def test_entities_that_are_no_candidates_count_too(bert_dir, caplog):
    """None of the entities that are longer than the suggester's spans is in the list."""
    nlp = make_ner(bert_dir, known="known", suggester={**TWO_WORDS, "max_words": 1})
    data = [ANNOTATED[2], ANNOTATED[0]]  # the University of Tokyo; Ada Lovelace, London
    examples = make_examples(nlp, data)
    with_group(examples[0].predicted, [])
    with_group(examples[1].predicted, [(5, 6, "place", "")])
    with caplog.at_level(logging.INFO):
        nlp.initialize(lambda: examples)
    assert "1 of its 3 entities are in the group" in caplog.text
    assert "was made from these annotations" not in caplog.text


def test_known_names_in_a_pipeline_trained_by_config(bert_dir, tmp_path):
    nlp = make_ner(bert_dir, known="known_names")
    names = nlp.add_pipe("known_names", before="luke_ner")
    names.set_names([{"name": "Tokyo", "label": "place"}, {"name": "Japan", "label": "place"}])
    nlp.config["training"]["annotating_components"] = ["known_names"]
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    head = head_of(nlp.get_pipe("luke_ner").model)
    assert head.config["known_labels"] == ["place"]
    ner = nlp.get_pipe("luke_ner")
    ner.nil_bias = -30.0  # nothing but what the list says is found
    set_prior(ner.model, np.where(np.arange(4) < 3, 50.0, -50.0) * np.eye(5)[:, :1])
    text = "Halden is the capital of Norway ."
    assert entities(nlp(words(nlp, text))) == []
    names.set_names([{"name": "Halden", "label": "place"}])
    assert [(a, b) for a, b, _ in entities(nlp(words(nlp, text)))] == [(0, 1)]
    nlp.to_disk(tmp_path)
    for loaded in (spacy.load(tmp_path), without_list(nlp, tmp_path)):
        found = [(a, b) for a, b, _ in entities(loaded(words(loaded, text)))]
        assert found == [(0, 1)] * len(loaded.get_pipe("known_names").names)
    names.set_names([])
    assert entities(nlp(words(nlp, text))) == []


def without_list(nlp, path):
    """The pipeline saved without its list."""
    nlp.get_pipe("known_names").to_disk(path / "known_names", exclude=["names"])
    return spacy.load(path)


def test_lists_of_one_letter_and_names_with_several_labels(bert_dir):
    nlp = make_ner(bert_dir, known="known_names")
    names = nlp.add_pipe("known_names", before="luke_ner")
    names.set_names([{"name": x, "label": y} for x in ("e", "Tokyo") for y in ("place", "name")])
    nlp.config["training"]["annotating_components"] = ["known_names"]
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    head = head_of(nlp.get_pipe("luke_ner").model)
    assert head.config["known_labels"] == ["name", "place"]
    query, _ = nlp.get_pipe("luke_ner").predict([names(words(nlp, "e is not Tokyo ."))])
    places = [tuple(x) for x in query.table[query.known.asked].tolist()]
    assert places == [(0, 1), (3, 4)] and set(query.known.counts[query.known.asked]) == {2}


def test_a_span_ruler_is_a_source(bert_dir):
    """Sourced and frozen, because spaCy empties a ruler that is initialised."""
    source = spacy.blank("en")
    source.add_pipe("span_ruler").add_patterns([{"label": "place", "pattern": "Tokyo"}])
    nlp = make_ner(bert_dir, known="ruler")
    nlp.add_pipe("span_ruler", source=source, before="luke_ner")
    nlp.config["training"]["annotating_components"] = ["span_ruler"]
    nlp.config["training"]["frozen_components"] = ["span_ruler"]
    examples = make_examples(nlp)
    with nlp.select_pipes(disable=["span_ruler"]):
        nlp.initialize(lambda: examples)
    ner = nlp.get_pipe("luke_ner")
    assert head_of(ner.model).config["known_labels"] == ["place"]
    query, _ = ner.predict([nlp.get_pipe("span_ruler")(words(nlp, "Tokyo is here"))])
    assert query.known.asked.sum() == 1


@pytest.mark.parametrize("is_trained", [True, False])
def test_another_ner_is_a_source_if_it_is_trained_before(bert_dir, caplog, is_trained):
    nlp = make_ner(bert_dir, known="other")
    if is_trained:
        other = make_ner(bert_dir)
        annotated = make_examples(other)
        other.initialize(lambda: annotated)
        fit(other, annotated, 60)
        nlp.add_pipe("luke_ner", name="other", source=other, before="luke_ner")
    else:
        block = {"model": nlp.get_pipe_config("luke_ner")["model"]}
        nlp.add_pipe("luke_ner", name="other", config=block, before="luke_ner")
    nlp.get_pipe("other").spans_key = "other"
    nlp.config["training"]["annotating_components"] = ["other"]
    nlp.config["training"]["frozen_components"] = ["other"] if is_trained else []
    examples = make_examples(nlp)
    with (
        caplog.at_level(logging.WARNING),
        nlp.select_pipes(disable=["other"] if is_trained else []),
    ):
        nlp.initialize(lambda: examples)
    labels = head_of(nlp.get_pipe("luke_ner").model).config.get("known_labels", [])
    assert bool(labels) == is_trained
    assert ("if it is a model, be trained and frozen" in caplog.text) != is_trained


def test_its_own_group_is_no_source(bert_dir):
    with pytest.raises(ConfigError, match="the spans group that luke_ner itself writes"):
        make_ner(bert_dir, known="luke_ner")
