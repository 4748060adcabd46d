"""Answers are judged as spaCy's scores judge spans, also where tokens of two tokenizers differ."""

import pytest
import spacy
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from spacy_luke.metrics.ner import luke_ner_score, ner_answers

NLP = spacy.blank("en")
WORDS, COARSE = ["Tokyo", "-", "Japan", "said"], ["Tokyo-Japan", "said"]
SPACES, COARSE_SPACES = [False, False, True, False], [True, False]


def example(predicted, gold, coarse=True, nested=False) -> Example:
    """(start, end, score) of predicted places, and (start, end) of gold ones: of tokens, which are
    coarser in the reference."""
    doc = Doc(NLP.vocab, words=WORDS, spaces=SPACES)
    given = (COARSE, COARSE_SPACES) if coarse else (WORDS, SPACES)
    reference = Doc(NLP.vocab, words=given[0], spaces=given[1])
    spans = [Span(doc, start, end, "LOC") for start, end, _ in predicted]
    doc.spans["sc"] = SpanGroup(doc, spans=spans, attrs={"scores": [x for *_, x in predicted]})
    if not nested:
        doc.set_ents(spans)
    answers = [Span(reference, *place, "LOC") for place in gold]
    reference.set_ents(answers)
    reference.spans["sc"] = answers
    return Example(doc, reference)


@pytest.mark.parametrize(("first", "second"), [(0.9, 0.4), (0.4, 0.9)])
def test_of_two_answers_within_a_token_of_the_reference_the_better_one_is_right(first, second):
    eg = example([(0, 1, first), (2, 3, second)], [(0, 1)])
    answers = ner_answers([eg], spans_key="sc")
    assert [x.score for x in answers.found] == [first, second]
    assert [x.score for x in answers.found if x.right] == [0.9]
    spacys = get_ner_prf([eg])
    assert answers.prf() == (spacys["ents_p"], spacys["ents_r"], spacys["ents_f"])
    assert answers.prf()[:2] == (0.5, 1.0)


def test_in_nested_mode_a_part_of_a_token_of_the_reference_is_left_out():
    eg = example([(0, 1, 0.9)], [(0, 1)], nested=True)
    assert ner_answers([eg], spans_key="sc", nested=True).prf() == (0.0, 0.0, 0.0)
    scores = luke_ner_score([eg], spans_key="sc", nested=True)
    assert scores["spans_sc_r"] == 0.0 and scores["spans_sc_calibration_error"] is None
    whole = example([(0, 3, 0.9), (0, 1, 0.2)], [(0, 1)], nested=True)
    answers = ner_answers([whole], spans_key="sc", nested=True)
    assert [(x.score, x.right) for x in answers.found] == [(0.9, True)]


def test_of_equal_tokens_answers_stay_in_the_order_of_the_group():
    eg = example([(2, 3, 0.3), (0, 1, 0.8), (3, 4, 0.5)], [(0, 1), (2, 3)], coarse=False)
    for nested in (False, True):
        answers = ner_answers([eg], spans_key="sc", nested=nested)
        assert [(x.score, x.right) for x in answers.found] == [
            (0.3, True),
            (0.8, True),
            (0.5, False),
        ]
