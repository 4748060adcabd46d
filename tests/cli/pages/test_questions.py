"""Questions on the page: the list below the text, the marks in it, and the table of counts."""

import re

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations.questions import (
    ANSWERS,
    Answer,
    Answers,
    copy_questions,
)
from spacy_luke.cli.pages.page import make_page
from spacy_luke.cli.pages.questions import MAX_ANSWERS, show_questions
from spacy_luke.cli.pages.render import render
from spacy_luke.cli.pages.text import Entity, ShownAnswer, cut_text
from spacy_luke.errors import InputError
from spacy_luke.metrics.questions import question_score
from tests.cli.pages.page_data import EN, operations, read
from tests.pipeline.test_luke_qa import make, make_examples

TEXT = "Ada King wrote it in 1843 or 1844 in London ."
WORDS = TEXT.split(" ")


def answered(questions, predicted, golds=None, words=WORDS):
    """A predicted document and its reference, with answers as token ranges. Predicted scores are
    0.75, 0.375, ...; "no answer" has 0.25."""
    doc, reference = (Doc(EN.vocab, words=words) for _ in range(2))
    reference._.questions = doc._.questions = questions
    doc._.answers = [
        Answers(x, [Answer(doc[a:b], 0.75 / (i + 1)) for i, (a, b) in enumerate(places)], 0.25)
        for x, places in zip(questions, predicted, strict=True)
    ]
    if golds is not None:
        reference._.answers = [[reference[a:b] for a, b in places] for places in golds]
    return doc, reference


class Replay:
    """A component that writes the answers of documents with the same text."""

    def __init__(self):
        self.docs, self.cfg = {}, {}

    def __call__(self, doc):
        done = self.docs[doc.text]
        doc.user_data[ANSWERS] = done.user_data[ANSWERS]
        if done.ents:
            doc.ents = [Span(doc, x.start, x.end, label=x.label_) for x in done.ents]
        return doc


@spacy.Language.factory("test_answers", assigns=["doc._.answers"])
def make_replay(nlp, name):
    return Replay()


@spacy.Language.factory("test_answers_and_entities", assigns=["doc._.answers", "doc.ents"])
def make_both(nlp, name):
    return Replay()


def page_of(*pairs, factory="test_answers", limit=0, **settings):
    nlp = spacy.blank("en")
    nlp.vocab.strings.add("PER")
    pipe = nlp.add_pipe(factory)
    pipe.docs.update({doc.text: doc for doc, _ in pairs})
    pipe.cfg.update(settings)
    examples = [Example(Doc(nlp.vocab, words=[x.text for x in gold]), gold) for _, gold in pairs]
    for example in examples:
        copy_questions(example.reference, example.predicted)
    return make_page(nlp, examples, limit, "Test")


def mark(place, label="1", kind="plain"):
    return ShownAnswer(kind, label, "", place, 0.5, f"answer-{label}", f"question-{label}")


def marked(pieces):
    return [
        (x.line, x.text, [a.label for a in x.opens], [a.label for a in x.closes]) for x in pieces
    ]


def test_an_answer_is_numbered_where_it_starts():
    pieces = cut_text("Ada left in 1843", [], None, answers=[mark((12, 16), "2")])
    assert marked(pieces) == [("", "Ada left in ", [], []), ("one", "1843", ["2"], [])]


def test_answers_at_one_place_share_its_mark():
    answers = [mark((0, 3), "1"), mark((0, 3), "4", "agreed"), mark((0, 3), "1")]
    (piece,) = cut_text("Ada", [], None, answers=answers)
    assert marked([piece]) == [("one", "Ada", ["1", "4"], [])]
    assert [x.kind for x in piece.opens] == ["plain", "agreed"]


def test_the_end_of_an_answer_is_numbered_if_another_goes_on():
    pieces = cut_text("abcdef", [], None, answers=[mark((0, 4), "1"), mark((2, 6), "2")])
    assert marked(pieces) == [
        ("one", "ab", ["1"], []),
        ("more", "cd", ["2"], ["1"]),
        ("one", "ef", [], []),
    ]
    pieces = cut_text("abcdef", [], None, answers=[mark((2, 4), "2"), mark((0, 6), "1")])
    assert [x[3] for x in marked(pieces)] == [[], ["2"], []]
    pieces = cut_text("abcdef", [], None, answers=[mark((0, 3), "2"), mark((0, 6), "1")])
    assert marked(pieces)[0] == ("more", "abc", ["1", "2"], ["2"])  # the longest first
    pieces = cut_text("abcdef", [], None, answers=[mark((0, 3), "1"), mark((3, 6), "2")])
    assert [x[2:] for x in marked(pieces)] == [(["1"], []), (["2"], [])]  # they touch


def test_entities_and_answers_may_overlap():
    entities = [Entity(0, 8, "PER", 0.9)]
    answers = [mark((4, 13), "1"), mark((4, 8), "2", "missed")]
    pieces = cut_text("Ada King left", entities, [], answers=answers)
    assert [(x.kind, x.line, x.text) for x in pieces] == [
        ("spurious", "", "Ada "),
        ("spurious", "more", "King"),
        ("", "one", " left"),
    ]
    assert [len(x.tags) for x in pieces] == [0, 1, 0]
    (piece,) = cut_text("Ada", [], None, answers=[mark((0, 3), kind="missed")])
    assert piece.line == "missed"


def test_an_answer_outside_the_text_is_not_marked():
    (piece,) = cut_text("Ada", [], None, answers=[mark(None)])
    assert marked([piece]) == [("", "Ada", [], [])]
    assert cut_text("", [], None, answers=[mark(None)]) == []


def test_kinds_of_questions():
    questions = ["right", "partly", "withheld", "none", "invented"]
    predicted = [[(0, 2)], [(0, 2)], [], [], [(5, 6)]]
    golds = [[(0, 2)], [(0, 1)], [(5, 6)], [], []]
    shown = show_questions(*answered(questions, predicted, golds), "q")
    assert [(x.text, x.kind) for x in shown] == [
        ("right", "agreed"),
        ("partly", "spurious"),
        ("withheld", "missed"),
        ("none", "agreed"),
        ("invented", "spurious"),
    ]
    assert [x.f1 for x in shown] == [1.0, pytest.approx(2 / 3), 0.0, 1.0, 0.0]
    assert [[x.text for x in row.gold] for row in shown] == [[], ["Ada"], ["1843"], [], []]
    assert [x.no_answer for x in shown] == [0.25] * 5
    assert [[(x.kind, x.text, x.score) for x in row.answers] for row in shown[:2]] == [
        [("agreed", "Ada King", 0.75)],
        [("spurious", "Ada King", 0.75)],
    ]
    assert [x.kind for x in shown[1].gold] == ["missed"]


def test_without_annotation_nothing_is_right_or_wrong():
    (shown,) = show_questions(*answered(["Who ?"], [[(0, 2)]]), "q")
    assert (shown.kind, shown.f1, shown.gold) == ("plain", None, [])
    assert [x.kind for x in shown.answers] == ["plain"]


def test_further_answers_are_never_wrong_and_may_be_right():
    predicted = [[(0, 1), (0, 2), (5, 6)]]
    (shown,) = show_questions(*answered(["Who ?"], predicted, [[(0, 2)]]), "q")
    assert [(x.label, x.kind) for x in shown.answers] == [
        ("1", "spurious"),
        ("1.2", "agreed"),
        ("1.3", "plain"),
    ]
    assert shown.gold == [shown.answers[1]]  # marked once
    many = [[(i, i + 1) for i in range(MAX_ANSWERS + 2)]]
    (shown,) = show_questions(*answered(["Who ?"], many), "q")
    assert (len(shown.answers), shown.n_others) == (MAX_ANSWERS, 2)


def test_gold_answers_are_listed_once_per_place():
    golds = [[(5, 6), (5, 6), (4, 6)]]
    (shown,) = show_questions(*answered(["When ?"], [[]], golds), "q")
    assert [(x.text, x.place, x.label) for x in shown.gold] == [
        ("1843", (21, 25), "1"),
        ("in 1843", (18, 25), "1"),
    ]
    assert len({x.id for x in shown.gold}) == 2


def test_gold_answers_of_another_text_are_listed_without_a_place():
    doc, reference = answered(["When ?"], [[]], [[(5, 6)]])
    other = Doc(EN.vocab, words=["It", *WORDS])
    other.user_data.update(doc.user_data)
    (shown,) = show_questions(other, reference, "q")
    assert [(x.text, x.place) for x in shown.gold] == [("1843", None)]


def test_answers_that_were_not_set_count_as_none():
    doc, reference = answered(["When ?"], [[]], [[(5, 6)]])
    del doc.user_data[ANSWERS]
    (shown,) = show_questions(doc, reference, "q")
    assert (shown.kind, shown.no_answer) == ("missed", 1.0)


def test_the_page_counts_questions_as_the_metric_does():
    golds = [[(0, 2)], [(0, 1)], [(5, 6)], [], []]
    first = answered(list("abcde"), [[(0, 2)], [(0, 2)], [], [], [(5, 6)]], golds)
    words = ["It", *WORDS]
    second = answered(["f", "g"], [[(1, 3)], []], [[(1, 3)], []], words)
    bare = answered(["h"], [[(0, 2)]], None, ["Well", *WORDS])
    page = page_of(first, second, bare, limit=1)
    scores = question_score([Example(*first), Example(*second)])
    every, answerable, none = page.questions
    assert [every.questions, every.answered, every.right] == [7, 4, 4]
    assert [answerable.questions, answerable.answered, answerable.right] == [4, 3, 2]
    assert [none.questions, none.answered, none.right] == [3, 1, 2]
    assert [every.exact, every.f1] == [scores["qa_em"], scores["qa_f1"]]
    assert [answerable.exact, answerable.f1] == [
        scores["qa_answerable_em"],
        scores["qa_answerable_f1"],
    ]
    assert none.exact == none.f1 == scores["qa_unanswerable"]
    (shown,) = page.documents
    assert (shown.n_right, shown.n_compared) == (2, 5)
    text = read(render(page))
    assert "2 of 5 questions right" in text and "answered of 7" in text
    assert "57.1exact match" in text and "Predicted and annotated answers of 3 documents" in text
    assert re.search(r"without an answer ?3 ?1 ?2 ?66.7 ?66.7", text)


def test_without_gold_answers_nothing_is_counted():
    page = page_of(answered(["Who ?"], [[(0, 2)]]))
    assert page.questions == [] and page.compared == []
    text = read(render(page))
    assert "Predictions for 1 document." in text and "Ada King 0.75" in text
    assert "exact match" not in text and "questions right" not in text


def test_other_questions_than_those_of_the_reference_are_an_error():
    doc, reference = answered(["Who ?"], [[(0, 2)]], [[(0, 2)]])
    nlp = spacy.blank("en")
    nlp.add_pipe("test_answers").docs[doc.text] = doc
    example = Example(Doc(nlp.vocab, words=WORDS), reference)
    example.predicted._.questions = ["When ?"]
    with pytest.raises(InputError, match="as question 0 'When"):
        make_page(nlp, [example], 0, "Test")


def test_numbers_and_answers_lead_to_each_other():
    golds = [[(0, 2)], [(0, 1)]]
    html = render(page_of(answered(["Who ?", "Whose ?"], [[(0, 2)], [(0, 2), (5, 6)]], golds)))
    read(html)  # all addresses are ids of the page
    links = dict(re.findall(r'id="(question-1-[\w-]+)" href="#([\w-]+)"', html))
    assert links == {
        "question-1-1-answer-1": "question-1-1",
        "question-1-2-answer-1": "question-1-2",
        "question-1-2-answer-2": "question-1-2",
        "question-1-2-gold-1": "question-1-2",
    }
    assert all(f'href="#{name}"' in html and f'<li id="{links[name]}"' in html for name in links)
    text = read(html)
    assert "Who ? Ada King 0.75 no answer" in text and "Ada King 0.75 1843 0.38" in text
    assert "F1 66.7 right: Ada" in text and "no answer 0.25" in text


def test_only_scored_no_answers_have_a_number():
    pair = answered(["Who ?", "Why ?"], [[(0, 2)], []])
    text = read(render(page_of(pair, no_answer=False)))
    assert "no answer" in text and "no answer 0" not in text
    assert text.count("no answer 0.25") == 0
    assert read(render(page_of(pair, no_answer=True))).count("no answer 0.25") == 2


def test_a_pipeline_that_only_answers_does_not_speak_of_entities():
    html = render(page_of(answered(["Who ?"], [[(0, 2)]], [[(0, 2)]])))
    text = read(html)
    assert "not annotated" not in text and "LABEL" not in text and "entities" not in text
    doc, reference = answered(["Who ?"], [[(0, 2)]], [[(0, 2)]])
    reference.ents = [Span(reference, 0, 2, label="PER")]
    page = page_of((doc, reference))
    assert page.entities == "given" and "The entities are given" in read(render(page))


def test_a_page_without_questions_does_not_speak_of_them():
    html = render(page_of(answered([], [])))
    assert "uestion" not in read(html) and 'class="questions"' not in html


def test_what_a_pipeline_does_not_write_is_not_asked():
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ada"}])
    _, reference = answered(["Who ?"], [[]], [[(0, 2)]])
    example = Example(Doc(nlp.vocab, words=WORDS), reference)
    copy_questions(reference, example.predicted)
    page = make_page(nlp, [example], 0, "Test")
    assert page.questions == [] and "Who ?" not in read(render(page))


def test_documents_with_entities_and_without_questions_stand_beside_others():
    doc, reference = answered(["Who ?"], [[(0, 3)]], [[(0, 2)]])
    for x in (doc, reference):
        x.ents = [Span(x, 0, 2, label="PER")]
    page = page_of(
        (doc, reference),
        answered([], [], words=["Well", "."]),
        factory="test_answers_and_entities",
    )
    html = render(page)
    text = read(html)
    assert html.count('class="questions"') == 1 and "entities not annotated" in text
    assert re.search(r'<mark class="agreed c\d+ over-more">Ada King</mark>', html)
    assert page.compared == ["entities", "answers"]


def test_text_of_questions_and_answers_is_escaped():
    words = ["<b>Ada</b>", "&amp;", "x"]
    pair = answered(["<i>Who</i> & why ?"], [[(0, 2)]], [[(0, 1)]], words)
    html = render(page_of(pair))
    assert "<b>Ada" not in html and "<i>Who" not in html
    assert "<i>Who</i> & why ?" in read(html) and "<b>Ada</b> &amp; 0.75" in read(html)


def test_empty_questions_and_repeated_ones_of_luke_qa(bert_dir):
    nlp = make(bert_dir)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.get_pipe("luke_qa").score_threshold = 0.0
    questions = ["Who was born ?", "", "Who was born ?", "   "]
    for example in examples:
        for doc in (example.reference, example.predicted):
            doc._.questions = questions
        example.reference._.answers = [[example.reference[:1]], [], [example.reference[:1]], []]
    page = make_page(nlp, examples, 0, "Test")
    first, empty, again, blank = page.documents[0].questions
    assert first.answers[0].place == again.answers[0].place
    assert first.answers[0].score == pytest.approx(again.answers[0].score)
    (piece,) = [x for x in page.documents[0].passages[0].pieces if len(x.opens) > 1][:1]
    assert [x.label for x in piece.opens] == ["1", "3"]
    assert (empty.answers, empty.kind, empty.no_answer) == ([], "agreed", 1.0) and not blank.answers
    text = read(render(page))
    assert text.count("(empty)") == 2 * len(examples)
    assert [curve.component for curve in page.curves] == ["luke_qa"]
    assert ("luke_qa.score_threshold", "0") in page.meta


def test_work_grows_with_the_questions():
    """Four times the questions and text, five times the work."""

    def show(n):
        words = ["a"] * n
        rows = [[(i, i + 1)] for i in range(n)]
        doc, reference = answered(["Who ?"] * n, rows, rows, words)
        shown = operations(lambda: show_questions(doc, reference, "q"))
        answers = [x for question in show_questions(doc, reference, "q") for x in question.marks]
        text = doc.text
        return shown + operations(lambda: cut_text(text, [], None, answers=answers))

    assert show(200) < 5 * show(50)
