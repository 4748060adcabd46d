"""TACRED's records become documents of their words, with subject, object and relation."""

import json

import pytest

from spacy_luke.errors import CorpusError

RECORD = {
    "id": "made-up-1",
    "token": ["Mara", "Quill", "-LRB-", "born", "1950", "-RRB-", "leads", "the", "Reed", "Bank"],
    "subj_start": 0,
    "subj_end": 1,
    "subj_type": "PERSON",
    "obj_start": 8,
    "obj_end": 9,
    "obj_type": "ORGANIZATION",
    "relation": "per:employee_of",
}


def record(**changes):
    return {**RECORD, **changes}


def without(key):
    return {name: value for name, value in RECORD.items() if name != key}


def test_subject_and_object_are_entities_and_the_subject_is_the_head(convert, spans, relations):
    (doc,), report = convert("tacred", [RECORD])
    assert spans(doc.ents) == [
        ("Mara Quill", "PERSON", "subj"),
        ("Reed Bank", "ORGANIZATION", "obj"),
    ]
    assert spans(doc.spans["luke_ner"]) == spans(doc.ents)
    assert relations(doc) == [("Mara Quill", "Reed Bank", "per:employee_of")]
    assert doc.user_data["id"] == "made-up-1"
    assert doc.has_unknown_spaces
    assert report.relations == {"per:employee_of": 1}


def test_escaped_brackets_become_brackets(convert):
    escaped = ["-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-", "-lrb-", "a", "b", "c"]
    (doc,), _ = convert("tacred", [record(token=escaped)])
    assert [token.text for token in doc][:7] == ["(", ")", "[", "]", "{", "}", "-lrb-"]


@pytest.mark.parametrize(
    "form,expected",
    [
        ("plain", "( ) [ ] { }"),
        ("round", "( ) ( ) ( )"),
        ("keep", "-LRB- -RRB- -LSB- -RSB- -LCB- -RCB-"),
    ],
)
def test_escaped_brackets_become_what_is_asked_for(convert, form, expected):
    escaped = ["-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-", "a-LRB-", "a", "b", "c"]
    (doc,), _ = convert("tacred", [record(token=escaped)], brackets=form)
    assert [token.text for token in doc][:7] == [*expected.split(" "), "a-LRB-"]


def test_no_relation_is_no_relation_and_counted(convert, relations):
    docs, report = convert("tacred", [RECORD, record(relation="no_relation")])
    assert [len(relations(doc)) for doc in docs] == [1, 0]
    assert "1 pairs are labelled 'no_relation': they get no relation" in report.notes


def test_nested_sides_are_in_the_group_and_not_entities(convert, spans, relations):
    result = convert("tacred", [RECORD, record(obj_start=1, obj_end=1)])
    doc = result.docs[1]
    assert not doc.ents
    assert [span[0] for span in spans(doc.spans["luke_ner"])] == ["Mara Quill", "Quill"]
    assert relations(doc) == [("Mara Quill", "Quill", "per:employee_of")]
    assert [token.ent_iob_ for token in doc][:3] == ["", "", "O"]
    what = "overlapping spans kept in doc.spans['luke_ner'] and left out of doc.ents"
    assert result.events == {what: (2, "record 2; 1 documents")}


def test_an_object_that_is_the_subject_has_no_relation(convert, relations):
    result = convert("tacred", [record(obj_start=0, obj_end=1)])
    assert relations(result.docs[0]) == []
    assert result.events["relations left out: both sides are the same span"] == (1, "record 1")


def test_empty_words_are_left_out_and_shift_nothing(convert, spans):
    words = ["", *RECORD["token"][:8], "", *RECORD["token"][8:]]
    shifted = record(token=words, subj_start=1, subj_end=2, obj_start=9, obj_end=11)
    result = convert("tacred", [shifted])
    assert [span[0] for span in spans(result.docs[0].ents)] == ["Mara Quill", "Reed Bank"]
    assert result.events == {"empty words left out": (2, "record 1")}


def test_a_side_of_empty_words_only_is_left_out_with_its_relation(convert, relations):
    result = convert("tacred", [record(token=["", "", *RECORD["token"][2:]])])
    assert relations(result.docs[0]) == []
    assert result.events["spans left out: their words are empty"] == (1, "record 1")
    assert result.events["relations left out: one of their spans was"] == (1, "record 1")


@pytest.mark.parametrize(
    "bad, message",
    [
        *[(without(key), f"the record has no key '{key}'") for key in RECORD],
        (record(subj_end=10), "subj_start is 0 and subj_end 10, but the record has 10 words"),
        (record(obj_start=-1), "obj_start is -1"),
        (record(subj_start=3, subj_end=2), "subj_start is 3 and subj_end 2"),
        (record(subj_start="0"), "subj_start of the record is a string, not a whole number"),
        (record(token="Mara Quill"), "token of the record is a string, not a list"),
        (record(token=["Mara", 3]), "token of the record contains a whole number at 1"),
        (record(token=[]), "the record has no words"),
        (record(token=["a\ud800"]), "an unpaired surrogate"),
        (record(relation=""), "the record has an empty relation"),
        (record(obj_type=None), "obj_type of the record is null"),
        ([1], "the record is a list, not an object"),
    ],
)
def test_a_bad_record_is_one_error_that_names_it(convert, bad, message):
    with pytest.raises(CorpusError, match=f"corpus.in, record 2: .*{message}"):
        convert("tacred", [RECORD, bad])


def test_json_lines_are_refused_with_what_is_needed(convert):
    with pytest.raises(CorpusError, match="a JSON list of objects is needed, .* begins with '{'"):
        convert("tacred", json.dumps(RECORD))
