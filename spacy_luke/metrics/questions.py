"""Scores of ``Doc._.answers``, the answers to questions about documents."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from spacy.training import Example
from spacy.util import registry

from ..annotations.questions import (
    Offsets,
    answer_offsets,
    check_same_questions,
    has_answers,
    n_questions,
    predicted_offsets,
)
from .answers import Answer, Answers, calibration_scores
from .squad import AnswerScore, best_threshold, mean_score, score_answer

ANSWER = "answer"
"""The label of all answers."""


class AnsweredQuestion(NamedTuple):
    """result: of the best answer, or of "" if there is none. score: of the best answer, or None."""

    result: AnswerScore
    score: float | None


@registry.scorers("spacy-luke.luke_qa_scorer.v1")
def make_luke_qa_scorer(prefix: str = "qa") -> Callable[..., dict[str, Any]]:
    """Exact match and F1 of answers to questions: :func:`question_score`.

    prefix: of the names of the scores, before "_"; another one if a pipeline has several such
        components.
    """
    return partial(question_score, prefix=prefix)


def question_score(
    examples: Iterable[Example], *, prefix: str = "qa", **kwargs: Any
) -> dict[str, Any]:
    """Exact match and F1 of the best answers, from 0 to 1, as the official metric of SQuAD 2.0.

    Scored are the questions of documents whose answers were set (:func:`.has_answers`). The
    prediction for a question is the text of its best answer, or "" if it has none. Texts are the
    exact characters of answers, also inside tokens. prefix: of the names of the scores.

    - ``qa_em``, ``qa_f1``: over all questions;
    - ``qa_answerable_em``, ``_f1``: over questions with gold answers;
    - ``qa_unanswerable``: the share of questions without gold answers for which none was predicted;
    - ``qa_best_f1``: the best ``qa_f1`` if answers with lower scores than a threshold are left out;
      ``qa_best_threshold``: this least score of an answer, or None if it is best to give none.
      Answers that the pipeline has left out remain so: to find a threshold among all scores,
      predict without one;
    - ``qa_questions``, ``qa_unanswerable_questions``: their numbers.

    And :func:`.calibration_scores` of the best answers; those that match exactly are right.

    Values are None if there are no such questions; the numbers are None without annotated
    documents. Raises InputError if the predicted document has other questions than the reference.
    """
    questions = list(_questions(examples))
    results = [x.result for x in questions]
    answerable = mean_score(x for x in results if x.answerable)
    unanswerable = mean_score(x for x in results if not x.answerable)
    every = mean_score(results)
    # Without an answer the result is the same with any threshold.
    scores = [0.0 if x.score is None else x.score for x in questions]
    best = best_threshold(results, [-x for x in scores], "f1")
    values = {
        "em": every.exact,
        "f1": every.f1,
        "answerable_em": answerable.exact,
        "answerable_f1": answerable.f1,
        "unanswerable": unanswerable.exact,
        "best_f1": None if best is None else best.value,
        "best_threshold": None if best is None or best.threshold is None else -best.threshold,
        "questions": every.questions or None,
        "unanswerable_questions": unanswerable.questions if questions else None,
    }
    named = {f"{prefix}_{name}": value for name, value in values.items()}
    return {**named, **calibration_scores(_answers(questions), prefix)}


def question_answers(examples: Iterable[Example]) -> Answers:
    """The best answers with their scores; those that match a gold answer exactly are right. See
    :func:`question_score`."""
    return _answers(_questions(examples))


def best_text(text: str, offsets: Offsets) -> str:
    """The best answer in a document's text; empty if there is none."""
    return next((text[start:end] for start, end, _ in offsets.answers), "")


def best_least_score(examples: Iterable[Example]) -> float | None:
    """``qa_best_threshold``, or infinity if it is best to give no answer; None if no threshold
    makes anything right."""
    scores = question_score(examples)
    if not scores["qa_best_f1"]:
        return None
    threshold = scores["qa_best_threshold"]
    return math.inf if threshold is None else round(float(threshold), 8)


def _answers(questions: Iterable[AnsweredQuestion]) -> Answers:
    answers = Answers()
    for result, score in questions:
        answers.n_gold.update([ANSWER] if result.answerable else [])
        if score is not None:
            right = result.answerable and result.exact == 1.0
            answers.found.append(Answer(ANSWER, score, right))
    return answers


def are_asked(examples: Iterable[Example]) -> bool:
    """Whether a predicted document has a question, or no reference has one that is scored."""
    examples = list(examples)
    wanted = any(has_answers(eg.reference) and n_questions(eg.reference) for eg in examples)
    return not wanted or any(n_questions(eg.predicted) for eg in examples)


def _questions(examples: Iterable[Example]) -> Iterator[AnsweredQuestion]:
    for example in examples:
        gold, predicted = example.reference, example.predicted
        if not has_answers(gold):
            continue
        check_same_questions(predicted, gold)
        found = predicted_offsets(predicted)
        gold_text, text = gold.text, predicted.text  # spaCy joins the tokens at every access
        for right, answers in zip(answer_offsets(gold), found, strict=True):
            golds = [gold_text[start:end] for start, end, _ in right.answers]
            result = score_answer(best_text(text, answers), golds)
            yield AnsweredQuestion(result, answers.answers[0][2] if answers.answers else None)
