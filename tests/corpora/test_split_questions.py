"""Questions about one document are shown in different batches, in another order in each epoch."""

import random
from collections import Counter

import pytest
import spacy
from spacy.training import Example
from spacy.util import registry

from spacy_luke.annotations.questions import n_questions, question_texts
from spacy_luke.corpora.questions import split_questions
from spacy_luke.errors import ConfigError

NLP = spacy.blank("en")


def examples(*numbers: int) -> list[Example]:
    """Documents with this many questions; the answer to the n-th is the n-th token."""
    found = []
    for doc_number, n in enumerate(numbers):
        gold = NLP(" ".join("abcdefghij"))
        gold._.questions = [f"{doc_number}.{i}" for i in range(n)]
        gold._.answers = [[gold[i : i + 1]] if i else [] for i in range(n)]
        predicted = NLP(gold.text)
        predicted._.questions = gold._.questions
        found.append(Example(predicted, gold))
    return found


def split(data, questions=1, size=3):
    batcher = registry.batchers.get("spacy.batch_by_sequence.v1")(size=size)
    return list(split_questions(batcher, questions)(data))


def test_every_question_is_shown_once_with_its_answer():
    random.seed(0)
    shown = [eg for batch in split(examples(4, 0, 1, 7)) for eg in batch]
    asked = [x for eg in shown for x in question_texts(eg.predicted)]
    expected = [f"{doc}.{i}" for doc, n in enumerate((4, 0, 1, 7)) for i in range(n)]
    assert sorted(asked) == sorted(expected)
    assert Counter(n_questions(eg.predicted) for eg in shown) == {1: 12, 0: 1}
    for eg in shown:
        assert question_texts(eg.predicted) == question_texts(eg.reference)
        assert eg.predicted._.answers == ()
        for question, answers in zip(question_texts(eg.reference), eg.reference._.answers):
            number = int(question.split(".")[1])
            assert answers.best is None if not number else answers.best.text == "abcdefghij"[number]


def test_several_at_a_time():
    random.seed(0)
    shown = [eg for batch in split(examples(7, 2), questions=3) for eg in batch]
    assert sorted(n_questions(eg.predicted) for eg in shown) == [1, 2, 3, 3]


def test_the_order_is_another_in_each_epoch_and_the_data_stays():
    random.seed(0)
    data = examples(5, 5)
    orders = [
        [question_texts(eg.predicted)[0] for batch in split(data) for eg in batch] for _ in range(3)
    ]
    assert len({tuple(x) for x in orders}) == 3
    assert [n_questions(eg.predicted) for eg in data] == [5, 5]


def test_batches_mix_documents():
    random.seed(0)
    batches = split(examples(6, 6, 6), size=6)
    documents = [{question_texts(eg.predicted)[0][0] for eg in batch} for batch in batches]
    assert all(len(x) > 1 for x in documents)


def test_questions_are_also_asked_of_documents_without_the_answer():
    random.seed(0)
    data = examples(3, 3, 3)
    other = NLP("Nothing of it 1 2 3")  # no token of the others
    data.append(Example(other, NLP(other.text)))
    batcher = registry.batchers.get("spacy.batch_by_sequence.v1")(size=4)
    shown = [eg for batch in split_questions(batcher, 1, 1.0)(data) for eg in batch]
    elsewhere = [eg for eg in shown if eg.reference.text == other.text]
    answered = [eg for eg in shown if n_questions(eg.predicted) and eg not in elsewhere]
    # Those with an answer can only be asked there; those without also of the other documents.
    assert len(elsewhere) >= 6 + 1
    for eg in elsewhere[1:]:
        assert question_texts(eg.predicted) == question_texts(eg.reference)
    assert all(x.best is None for eg in elsewhere for x in eg.reference._.answers)
    assert sum(x.best is not None for eg in answered for x in eg.reference._.answers) == 6
    assert n_questions(other) == 0


def test_invalid_settings():
    with pytest.raises(ConfigError, match="questions"):
        split_questions(lambda x: x, 0)
    with pytest.raises(ConfigError, match="elsewhere"):
        split_questions(lambda x: x, 1, 1.5)
