"""Scores of answers to questions."""

import re

import pytest
import spacy
from spacy.training import Example
from spacy.util import registry

from spacy_luke.annotations.questions import (
    Offsets,
    clear_answers,
    set_answer_offsets,
)
from spacy_luke.errors import InputError
from spacy_luke.metrics.answers import Answer
from spacy_luke.metrics.questions import are_asked, question_answers, question_score

NLP = spacy.blank("en")
TEXT = "The engine was built in London by Ada King in 1843."
QUESTIONS = ["Where?", "By whom?", "Why?", "When?"]


def place(text):
    return TEXT.index(text), TEXT.index(text) + len(text)


def make_doc(answers, questions=QUESTIONS):
    doc = NLP(TEXT)
    doc._.questions = questions
    if answers is not None:
        found = [[(*place(text), score) for text, score in of_one] for of_one in answers]
        set_answer_offsets(doc, [Offsets(x, float(not x)) for x in found])
    return doc


GOLD = [[("London", 1.0)], [("Ada King", 1.0), ("Ada", 1.0)], [], [("1843", 1.0)]]
PREDICTED = [
    [("in London", 0.5), ("London", 0.2)],  # the best answer counts: F1 is 2/3
    [("Ada", 0.9)],  # exact match with the second gold answer
    [("engine", 0.3)],  # wrong: there is no answer
    [],  # missed
]


def example(predicted=PREDICTED, gold=GOLD):
    return Example(make_doc(predicted), make_doc(gold))


def test_scores_of_the_best_answers():
    scores = question_score([example()])
    assert scores["qa_em"] == pytest.approx(1 / 4)
    assert scores["qa_f1"] == pytest.approx((2 / 3 + 1) / 4)
    assert scores["qa_answerable_em"] == pytest.approx(1 / 3)
    assert scores["qa_answerable_f1"] == pytest.approx((2 / 3 + 1) / 3)
    assert scores["qa_unanswerable"] == 0.0
    assert (scores["qa_questions"], scores["qa_unanswerable_questions"]) == (4, 1)
    # With answers from 0.5 on, the question without a gold answer is right.
    assert scores["qa_best_f1"] == pytest.approx((2 / 3 + 1 + 1) / 4)
    assert scores["qa_best_threshold"] == 0.5


def test_gold_answers_are_all_right():
    scores = question_score([example(GOLD), example(GOLD)])
    names = ["em", "f1", "answerable_em", "answerable_f1", "unanswerable", "best_f1"]
    assert [scores[f"qa_{name}"] for name in names] == [1.0] * 6
    assert scores["qa_best_threshold"] == 1.0 and scores["qa_questions"] == 8


def test_answers_are_compared_by_characters():
    inside = [[("Lond", 1.0)], [], [], []]
    assert question_score([example([[("London", 1.0)], [], [], []], inside)])["qa_em"] == 0.75
    assert question_score([example(inside, inside)])["qa_em"] == 1.0


def test_nothing_is_scored_without_annotation():
    scores = question_score([Example(make_doc(PREDICTED), make_doc(None))])
    assert set(scores.values()) == {None}
    mixed = [Example(make_doc(PREDICTED), make_doc(None)), example()]
    assert question_score(mixed) == question_score([example()])
    only_answerable = Example(make_doc([[]], ["Where?"]), make_doc(GOLD[:1], ["Where?"]))
    scores = question_score([only_answerable])
    assert scores["qa_unanswerable"] is None and scores["qa_unanswerable_questions"] == 0
    # No answer was predicted, so no threshold changes anything.
    assert (scores["qa_best_f1"], scores["qa_best_threshold"]) == (0.0, None)
    only_unanswerable = Example(make_doc([[]], ["Why?"]), make_doc([[]], ["Why?"]))
    scores = question_score([only_unanswerable])
    assert scores["qa_em"] == 1.0 and scores["qa_answerable_em"] is None


def test_a_document_without_predictions_has_no_answers():
    eg = example()
    clear_answers(eg.predicted)
    scores = question_score([eg])
    assert (scores["qa_em"], scores["qa_unanswerable"]) == (0.25, 1.0)


@pytest.mark.parametrize(
    ("questions", "difference"),
    [
        ([], "none of the 4 questions"),
        (QUESTIONS[:2], "2 questions, its reference 4"),
        (["Where?", "Why?", "By whom?", "When?"], "question 1 'Why?', its reference 'By whom?'"),
    ],
)
def test_other_questions_are_an_error_that_names_the_document(questions, difference):
    predicted = make_doc(None, questions)
    with pytest.raises(InputError, match=f"'The engine was.*{re.escape(difference)}"):
        question_score([Example(predicted, make_doc(GOLD))])
    gold = make_doc(GOLD)
    gold.user_data["title"] = "Engines"
    with pytest.raises(InputError, match="'Engines'"):
        question_score([Example(predicted, gold)])


def test_whether_questions_were_asked():
    bare = Example(make_doc(None, []), make_doc(GOLD))
    assert not are_asked([bare]) and are_asked([bare, example()])
    assert are_asked([Example(make_doc(None, []), make_doc(None, []))])


def test_best_answers_are_calibrated():
    answers = question_answers([example()])
    assert answers.n_gold == {"answer": 3}
    assert answers.found == [
        Answer("answer", 0.5, False),
        Answer("answer", 0.9, True),
        Answer("answer", 0.3, False),
    ]
    scores = question_score([example()])
    # Of 3 answers in 3 bins: 0.5 off, 0.1 off, 0.3 off.
    assert scores["qa_calibration_error"] == pytest.approx(0.3)
    assert len(scores["qa_reliability"]) == 3


def test_an_answer_to_an_unanswerable_question_is_never_right():
    """The official metric counts an article as no answer."""
    eg = Example(make_doc([[("The", 0.5)]], ["Why?"]), make_doc([[]], ["Why?"]))
    assert question_score([eg])["qa_em"] == 1.0
    assert question_answers([eg]).right == [False]


def test_the_scorer_is_registered():
    scorer = registry.scorers.get("spacy-luke.luke_qa_scorer.v1")()
    assert scorer([example()], prefix="faq")["faq_questions"] == 4
    of_faq = registry.scorers.get("spacy-luke.luke_qa_scorer.v1")(prefix="faq")
    assert of_faq([example()])["faq_questions"] == 4
