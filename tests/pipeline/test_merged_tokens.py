"""Tokens that are merged later: spaCy leaves the tokens of spans groups as they were."""

import pytest
from spacy.tokens import Doc

from spacy_luke.annotations.group_spans import copy_of, spans_by_row
from spacy_luke.cli.evaluate import evaluate
from tests.pipeline.conftest import ANNOTATED, make_examples, trained

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
