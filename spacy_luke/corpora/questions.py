"""A batcher that shows the questions about a document one by one, or a few at a time."""

import random
from collections.abc import Iterable, Iterator, Sequence

from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch, registry

from ..annotations.questions import (
    Offsets,
    answer_offsets,
    get_questions,
    has_answers,
    n_questions,
    set_answer_offsets,
    set_questions,
)
from ..validation import Count, Probability, check_settings
from .contexts import Batcher

_TRIES = 10  # to find another document
_BUFFER = 10_000
"""Documents whose questions are shuffled together."""


@registry.batchers("spacy-luke.split_questions.v1")
def split_questions(
    batcher: Batcher, questions: Count = 1, elsewhere: Probability = 0.0
) -> Batcher:
    """Make a batcher that splits the questions about each document, and shuffles them.

    Every question is asked in a sequence of its own, so a document with 20 of them is a batch of 20
    about one text. Split, a batch has questions about many texts.

    batcher: makes batches of the resulting examples, e.g. ``spacy.batch_by_words.v1``, which counts
        the words of documents only.
    questions: most questions of an example. Documents with fewer, or without any, stay as they are.
    elsewhere: probability that an example's questions are also asked of another document, where
        "no answer" is right. Data in which each question is about the document that answers it
        (SQuAD 1.1) teaches nothing else about documents without the answer. A document that
        contains the text of a gold answer is not asked.
    """
    arguments = {"questions": questions, "elsewhere": elsewhere}
    check_settings("split_questions", split_questions, arguments)
    return QuestionSplitter(batcher, questions, elsewhere)


class QuestionSplitter:
    """See :func:`split_questions`. Uses Python's ``random``, which ``spacy train`` seeds."""

    def __init__(self, batcher: Batcher, most: int, elsewhere: float):
        self.batcher, self.most, self.elsewhere = batcher, most, elsewhere

    def __call__(self, examples: Iterable[Example]) -> Iterator[list[Example]]:
        """One epoch's batches. Memory is bounded also if the corpus is streamed without end."""
        for buffered in minibatch(examples, _BUFFER):
            yield from self.batcher(self.split(buffered))

    def split(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Examples of at most ``questions`` questions, in random order."""
        parts: list[tuple[Example, list[int] | None]] = []
        examples = list(examples)
        for eg in examples:
            numbers = list(range(n_questions(eg.predicted)))
            if len(numbers) <= self.most:
                parts.append((eg, None))
                continue
            random.shuffle(numbers)
            parts.extend((eg, list(x)) for x in minibatch(numbers, self.most))
        random.shuffle(parts)
        for eg, chosen in parts:
            shown = eg if chosen is None else _with_questions(eg, chosen)
            yield shown
            if self.elsewhere and random.random() < self.elsewhere and has_answers(shown.reference):
                yield from self._elsewhere(shown, examples)

    def _elsewhere(self, eg: Example, examples: Sequence[Example]) -> Iterator[Example]:
        """The questions of an example, asked of another document; none if none was found, or if no
        gold answer tells which documents do not answer them."""
        reference = eg.reference
        golds = [reference.text[a:b] for x in answer_offsets(reference) for a, b, _ in x.answers]
        for _ in range(_TRIES if golds else 0):
            other = random.choice(examples)
            text = other.reference.text.lower()
            if text != reference.text.lower() and not any(x.lower() in text for x in golds):
                docs = other.predicted.copy(), other.reference.copy()
                for doc in docs:
                    set_questions(doc, get_questions(eg.predicted))
                set_answer_offsets(docs[1], [Offsets([], 1.0)] * n_questions(docs[1]))
                yield Example(*docs)
                return


def _with_questions(eg: Example, chosen: Sequence[int]) -> Example:
    predicted, reference = (_chosen(doc, chosen) for doc in (eg.predicted, eg.reference))
    return Example(predicted, reference)


def _chosen(doc: Doc, chosen: Sequence[int]) -> Doc:
    """A copy of a document with some of its questions, and their answers if it has any."""
    copy, questions = doc.copy(), get_questions(doc)
    chosen = [i for i in chosen if i < len(questions)]
    set_questions(copy, [questions[i] for i in chosen])
    if has_answers(doc):
        answers = answer_offsets(doc)
        set_answer_offsets(copy, [answers[i] for i in chosen])
    return copy
