"""Documents with questions, for the tests of luke_qa."""

import numpy as np
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import fix_random_seed

from tests.conftest import LANGUAGE

TEXTS = {
    "Ada Lovelace was born in London .": {"Who was born ?": "Ada Lovelace", "Where ?": "London"},
    "Tokyo is the capital of Japan .": {"What is the capital ?": "Tokyo", "Where ?": "Japan"},
    "Beyoncé sang in Paris .": {"Who sang ?": "Beyoncé", "What is the capital ?": None},
    "She said : of course !": {"Where ?": None, "Who sang ?": None},
}
LONG = " ".join(["She said : of course !"] * 40 + ["Tokyo is the capital of Japan ."])


def make(directory, lang=LANGUAGE, **config):
    fix_random_seed(0)
    nlp = spacy.blank(lang)
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(directory)}
    model = {"encoder": {**encoder, **config.pop("encoder", {})}, **config.pop("model", {})}
    nlp.add_pipe("luke_qa", config={"model": model, "scorer": None, **config})
    return nlp


def asked(nlp, text: str, *questions) -> Doc:
    doc = Doc(nlp.vocab, words=text.split()) if text else Doc(nlp.vocab)
    doc._.questions = questions
    return doc


def make_examples(nlp, texts=TEXTS) -> list[Example]:
    examples = []
    for text, questions in texts.items():
        reference = asked(nlp, text, *questions)
        answers = []
        for answer in questions.values():
            start = text.index(answer) if answer else 0
            answers.append([reference.char_span(start, start + len(answer))] if answer else [])
        reference._.answers = answers
        examples.append(Example(asked(nlp, text, *questions), reference))
    return examples


def texts_of(answers) -> list[str | None]:
    return [None if x.best is None else x.best.text for x in answers]


def scores_of(docs) -> list[tuple]:
    return [
        (x.question, [(y.span.start, y.span.end, y.score) for y in x.answers], x.no_answer)
        for doc in docs
        for x in doc._.answers
    ]


def close(one, other) -> None:
    places = [[(x[0], [y[:2] for y in x[1]]) for x in scores] for scores in (one, other)]
    assert places[0] == places[1]
    for a, b in zip(one, other):
        np.testing.assert_allclose([y[2] for y in a[1]], [y[2] for y in b[1]], atol=1e-6)
        np.testing.assert_allclose(a[2], b[2], atol=1e-6)


def rows_of(answers) -> list[tuple]:
    """Answers of several documents, as :func:`scores_of`."""
    return [
        (x.question, [(id(y.span.doc), (y.span.start, y.span.end), y.score) for y in x.answers])
        + (x.no_answer,)
        for x in answers
    ]
