"""A component that answers questions by a rule, for tests of commands."""

import re

from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.annotations.questions import (
    Offsets,
    has_answers,
    question_texts,
    set_answer_offsets,
)
from spacy_luke.metrics.questions import question_score

RULES = {"When": r"\d{4}", "Who": r"[A-ZÉ]\w+ [A-Z]\w+", "Where": r"(?<=in )[A-Z]\w+"}


@Language.factory(
    "answers_by_rule",
    assigns=["doc._.answers"],
    default_score_weights={"qa_f1": 1.0},
)
def make_answers_by_rule(nlp: Language, name: str) -> "AnswersByRule":
    return AnswersByRule()


class AnswersByRule:
    """Answers questions that begin with a word of ``RULES``: matches in text order, the first with
    score 0.8, each further one with 0.1 less. Without a match, "no answer" has 0.9, else 0.25."""

    def __init__(self) -> None:
        self.questions: list[list[str]] = []

    def __call__(self, doc: Doc) -> Doc:
        assert not has_answers(doc)  # gold answers are never preset
        self.questions.append(question_texts(doc))
        set_answer_offsets(doc, [self.answer(doc.text, x) for x in self.questions[-1]])
        return doc

    def answer(self, text: str, question: str) -> Offsets:
        rule = RULES.get(question.split(" ")[0].rstrip("?"), "(?!)")
        places = [match.span() for match in re.finditer(rule, text)]
        answers = [(*place, 0.8 - 0.1 * i) for i, place in enumerate(places)]
        return Offsets(answers, 0.25 if answers else 0.9)

    def score(self, examples, **kwargs):
        return question_score(examples)
