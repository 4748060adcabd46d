"""Queries of ``luke_qa``: the questions of documents, and the entities of both."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from spacy.tokens import Doc
from spacy.util import minibatch

from ..annotations.questions import Question, get_questions, n_questions
from ..errors import InputError
from ..layers.answer_scorer import QuestionQuery
from .entity_source import EntitySource
from .tokenizer import Tokenizer

_MAX_TOKENS = 1_000_000
"""Most tokens of a query, a token counted once per question about its document: 100 MiB."""


def batches_of_docs(docs: Iterable[Doc], most: int) -> Iterator[list[Doc]]:
    """Batches of at most ``most`` documents, of fewer if they would have too many tokens for a
    query."""
    batch: list[Doc] = []
    n_tokens = 0
    for doc in docs:
        n = len(doc) * n_questions(doc)
        if batch and n_tokens + n > _MAX_TOKENS:
            yield batch
            batch, n_tokens = [], 0
        batch.append(doc)
        n_tokens += n
        if len(batch) >= most:  # not with the next document: it may wait for these answers
            yield batch
            batch, n_tokens = [], 0
    if batch:
        yield batch


def questions_of_docs(
    docs: Sequence[Doc], make_doc: Tokenizer, entities: EntitySource
) -> QuestionQuery:
    """All questions of documents, in the order of the documents."""
    asked = [get_questions(doc) for doc in docs]
    of_doc = np.repeat(np.arange(len(docs)), [len(questions) for questions in asked])
    flat = [question for questions in asked for question in questions]
    return _query(docs, question_docs(flat, make_doc), of_doc, entities)


def every_question_of_every_doc(
    docs: Iterable[Doc],
    questions: Sequence[Question],
    make_doc: Tokenizer,
    entities: EntitySource,
    batch_size: int,
) -> Iterator[tuple[list[int], QuestionQuery]]:
    """Each question about each document, with the number of each query's questions. Many questions
    about long documents are several queries, to limit memory.

    batch_size: most documents of a query. Raises InputError for an invalid one, and if a document
    or a question has another type.
    """
    if not isinstance(batch_size, int) or batch_size < 1:
        raise InputError(f"batch_size is {batch_size!r}, not a positive integer.")
    if not isinstance(docs, Iterable):
        raise InputError(f"docs is {docs!r}; give documents.")
    asked = question_docs(questions, make_doc)
    for batch in minibatch(docs, batch_size):
        for doc in batch:
            if not isinstance(doc, Doc):
                raise InputError(f"A document is {doc!r}, not a Doc: make one with nlp.make_doc.")
        size = max(1, _MAX_TOKENS // max(1, sum(map(len, batch))))
        for low in range(0, len(asked), size):
            part = asked[low : low + size]
            of_doc = np.repeat(np.arange(len(batch)), len(part))
            numbers = list(range(low, low + len(part))) * len(batch)
            yield numbers, _query(batch, part * len(batch), of_doc, entities)


def question_docs(questions: Iterable[Question], make_doc: Tokenizer) -> list[Doc]:
    """Questions as documents; equal texts are the same document. make_doc: from a text.

    Raises InputError if a question has another type.
    """
    made: dict[str, Doc] = {}
    docs = []
    for question in questions:
        if isinstance(question, str):
            if question not in made:
                made[question] = make_doc(question)
            question = made[question]
        elif not isinstance(question, Doc):
            raise InputError(f"A question is {question!r}, not a string or a Doc.")
        docs.append(question)
    return docs


def _query(
    docs: Sequence[Doc], questions: Sequence[Doc], of_doc: np.ndarray, entities: EntitySource
) -> QuestionQuery:
    """of_doc: (n_questions,) the document of each question."""
    different = list({id(x): x for x in questions}.values())
    found = dict(zip(map(id, different), entities.find(different)))
    of_questions = [found[id(x)] for x in questions]
    return QuestionQuery(docs, questions, of_doc, entities.find(docs), of_questions)
