"""``luke_qa``: answers to questions about documents, as spans with scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Config, Model

from ..annotations.attributes import require
from ..annotations.given import list_of
from ..annotations.questions import Answers, Question
from ..checkpoint.classes import QUESTIONS
from ..layers.answer_scorer import AnswerScorer, AnswerScores, QuestionQuery
from ..metrics.answers import Answers as ScoredAnswers
from ..metrics.questions import (
    ANSWER,
    are_asked,
    best_least_score,
    question_answers,
    question_score,
)
from ..validation import Count, Probability, setting
from .answer_decoding import Choice, Placed, best_of, find_answers, scored, write_answers
from .answer_limits import ADVICE, NOT_LEARNED, count_limits
from .answer_targets import answer_loss, answer_targets, is_asked
from .asked import Asked
from .class_loss import Targets
from .entity_source import DocEnts, EntitySource, HasEntitySource
from .questions import batches_of_docs, every_question_of_every_doc, questions_of_docs
from .tokenizer import Tokenizer

DEFAULT_CONFIG = Config().from_str(
    """
[luke_qa]
top_k = 1
no_answer = true
score_threshold = 0.5
overlap_threshold = 0.01
max_answer_length = 30
entities = null
scorer = {"@scorers":"spacy-luke.luke_qa_scorer.v1"}

[luke_qa.model]
@architectures = "spacy-luke.AnswerScorer.v1"

[luke_qa.model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
name = "studio-ousia/luke-base"
"""
)


@Language.factory(
    "luke_qa",
    assigns=["doc._.answers"],
    requires=["doc._.questions"],
    default_config=DEFAULT_CONFIG["luke_qa"],
    default_score_weights={"qa_f1": 1.0, "qa_em": 0.0},
)
def make_luke_qa(
    nlp: Language,
    name: str,
    model: Model[QuestionQuery, AnswerScores],
    top_k: int,
    no_answer: bool,
    score_threshold: float,
    overlap_threshold: float,
    max_answer_length: int,
    entities: EntitySource | None,
    scorer: Callable | None,
) -> "LukeQA":
    """Construct a question answering component.

    model: ``spacy-luke.AnswerScorer.v1``.
    top_k: most answers to a question.
    no_answer: a document may not answer a question (as in SQuAD 2.0): answers with a score below
        ``score_threshold`` are not given. Else ``top_k`` answers are given, whatever their scores.
    overlap_threshold: leave out an answer if a larger share of it, or of a better one, is in both.
    max_answer_length: most tokens of an answer.
    entities: finds the entity inputs, as ``spacy-luke.linked_mentions.v1``; default: ``Doc.ents``.
    """
    return LukeQA(
        nlp.vocab,
        model,
        name,
        nlp.tokenizer,
        entities,
        scorer,
        top_k=top_k,
        no_answer=no_answer,
        score_threshold=score_threshold,
        overlap_threshold=overlap_threshold,
        max_answer_length=max_answer_length,
    )


class LukeQA(Asked[QuestionQuery, AnswerScores], HasEntitySource[QuestionQuery, AnswerScores]):
    """Answer ``Doc._.questions`` with spans of the document, in ``Doc._.answers``."""

    architecture = "spacy-luke.AnswerScorer.v1"
    node = AnswerScorer.node
    least_score = "score_threshold"
    out_of_reach = NOT_LEARNED
    classes = QUESTIONS.classes
    answer_label = ANSWER
    asked, answered = "questions", "answers"

    top_k: Count = setting()
    no_answer: bool = setting()
    score_threshold: Probability = setting()
    overlap_threshold: Probability = setting()
    max_answer_length: Count = setting()

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        make_doc: Tokenizer,
        entities: EntitySource | None = None,
        scorer: Callable | None = question_score,
        **cfg: Any,
    ) -> None:
        super().__init__(vocab, model, name, scorer, **cfg)
        self.make_doc, self.entity_source = make_doc, entities or DocEnts()
        require("questions", "answers")

    def answer(
        self, questions: Iterable[Question], docs: Iterable[Doc], batch_size: int = 32
    ) -> list[Answers]:
        """Ask every question of every document.

        Returns for each question the best answers in all documents (of ``Answer.span.doc``), and
        the probability that none answers it. The documents keep their own questions and answers.
        Raises ModelError if a score is not a number.
        """
        self._check_ready()
        questions = list_of(questions, "questions", "questions")
        best: list[list[Placed]] = [[] for _ in questions]
        for numbers, query in every_question_of_every_doc(
            docs, questions, self.make_doc, self.entity_source, batch_size
        ):
            for i, found in zip(numbers, self._found(query, self._checked_scores(query))):
                best[i] = best_of([*best[i], *found], self.top_k)
        confidence = self._confidence
        return [
            scored(str(question), found, confidence, self.no_answer)
            for question, found in zip(questions, best)
        ]

    # Queries

    def _query(self, docs: Sequence[Doc]) -> QuestionQuery:
        return questions_of_docs(docs, self.make_doc, self.entity_source)

    # Prediction

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """As all components, but with fewer documents at a time if they have many questions."""
        for docs in batches_of_docs(stream, batch_size):
            yield from super().pipe(docs, batch_size=len(docs))

    def set_annotations(
        self, docs: Iterable[Doc], scores: tuple[QuestionQuery, AnswerScores]
    ) -> None:
        """Write ``Doc._.answers``: none where the question or the document has no pieces."""
        write_answers(docs, self._found(*scores), self._confidence, self.no_answer)

    def _found(self, query: QuestionQuery, scores: AnswerScores) -> list[list[Placed]]:
        """The best answers to each question of a query."""
        choice = Choice(self.top_k, self.max_answer_length, self.overlap_threshold)
        found = find_answers(scores, choice)
        return [[(query.docs[i], x) for x in answers] for i, answers in zip(query.of_doc, found)]

    def answers(self, examples: Iterable[Example]) -> ScoredAnswers:
        return question_answers(examples)

    def best_least_score(self, examples: Iterable[Example]) -> float | None:
        return best_least_score(examples)

    def _are_asked(self, examples: Sequence[Example]) -> bool:
        return are_asked(examples)

    # Training

    def _missing_input(self, query: QuestionQuery) -> str:
        return "" if len(query.questions) else f"has no question. {ADVICE}"

    def _annotated(self, examples: Iterable[Example]) -> Iterator[Example]:
        return (eg for eg in examples if is_asked(eg))

    def _targets(self, examples: Sequence[Example], query: QuestionQuery) -> Targets:
        counts = np.bincount(query.of_doc, minlength=len(examples))
        return answer_targets(examples, counts.tolist())

    def _loss(
        self, query: QuestionQuery, scores: AnswerScores, targets: Targets
    ) -> tuple[float, AnswerScores]:
        loss, d_logits = answer_loss(self.model.ops, scores, targets)
        return loss, scores._replace(logits=d_logits)

    def _find_limits(
        self, nlp: Language | None, get_examples: Callable[[], Iterable[Example]]
    ) -> dict[str, int]:
        return count_limits(self.name, self.model, self.cfg, get_examples(), self._query)
