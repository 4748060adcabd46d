"""Tagged sentences become documents with two nominals and a directed relation."""

import pytest

from spacy_luke.errors import CorpusError

FIRST = (
    '7\t"The <e1>storm</e1> broke the old <e2>bridge</e2>."\r\n'
    "Breaks(e1,e2)\r\nComment: clear\r\n\r\n"
)
SECOND = (
    '8\t"A <e1>leak</e1> came from the "new" <e2>pump</e2>."\r\nBreaks(e2,e1)\r\nComment:\r\n\r\n'
)
OTHER = '9\t"A <e1>dog</e1> sat by the <e2>door</e2>."\r\nOther\r\nComment:\r\n'


def example(tagged: str, relation: str = "Breaks(e1,e2)") -> str:
    return f'1\t"{tagged}"\n{relation}\nComment:\n\n'


def test_nominals_are_entities_with_their_tags_as_ids(convert, spans):
    (doc,), report = convert("semeval", FIRST)
    assert doc.text == "The storm broke the old bridge."
    assert spans(doc.ents) == [("storm", "NOMINAL", "e1"), ("bridge", "NOMINAL", "e2")]
    assert spans(doc.spans["luke_ner"]) == spans(doc.ents)
    assert doc.user_data["id"] == "7"
    assert report.labels == {"NOMINAL": 2}
    assert not report.events


def test_the_direction_decides_which_nominal_is_the_head(convert, relations):
    docs, report = convert("semeval", FIRST + SECOND + OTHER)
    assert [relations(doc) for doc in docs] == [
        [("storm", "bridge", "Breaks")],
        [("pump", "leak", "Breaks")],
        [],
    ]
    assert docs[1].text == 'A leak came from the "new" pump.'
    assert report.relations == {"Breaks": 2}
    assert "1 pairs are labelled 'Other': they get no relation" in report.notes


def test_the_second_nominal_may_come_first(convert, spans, relations):
    (doc,), _ = convert("semeval", example("An <e2>oar</e2> of a <e1>boat</e1>"))
    assert spans(doc.ents) == [("oar", "NOMINAL", "e2"), ("boat", "NOMINAL", "e1")]
    assert relations(doc) == [("boat", "oar", "Breaks")]


def test_a_token_that_a_tag_cuts_is_split_and_counted(convert, spans, relations):
    (doc,), report = convert("semeval", example("the under<e1>water</e1> <e2>cable</e2>s end"))
    assert [token.text for token in doc] == ["the", "under", "water", "cable", "s", "end"]
    assert doc.text == "the underwater cables end"
    assert spans(doc.ents) == [("water", "NOMINAL", "e1"), ("cable", "NOMINAL", "e2")]
    assert relations(doc) == [("water", "cable", "Breaks")]
    assert {what: event.count for what, event in report.events.items()} == {
        "tokens split where a span begins or ends inside": 2
    }


def test_two_nominals_inside_one_token_are_both_kept(convert, spans):
    (doc,), _ = convert("semeval", example("the <e1>tea</e1><e2>pot</e2>"))
    assert spans(doc.ents) == [("tea", "NOMINAL", "e1"), ("pot", "NOMINAL", "e2")]


def test_white_space_inside_the_tags_is_taken_off_and_counted(convert, spans):
    result = convert("semeval", example("the <e1>tea </e1>and <e2> pot</e2>"))
    assert [span[0] for span in spans(result.docs[0].ents)] == ["tea", "pot"]
    assert result.events == {"spans with white space taken off their ends": (2, "line 1")}


def test_an_alignment_that_loses_a_nominal_loses_its_relation_and_counts_both(convert, relations):
    text = example("under<e1>water</e1> <e2>cable</e2>")
    result = convert("semeval", text, alignment="strict")
    assert relations(result.docs[0]) == []
    assert result.events == {
        "spans left out: they cut a token (alignment strict)": (1, "line 1"),
        "relations left out: one of their spans was": (1, "line 1"),
    }
    assert [token.ent_iob_ for token in result.docs[0]] == ["", "B"]


def test_nominals_that_grow_into_the_same_token_have_no_relation(convert, spans):
    result = convert("semeval", example("a <e1>tea</e1><e2>pot</e2>"), alignment="expand")
    (doc,) = result.docs
    assert not doc.ents
    assert [span[0] for span in spans(doc.spans["luke_ner"])] == ["teapot", "teapot"]
    assert result.events["relations left out: both sides are the same span"] == (1, "line 1")


@pytest.mark.parametrize(
    "text, message",
    [
        (example("a <e1>b <e2>c</e2></e1>"), "line 1: the tags are <e1> <e2> </e2> </e1>; "),
        (example("a <e1>b</e1> c"), "line 1: the tags are <e1> </e1>; "),
        (example("a b c"), "line 1: the tags are none; "),
        (example("a <e1>b</e1> <e1>c</e1>"), "line 1: the tags are <e1> </e1> <e1> </e1>; "),
        (example("a <e1></e1> <e2>c</e2>"), "line 1: the nominal e1 is empty"),
        (example("<e1>b</e1> <e2>c</e2>", "Breaks"), "line 2: 'Breaks' is not a relation"),
        (example("<e1>b</e1> <e2>c</e2>", "Breaks(e1,e3)"), "line 2: .* is not a relation"),
        (example("<e1>b</e1> <e2>c</e2>", "other"), "line 2: 'other' is not a relation"),
        (FIRST + "8\tno quotation marks\r\nOther\r\n", "line 5: a number and a sentence"),
        (FIRST + '8\t"<e1>b</e1> <e2>c</e2>"\r\n', "line 5: no relation follows the sentence 8"),
        ('1\t"<e1>b</e1> <e2>c</e2>"\n2\t"<e1>b</e1> <e2>c</e2>"\n', "line 2: .* not a relation"),
    ],
)
def test_a_bad_file_is_one_error_that_names_the_line(convert, text, message):
    with pytest.raises(CorpusError, match=f"corpus.in, {message}"):
        convert("semeval", text)


def test_an_empty_file_gives_no_document(convert):
    assert convert("semeval", "\r\n\r\n").docs == []
