"""``Doc._.questions`` and ``Doc._.answers``: questions about a document and their answers."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from ..errors import InputError
from .given import list_of, probability, row_of, span_of
from .span_values import data_of

# The form of spaCy's own keys for custom attributes of documents, so DocBin keeps them.
QUESTIONS = ("._.", "luke_questions", None, None)
ANSWERS = ("._.", "luke_answers", None, None)

_FORM = "a span, or (span, score)"

Question = str | Doc
"""The text of a question, or a document with entities of its own."""


class Answer(NamedTuple):
    """score: a probability, comparable between windows and documents."""

    span: Span
    score: float = 1.0


class Answers(NamedTuple):
    """The answers to a question, best first. no_answer: the probability that the document does not
    answer it. In a gold document all ``answers`` are right; none means that there is none."""

    question: str
    answers: tuple[Answer, ...]
    no_answer: float

    @property
    def best(self) -> Span | None:
        """The best answer; None if there is none."""
        return self.answers[0].span if self.answers else None


class Offsets(NamedTuple):
    """Answers by characters (start, end, score), for any tokenisation; best first."""

    answers: list[tuple[int, int, float]]
    no_answer: float


def get_questions(doc: Doc) -> tuple[Question, ...]:
    """The questions about a document, in the order in which they were set."""
    stored = data_of(doc).get(QUESTIONS, ())
    return tuple(x if isinstance(x, str) else _unpack(doc.vocab, x) for x in stored)


def set_questions(doc: Doc, questions: Iterable[Question]) -> None:
    """Replace the questions about a document, and remove the answers.

    Of a question that is a document, words, spaces and entities (with ``kb_id_``) are kept. Equal
    questions are allowed. Raises InputError for one string instead of a list, and for other types.
    """
    stored = []
    for question in list_of(questions, "Doc._.questions", "questions"):
        if not isinstance(question, str | Doc):
            raise InputError(f"A question is {question!r}, not a string or a Doc.")
        stored.append(question if isinstance(question, str) else _pack(question))
    data_of(doc).pop(ANSWERS, None)
    data_of(doc)[QUESTIONS] = stored


def copy_questions(source: Doc, target: Doc) -> None:
    """Give a document the questions of another one, and no answers."""
    clear_questions(target)
    if QUESTIONS in data_of(source):
        data_of(target)[QUESTIONS] = list(data_of(source)[QUESTIONS])


def change_questions(doc: Doc, change: Callable[[str], str]) -> None:
    """Change the texts of the questions, or the words of those that are documents. Answers remain.

    change: a text to one with the same number of characters."""
    stored = data_of(doc).get(QUESTIONS)
    if stored:
        data_of(doc)[QUESTIONS] = [
            change(x) if isinstance(x, str) else {**x, "words": [change(y) for y in x["words"]]}
            for x in stored
        ]


def clear_questions(doc: Doc) -> None:
    """Remove all questions and answers from a document."""
    data_of(doc).pop(QUESTIONS, None)
    clear_answers(doc)


def n_questions(doc: Doc) -> int:
    """How many questions about a document were set."""
    return len(data_of(doc).get(QUESTIONS, ()))


def question_texts(doc: Doc) -> list[str]:
    """The texts of the questions about a document."""
    return [str(x) for x in get_questions(doc)]


def has_answers(doc: Doc) -> bool:
    """Whether the answers of a document were set, including to none."""
    return ANSWERS in data_of(doc)


def clear_answers(doc: Doc) -> None:
    """Remove all answers from a document. Its questions remain."""
    data_of(doc).pop(ANSWERS, None)


def get_answers(doc: Doc) -> tuple[Answers, ...]:
    """The answers to each of ``Doc._.questions``; empty if they were not set.

    An answer that begins or ends inside a token becomes the span that contains it.
    """
    return tuple(
        Answers(
            text,
            tuple(Answer(_span(doc, start, end), score) for start, end, score in offsets.answers),
            offsets.no_answer,
        )
        for text, offsets in zip(question_texts(doc), answer_offsets(doc))
    )


def answer_offsets(doc: Doc) -> list[Offsets]:
    """The answers to each question by characters; empty if they were not set."""
    stored = data_of(doc).get(ANSWERS, ())
    return [Offsets([(a, b, x) for a, b, x in answers], no) for answers, no in stored]


def predicted_offsets(doc: Doc) -> list[Offsets]:
    """The answers to each question of a predicted document; if they were not set, none has any."""
    return answer_offsets(doc) or [Offsets([], 1.0)] * n_questions(doc)


def check_same_questions(predicted: Doc, gold: Doc) -> None:
    """Raise InputError if a predicted document has other questions than its reference."""
    wanted, asked = question_texts(gold), question_texts(predicted)
    if wanted == asked:
        return
    name = gold.user_data.get("title") or gold.text[:60]
    if not asked:
        difference = f"none of the {len(wanted)} questions of its reference"
    elif len(asked) != len(wanted):
        difference = f"{len(asked)} questions, its reference {len(wanted)}"
    else:
        number, pair = next((i, x) for i, x in enumerate(zip(asked, wanted)) if x[0] != x[1])
        difference = f"as question {number} {pair[0]!r}, its reference {pair[1]!r}"
    raise InputError(
        f"The predicted document {name!r} has {difference}. Set Doc._.questions to the same "
        "questions; spacy-luke.PresetEntsCorpus.v1 and 'spacy luke evaluate' do so."
    )


def set_answers(doc: Doc, answers: Iterable[Answers | Iterable[Any]]) -> None:
    """Replace the answers. There is one item per question: :class:`Answers`, or a list of spans or
    (span, score), best first. An empty list means that there is no answer.

    Raises InputError if there are more or fewer items than questions, for an item of another type
    or with the answers to another question, for a span that is empty or of another document, and
    for a score that is not a probability.
    """
    rows = []
    items = list_of(answers, "Doc._.answers", "the answers to each question")
    for item, text in zip(items, question_texts(doc)):
        if isinstance(item, Answers) and item.question != text:
            raise InputError(
                f"An item of Doc._.answers answers {item.question!r}, but the question there is "
                f"{text!r}. The items must be in the order of Doc._.questions."
            )
    for item in items:
        given = item.answers if isinstance(item, Answers) else item
        pairs = [
            Answer(x) if isinstance(x, Span) else row_of(x, Answer, "An answer", _FORM)
            for x in list_of(given, "An item of Doc._.answers", "spans, empty if there is none")
        ]
        spans = [span_of(doc, x.span, "An answer") for x in pairs]
        no_answer = item.no_answer if isinstance(item, Answers) else float(not pairs)
        found = [(x.start_char, x.end_char, y.score) for x, y in zip(spans, pairs)]
        rows.append(Offsets(found, no_answer))
    set_answer_offsets(doc, rows)


def set_answer_offsets(doc: Doc, answers: Sequence[Offsets]) -> None:
    """Replace the answers, given by characters; see :func:`set_answers`."""
    length = len(doc.text)
    if len(answers) != n_questions(doc):
        raise InputError(
            f"Doc._.answers needs one item for each of the {n_questions(doc)} questions, got "
            f"{len(answers)}. Set Doc._.questions first."
        )
    for item in answers:
        for start, end, score in item.answers:
            if not 0 <= start < end <= length:
                raise InputError(
                    f"An answer has the characters {start} to {end} of a text of {length}."
                )
            probability(score, "The score of an answer")
        probability(item.no_answer, "The score of no answer")
    # Lists, because DocBin and bytes do not keep tuples.
    data_of(doc)[ANSWERS] = [
        [[[int(a), int(b), float(x)] for a, b, x in item.answers], float(item.no_answer)]
        for item in answers
    ]


def _span(doc: Doc, start: int, end: int) -> Span:
    span = doc.char_span(start, end, alignment_mode="expand")
    assert span is not None  # offsets are checked when they are set
    return span


def _pack(question: Doc) -> dict[str, Any]:
    return {
        "words": [token.text for token in question],
        "spaces": [bool(token.whitespace_) for token in question],
        "ents": [[x.start, x.end, x.label_, x.kb_id_] for x in question.ents],
    }


def _unpack(vocab: Vocab, stored: dict[str, Any]) -> Doc:
    doc = Doc(vocab, words=stored["words"], spaces=stored["spaces"])
    doc.ents = [Span(doc, a, b, label=label, kb_id=kb) for a, b, label, kb in stored["ents"]]
    return doc
