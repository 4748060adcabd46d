"""Tokens that are merged later: spaCy leaves the tokens of spans groups as they were."""

import pytest
from spacy.tokens import Doc
from spacy.training import Example

from spacy_luke.annotations.group_spans import copy_of, spans_by_row
from spacy_luke.cli.evaluate import evaluate
from spacy_luke.metrics.ner import luke_ner_score
from tests.pipeline.conftest import ANNOTATED, fit, make_examples, trained

SCORES = ("ents_p", "ents_r", "ents_f", "ents_calibration_error")


def test_entities_that_are_merged_have_the_same_scores(ner) -> None:
    nlp = ner()
    trained(nlp)
    # The last sentence's predictions are wrong, so that the scores are not perfect.
    data = [*ANNOTATED, (f"{ANNOTATED[0][0]} {ANNOTATED[2][0]}", [(0, 1, "PER")])]
    before = nlp.evaluate(make_examples(nlp, data))
    assert 0 < before["ents_f"] < 1 and before["ents_calibration_error"] is not None
    nlp.add_pipe("merge_entities")
    for found in (nlp.evaluate(make_examples(nlp, data)), evaluate(nlp, make_examples(nlp, data))):
        assert {x: found[x] for x in SCORES} == pytest.approx({x: before[x] for x in SCORES})


def test_nested_spans_that_are_merged_have_the_same_scores(ner) -> None:
    nlp = ner(nested=True)
    examples = make_examples(nlp)
    for example in examples:
        example.reference.spans["luke_ner"] = [*example.reference.ents]
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    for example in examples:
        example.predicted = nlp(example.predicted)
    before = luke_ner_score(examples, spans_key="luke_ner", nested=True)
    assert before["spans_luke_ner_f"] == 1.0
    for example in examples:
        with example.predicted.retokenize() as retokenizer:
            for ent in example.reference.ents:
                retokenizer.merge(example.predicted[ent.start : ent.end])
    examples = [Example(example.predicted, example.reference) for example in examples]
    assert luke_ner_score(examples, spans_key="luke_ner", nested=True) == before


def test_groups_after_a_merge(ner) -> None:
    nlp = ner()
    trained(nlp)
    doc = nlp(Doc(nlp.vocab, words=ANNOTATED[3][0].split(" ")))
    group = doc.spans["luke_ner"]
    assert copy_of(group) is not group and len(copy_of(group)) == len(group) == 3
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[5:8])
        retokenizer.merge(doc[2:4])  # "Germany signed": no entity any more
    texts = [None if x is None else x.text for x in spans_by_row(doc, group)]
    assert texts == ["France", None, "New York City"]
    assert copy_of(group) is group
