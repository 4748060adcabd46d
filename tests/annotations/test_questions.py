"""``Doc._.questions`` and ``Doc._.answers``."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span

from spacy_luke.annotations.questions import (
    Answers,
    Offsets,
    answer_offsets,
    clear_answers,
    has_answers,
    set_answer_offsets,
)
from spacy_luke.errors import InputError

NLP = spacy.blank("en")


def asked(*questions) -> Doc:
    doc = NLP("Ada Lovelace met Babbage in 1833.")
    doc._.questions = questions
    return doc


def test_questions_are_kept_in_order_also_equal_ones():
    doc = asked("Who?", "When?", "Who?")
    assert doc._.questions == ("Who?", "When?", "Who?")
    assert asked()._.questions == ()


def test_a_question_may_have_entities():
    question = NLP("Whom did Ada meet?")
    question.ents = [Span(question, 2, 3, label="PERSON", kb_id="Q7259")]
    (stored,) = asked(question)._.questions
    assert stored.text == question.text
    assert [(x.text, x.label_, x.kb_id_) for x in stored.ents] == [("Ada", "PERSON", "Q7259")]


@pytest.mark.parametrize("questions", ["Who?", NLP("Who?"), None, [3], [None]])
def test_what_is_not_a_list_of_questions_is_an_error(questions):
    with pytest.raises(InputError, match="questions|question"):
        NLP("Ada")._.questions = questions


def test_answers_are_spans_best_first():
    doc = asked("Whom?", "Where?")
    assert not has_answers(doc) and doc._.answers == ()
    doc._.answers = [[(doc[3:4], 0.75), doc[0:2]], []]
    first, second = doc._.answers
    assert (first.question, first.best.text, first.no_answer) == ("Whom?", "Babbage", 0.0)
    found = [(x.span.text, x.score) for x in first.answers]
    assert found == [("Babbage", 0.75), ("Ada Lovelace", 1.0)]
    assert (second.answers, second.best, second.no_answer) == ((), None, 1.0)


def test_answers_can_be_set_as_they_were_read():
    doc = asked("Whom?")
    doc._.answers = [Answers("Whom?", [(doc[3:4], 0.5)], 0.25)]
    answers = doc._.answers
    doc._.answers = answers
    assert doc._.answers == answers
    assert answer_offsets(doc) == [Offsets([(17, 24, 0.5)], 0.25)]


def test_an_answer_inside_a_token_keeps_its_characters():
    doc = asked("Whose first syllable?")
    set_answer_offsets(doc, [Offsets([(4, 8, 1.0)], 0.0)])
    assert answer_offsets(doc)[0].answers == [(4, 8, 1.0)]
    assert doc._.answers[0].best.text == "Lovelace"


def test_new_questions_remove_answers():
    doc = asked("Whom?")
    doc._.answers = [[doc[3:4]]]
    doc._.questions = ["Where?"]
    assert not has_answers(doc)
    doc._.answers = [[]]
    clear_answers(doc)
    assert not has_answers(doc) and doc._.questions == ("Where?",)


def test_answers_to_another_question_are_an_error():
    doc = NLP("Ada sang and Bob danced")
    doc._.questions = ["Who sang?", "Who danced?"]
    doc._.answers = [[doc[0:1]], [doc[3:4]]]
    answers = doc._.answers
    doc._.questions = ["Who danced?", "Who sang?"]
    with pytest.raises(InputError, match="answers 'Who sang[?]', but the question there is 'Who d"):
        doc._.answers = answers
    assert doc._.answers == ()
    doc._.answers = answers[::-1]
    assert [x.best.text for x in doc._.answers] == ["Bob", "Ada"]


def test_invalid_answers_are_errors():
    doc, other = asked("Whom?"), asked("Whom?")
    for answers in ([], [[], []]):
        with pytest.raises(InputError, match="one item for each of the 1 questions"):
            doc._.answers = answers
    for span in (other[0:1], doc[1:1]):
        with pytest.raises(InputError, match="not a span of the document|an empty span"):
            doc._.answers = [[span]]
    for item in (doc[0:1], "Ada", None):
        with pytest.raises(InputError, match="give a list of spans, empty if there is none"):
            doc._.answers = [item]
    for answers in (None, 5, "Ada", doc[0:1]):
        with pytest.raises(InputError, match="give a list of the answers to each question"):
            doc._.answers = answers
    for answer in ("Ada", 3, (doc[0:1], 1.0, 2), ()):
        with pytest.raises(InputError, match=r"not a span, or \(span, score\)"):
            doc._.answers = [[answer]]
    for score in ("high", None, float("nan"), 7, -0.1):
        with pytest.raises(InputError, match="score of an answer is .*, not a probability"):
            doc._.answers = [[(doc[0:1], score)]]
        with pytest.raises(InputError, match="score of no answer is .*, not a probability"):
            doc._.answers = [Answers("Whom?", (), score)]
    with pytest.raises(InputError, match="characters 3 to 99"):
        set_answer_offsets(doc, [Offsets([(3, 99, 1.0)], 0.0)])


def test_saved_documents_keep_both():
    question = NLP("Whom did Ada meet?")
    doc = asked("When?", question)
    doc._.answers = [[(doc[5:6], 0.5)], []]
    stored = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (again,) = DocBin().from_bytes(stored).get_docs(NLP.vocab)
    assert [str(x) for x in again._.questions] == ["When?", question.text]
    assert answer_offsets(again) == answer_offsets(doc)
