"""Questions on the page: each with its answers, and the counts of all."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from spacy.tokens import Doc
from spacy.training import Example

from ...annotations.questions import (
    Offsets,
    answer_offsets,
    has_answers,
    predicted_offsets,
    question_texts,
)
from .text import ShownAnswer

if TYPE_CHECKING:
    from ...metrics.squad import AnswerScore

ANSWERS = "doc._.answers"
MAX_ANSWERS = 5
"""Predicted answers that are shown of a question."""


class ShownQuestion(NamedTuple):
    """A question with its predicted answers, best first.

    id: of its HTML element. kind: "plain" without annotation; "agreed" if the metric counts an
    exact match, else "spurious" with an answer and "missed" without one. no_answer: the score of
    "no answer"; None if the pipeline does not give it. f1: of the best answer; None without
    annotation. gold: the right answers, if the question is spurious or missed. n_others: answers
    that are not shown.
    """

    number: int
    id: str
    text: str
    kind: str
    answers: list[ShownAnswer]
    no_answer: float | None
    f1: float | None
    gold: list[ShownAnswer]
    n_others: int

    @property
    def marks(self) -> list[ShownAnswer]:
        """All answers that are shown, for :func:`.cut_text`."""
        return [*self.answers, *self.gold]

    def without_scores(self) -> "ShownQuestion":
        answers = [answer._replace(score=None) for answer in self.answers]
        return self._replace(answers=answers, no_answer=None)


class QuestionCounts(NamedTuple):
    """A row of the table: questions, those with a predicted answer, exact match and F1 from 0 to 1,
    which are None without questions."""

    name: str
    questions: int
    answered: int
    exact: float | None
    f1: float | None

    @property
    def right(self) -> int:
        """Questions that match exactly."""
        return round(self.questions * (self.exact or 0.0))


def show_questions(
    doc: Doc, reference: Doc, name: str, no_answer: bool = True
) -> list[ShownQuestion]:
    """The questions of a document with predicted and gold answers.

    name: prefix of ids. no_answer: setting of the component; if false, it does not score "no
    answer".
    """
    texts = question_texts(doc)
    annotated = has_answers(reference) and texts == question_texts(reference)
    gold = answer_offsets(reference) if annotated else [None] * len(texts)
    text, gold_text = doc.text, reference.text  # spaCy joins the tokens at every access
    shown = []
    for i, (found, right) in enumerate(zip(predicted_offsets(doc), gold)):
        compared = _Compared(f"{name}-{i + 1}", i + 1, found, right, text, gold_text)
        shown.append(compared.show(texts[i], no_answer))
    return shown


class _Compared(NamedTuple):
    """The answers to a question, with the texts that they are places of."""

    id: str
    number: int
    found: Offsets
    gold: Offsets | None
    text: str
    gold_text: str

    def show(self, question: str, no_answer: bool) -> ShownQuestion:
        result = self.compare(0)
        kind = "plain"
        if result is not None:
            wrong = "spurious" if result.answered else "missed"
            kind = "agreed" if result.exact else wrong
        answers = self.predicted_answers(kind)
        return ShownQuestion(
            self.number,
            self.id,
            question,
            kind,
            answers,
            self.found.no_answer if no_answer else None,
            None if result is None else result.f1,
            self.gold_answers(answers) if kind in ("spurious", "missed") else [],
            len(self.found.answers) - len(answers),
        )

    def compare(self, rank: int) -> "AnswerScore | None":
        """Compare an answer, or that there is none, with the gold ones; None without annotation."""
        from ...metrics.squad import score_answer

        if self.gold is None:
            return None
        predicted = [self.text[start:end] for start, end, _ in self.found.answers[rank:][:1]]
        golds = [self.gold_text[start:end] for start, end, _ in self.gold.answers]
        return score_answer("".join(predicted), golds)

    def predicted_answers(self, kind: str) -> list[ShownAnswer]:
        """kind: of the best answer. The metric does not count the others, so none is wrong."""
        answers = []
        for i, (start, end, score) in enumerate(self.found.answers[:MAX_ANSWERS]):
            if i:
                result = self.compare(i)
                right = result is not None and result.answerable and result.exact
                kind = "agreed" if right else "plain"
            label = f"{self.number}.{i + 1}" if i else str(self.number)
            answer_id = f"{self.id}-answer-{i + 1}"
            text = self.text[start:end]
            answers.append(ShownAnswer(kind, label, text, (start, end), score, answer_id, self.id))
        return answers

    def gold_answers(self, shown: Sequence[ShownAnswer]) -> list[ShownAnswer]:
        """The right answers. One that was predicted as a further answer is not marked again."""
        assert self.gold is not None
        at = {answer.place: answer for answer in shown}
        answers: list[ShownAnswer] = []
        for place in dict.fromkeys((start, end) for start, end, _ in self.gold.answers):
            text = self.gold_text[slice(*place)]
            at_place = place if self.text[slice(*place)] == text else None
            answer_id = f"{self.id}-gold-{len(answers) + 1}"
            label = str(self.number)
            answer = ShownAnswer("missed", label, text, at_place, None, answer_id, self.id)
            answers.append(at.get(at_place, answer))
        return answers


def count_questions(examples: Sequence[Example]) -> list[QuestionCounts]:
    """Rows of all annotated questions, and of those with and without a gold answer; empty without
    annotation. As :func:`.question_score`, which raises InputError if a predicted document has
    other questions than its reference."""
    from ...metrics.questions import question_score

    scores = question_score(examples)
    if not scores["qa_questions"]:
        return []
    n: Counter[bool] = Counter()  # by whether there is a gold answer
    answered: Counter[bool] = Counter()
    for example in examples:
        if has_answers(example.reference):
            offsets = zip(answer_offsets(example.reference), predicted_offsets(example.predicted))
            for gold, found in offsets:
                n[bool(gold.answers)] += 1
                answered[bool(gold.answers)] += bool(found.answers)

    def row(name: str, of: Sequence[bool], exact: str, f1: str) -> QuestionCounts:
        questions, given = (sum(counts[x] for x in of) for counts in (n, answered))
        return QuestionCounts(name, questions, given, scores[exact], scores[f1])

    return [
        row("all", (True, False), "qa_em", "qa_f1"),
        row("with an answer", (True,), "qa_answerable_em", "qa_answerable_f1"),
        row("without an answer", (False,), "qa_unanswerable", "qa_unanswerable"),
    ]
