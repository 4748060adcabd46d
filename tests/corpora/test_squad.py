"""Paragraphs of SQuAD become documents with questions and answers by characters."""

import json
import re

import pytest

from spacy_luke.annotations.questions import answer_offsets, has_answers
from spacy_luke.corpora.squad import read_squad
from spacy_luke.errors import ConfigError, CorpusError

TEXT = "Ada King wrote it in mid-1843. Ada was 27."


def question(text="Who?", *answers, **more):
    """answers: texts at their first place, or (text, offset)."""
    pairs = [(x, TEXT.index(x)) if isinstance(x, str) else x for x in answers]
    found = [{"text": a, "answer_start": b} for a, b in pairs]
    return {"id": "q1", "question": text, "answers": found, **more}


def squad(*questions, context=TEXT, title="Ada_Lovelace"):
    paragraph = {"context": context, "qas": list(questions)}
    article = {"title": title, "paragraphs": [paragraph]}
    return json.dumps({"version": "v2.0", "data": [article]})


def texts(doc):
    return [[doc.text[a:b] for a, b, _ in x.answers] for x in answer_offsets(doc)]


def test_a_paragraph_is_a_document_with_questions_and_answers(convert):
    plausible = [{"text": "King", "answer_start": 4}]
    result = convert(
        "squad",
        squad(
            question("Who wrote it?", "Ada King", "Ada"),
            question("Who read it?", is_impossible=True, plausible_answers=plausible),
        ),
    )
    (doc,), report = result
    assert doc.text == TEXT and doc.user_data["title"] == "Ada_Lovelace"
    assert doc._.questions == ("Who wrote it?", "Who read it?")
    assert texts(doc) == [["Ada King", "Ada"], []]
    assert [x.no_answer for x in doc._.answers] == [0.0, 1.0]
    assert doc._.answers[0].best.text == "Ada King"
    assert not doc.has_annotation("ENT_IOB")
    assert (report.documents, report.questions) == (1, 2)
    assert (report.unanswerable, report.answers) == (1, 2)
    assert not result.events and not report.notes


def test_a_question_that_is_impossible_needs_no_list_of_answers(convert):
    impossible = {"id": "q2", "question": "Who read it?", "is_impossible": True}
    unknown = {"id": "q3", "question": "Who saw it?", "is_impossible": False}
    (doc,), report = convert("squad", squad(question("Who?", "Ada"), impossible, unknown))
    assert doc._.questions == ("Who?", "Who read it?")
    assert texts(doc) == [["Ada"], []] and report.unanswerable == 1
    (doc,), report = convert("squad", squad(impossible))
    assert has_answers(doc) and texts(doc) == [[]] and not report.notes


def test_a_table_may_write_impossible_as_a_number(convert):
    """And leave out ids, which no document has."""
    items = [{"question": "Who read it?", "is_impossible": flag} for flag in (1, 0, None)]
    (doc,), report = convert("squad", squad(question("Who?", "Ada"), items[0]))
    assert texts(doc) == [["Ada"], []] and not report.notes
    docs, report = convert("squad", squad(*items[1:]))
    assert report.unanswerable == 0 and not any(has_answers(doc) for doc in docs)


def test_equal_answers_are_taken_once(convert):
    result = convert("squad", squad(question("Who?", "Ada", "Ada", ("Ada", 31))))
    assert answer_offsets(result.docs[0])[0].answers == [(0, 3, 1.0), (31, 34, 1.0)]
    assert result.events["repeated answers taken once"] == (1, "article 1, paragraph 1")


def test_an_answer_inside_a_token_keeps_its_characters(convert):
    result = convert("squad", squad(question("When?", ("18", 25))))
    (doc,) = result.docs
    assert texts(doc) == [["18"]] and doc._.answers[0].best.text == "mid-1843"
    what = "answers that begin or end inside a token, kept by characters"
    assert result.events == {what: (1, "article 1, paragraph 1")}


def test_an_answer_beside_its_offset_is_moved_if_only_one_place_is_near(convert):
    far = TEXT + " " * 60
    result = convert(
        "squad",
        squad(
            question("Who?", ("King", 6)),
            question("When?", ("mid-1843", -3)),
            question("Who?", ("Ada", 3), "Ada King"),  # two places
            question("Old?", ("27", 100)),  # too far
            question("Old?", ("28", 39)),
            context=far,
        ),
    )
    (doc,) = result.docs
    assert doc._.questions == ("Who?", "When?", "Who?")
    assert texts(doc) == [["King"], ["mid-1843"], ["Ada King"]]
    assert {what: n for what, (n, _) in result.events.items()} == {
        "answers moved: their text is near their place": 2,
        "answers left out: their text is not at their place": 3,
        "questions left out: none of their answers is at its place": 2,
    }


def test_white_space_around_an_answer_is_left_out(convert):
    (doc,), _ = convert("squad", squad(question("Who?", (" King ", 3))))
    assert answer_offsets(doc)[0].answers == [(4, 8, 1.0)]


def test_an_answer_without_text_means_that_there_is_none(convert):
    (doc,), report = convert("squad", squad(question("Why?", ("", -1)), question("How?", (" ", 3))))
    assert texts(doc) == [[], []] and report.unanswerable == 2


def test_answers_that_are_not_given_are_not_annotated(convert):
    bare = {"id": 3, "question": "Why?"}
    (doc,), report = convert("squad", squad(bare, {**bare, "answers": None}))
    assert doc._.questions == ("Why?", "Why?") and not has_answers(doc)
    assert report.notes == ["1 documents have only questions: answers are not given"]
    result = convert("squad", squad(bare, question("Who?", "Ada")))
    assert result.docs[0]._.questions == ("Who?",) and texts(result.docs[0]) == [["Ada"]]
    what = "questions left out: answers are given only for others of the paragraph"
    assert result.events == {what: (1, "article 1, paragraph 1")}


def test_paragraphs_without_questions_or_text(convert):
    (doc,), _ = convert("squad", squad(title=None))
    assert doc._.questions == () and not has_answers(doc) and "title" not in doc.user_data
    result = convert("squad", squad(question(), context=""))
    assert not result.docs
    assert result.events["paragraphs left out: they have no text"][0] == 1
    (doc,), _ = convert("squad", squad(question(), context=" \n "))
    assert doc.text == " \n " and texts(doc) == [[]]


def test_a_byte_order_mark_and_other_scripts(convert):
    text = "In \U0001f1e9\U0001f1ea lebt Jürgen Großmann."
    asked = {"id": "1", "question": "Wer?", "answers": [{"text": "Großmann", "answer_start": 18}]}
    (doc,), _ = convert("squad", "\ufeff" + squad(asked, context=text))
    assert doc.text == text and texts(doc) == [["Großmann"]]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("Ada B-PER\n", "line 1: not JSON"),
        ('{"data": [\n{]\n', "line 2: not JSON"),
        ('{"text": "a"}\n{"text": "b"}\n', "line 2: not JSON"),
        ("[]", "the content is a list, not an object"),
        ('{"documents": [], "kind": 1}', "no key 'data'; its keys are 'documents', 'kind'"),
        ('{"data": {}}', "data is an object, not a list"),
        ('{"data": [3]}', "article 1: the record is a whole number"),
        (
            '{"data": [{"id": "1", "context": "a"}]}',
            "article 1: the record has no key 'paragraphs'; its keys are 'id', 'context'",
        ),
        (
            '{"data": [{"paragraphs": [{"text": "a"}]}]}',
            "article 1, paragraph 1: the record has no key 'context'; its keys are 'text'",
        ),
        ('{"data": [{"paragraphs": [{"context": "a"}]}]}', "has no key 'qas'"),
        (squad({"query": "Who?"}), "question 1 has no key 'question'; its keys are 'query'"),
        (
            squad({"id": "1", "question": "Who?", "is_impossible": "false"}),
            "is_impossible of question 1 is 'false', not true or false",
        ),
        (squad({"id": 1.5, "question": "Who?"}), "id of question 1 is a number with a fraction"),
        (squad(question(answers={"text": []})), "question 1: answers is an object, not a list"),
        (squad(question(answers=[{"text": "a"}])), "answer 1 of question 1 has no key 'answer_st"),
        (squad(question("\ud800")), "unpaired surrogate"),
        (squad(title="\ud800"), "article 1: an unpaired surrogate"),
    ],
)
def test_a_file_of_another_kind_is_one_clear_error(convert, content, fault):
    with pytest.raises(CorpusError, match=re.escape(fault)) as error:
        convert("squad", content)
    assert "corpus.in" in str(error.value)


def test_settings_of_other_formats_are_refused(convert):
    with pytest.raises(ConfigError, match="alignment; it takes none"):
        convert("squad", squad(), alignment="split")


# file: paragraphs, questions, those without an answer; as the data's own notes count them
REAL = {
    "squad/train-v1.1-head.json": ("en", 678, 4370, 0),
    "squad/xquad.en.json": ("en", 240, 1190, 0),
    "squad/xquad.de.json": ("de", 240, 1190, 0),
    "squad2/squad2-11articles.json": ("en", 444, 4033, 2086),
}


@pytest.mark.parametrize("name", REAL)
def test_published_files_are_read_whole(convert_real, name):
    lang, paragraphs, questions, unanswerable = REAL[name]
    docs, report = convert_real(name, read_squad, lang)
    assert (len(docs), report.questions, report.unanswerable) == (
        paragraphs,
        questions,
        unanswerable,
    )
    kept = {"repeated answers taken once", "answers that begin or end inside a token, kept by"}
    assert all(what.startswith(tuple(kept)) for what in report.events)
    assert all(doc.user_data["title"] for doc in docs)
    # No answer was moved, so all texts are those of the file.
    assert sum(len(x.answers) for doc in docs for x in answer_offsets(doc)) == report.answers


DIFFERS = "answers whose text differs in marks, case or punctuation, taken by their place"
MOVED = "answers moved: their text is near their place"
WIDE = "\U0001f680" * 60 + " Ada lives in Köln. Bob lives in Köln, too, and so do many others."


@pytest.mark.parametrize(
    ("context", "answer", "place", "found", "how"),
    [
        # Units of UTF-16: the first Köln, and the second one is nearer to the number.
        (WIDE, "Köln", 134, 74, "answers whose place counts UTF-16 units, converted by their text"),
        ("She is in Ko\u0308ln now.", "Köln", 10, "Ko\u0308ln", DIFFERS),
        ("She is in Köln. Yes", "Ko\u0308ln", 10, "Köln", DIFFERS),
        ("By Ada  Lovelace.", "Ada Lovelace", 3, "Ada  Lovelace", DIFFERS),
        ("By Ada\r\nLovelace.", "Ada\nLovelace", 3, "Ada\r\nLovelace", DIFFERS),
        ("\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd.", "\u05e9\u05dc\u05d5\u05dd", 0,
         "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd", DIFFERS),
        ("The turkey is eaten in Turkey.", "Turkey", 4, 23, MOVED),
        ("It is 5\u00a0km to Köln.", "5 km", 6, 6, None),
        ("Ada is in Köln.", "Köln", -1, 10, MOVED),
        ("Ada is in Köln, Bob in Köln.", "Köln", -1, None,
         "answers left out: their text is not at their place"),
    ],
)  # fmt: skip
def test_places_of_other_tools(convert, context, answer, place, found, how):
    docs, report = convert("squad", squad(question("Where?", (answer, place)), context=context))
    assert set(report.events) - {"questions left out: none of their answers is at its place"} <= {
        how, "answers that begin or end inside a token, kept by characters"
    }  # fmt: skip
    assert how is None or how in report.events
    answers = [x for doc in docs for y in answer_offsets(doc) for x in y.answers]
    if isinstance(found, str):
        assert [context[start:end] for start, end, _ in answers] == [found]
    else:
        assert [start for start, _, _ in answers] == ([] if found is None else [found])


def test_chinese_in_the_wrong_language_is_told(convert):
    asked = [question("谁?", ("2013", 3)), question("谁?", ("爱达", 0))]
    _, report = convert("squad", squad(*asked, context="爱达在2013年写的。"))
    assert any("--lang with the language of the text" in x for x in report.notes)
