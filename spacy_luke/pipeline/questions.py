"""Queries of ``luke_qa``: the questions of documents, and the entities of both."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from spacy.tokens import Doc

from ..annotations.questions import Question, get_questions
from ..errors import InputError
from ..layers.answer_scorer import QuestionQuery
from .entity_source import EntitySource

MakeDoc = Callable[[str], Doc]

_MAX_TOKENS = 1_000_000
"""Most tokens of a query, a token counted once per question about its document: tens of MiB."""


def questions_of_docs(
    docs: Sequence[Doc], make_doc: MakeDoc, entities: EntitySource
) -> QuestionQuery:
    """All questions of documents, in the order of the documents."""
    asked = [get_questions(doc) for doc in docs]
    of_doc = np.repeat(np.arange(len(docs)), [len(questions) for questions in asked])
    flat = [question for questions in asked for question in questions]
    return question_query(docs, flat, of_doc, make_doc, entities)


def every_question_of_every_doc(
    docs: Sequence[Doc], questions: Sequence[Question], make_doc: MakeDoc, entities: EntitySource
) -> Iterator[tuple[list[int], QuestionQuery]]:
    """Each question about each document, with the number of each query's questions. Many questions
    about long documents are several queries, to limit memory."""
    n_tokens = sum(len(doc) for doc in docs if isinstance(doc, Doc))
    size = max(1, _MAX_TOKENS // max(1, n_tokens))
    for low in range(0, len(questions), size):
        part = list(questions[low : low + size])
        of_doc = np.repeat(np.arange(len(docs)), len(part))
        numbers = list(range(low, low + len(part))) * len(docs)
        yield numbers, question_query(docs, part * len(docs), of_doc, make_doc, entities)


def question_query(
    docs: Sequence[Doc],
    questions: Sequence[Question],
    of_doc: np.ndarray,
    make_doc: MakeDoc,
    entities: EntitySource,
) -> QuestionQuery:
    """of_doc: (n_questions,) the document of each question. make_doc: from the text of one.

    Raises InputError if a document or a question has another type.
    """
    for doc in docs:
        if not isinstance(doc, Doc):
            raise InputError(f"A document is {doc!r}, not a Doc: make one with nlp.make_doc.")
    made: dict[str, Doc] = {}
    texts = []
    for question in questions:
        if isinstance(question, str):
            if question not in made:
                made[question] = make_doc(question)
            question = made[question]
        elif not isinstance(question, Doc):
            raise InputError(f"A question is {question!r}, not a string or a Doc.")
        texts.append(question)
    return QuestionQuery(docs, texts, of_doc, entities.find(docs), entities.find(texts))
