"""Mentions keep the types that the file gives them, also where it gives none."""

import pytest

from spacy_luke.annotations.types import get_types
from spacy_luke.errors import CorpusError

UFET = {
    "left_context_token": ["Yesterday", ","],
    "mention_span": "the old ferry",
    "right_context_token": ["sank", "."],
    "y_str": ["ship", "object"],
    "annot_id": "made/up:1",
}
OPEN = {"sent": "The ferry Isolde sank.", "start": 4, "end": 16, "labels": ["ship"], "ents": []}
FIGER = {
    "tokens": ["Ina", "Moss", "left", "Tarn", "."],
    "mentions": [
        {"start": 0, "end": 2, "labels": ["/person", "/person/artist"]},
        {"start": 3, "end": 4, "labels": ["/location"]},
    ],
}
RECORDS = {"ufet": UFET, "openentity": OPEN, "figer": FIGER}


@pytest.mark.parametrize(
    "name, mentions",
    [
        ("ufet", [("the old ferry", {"object": 1.0, "ship": 1.0})]),
        ("openentity", [("ferry Isolde", {"ship": 1.0})]),
        ("figer", [("Ina Moss", {"/person": 1, "/person/artist": 1}), ("Tarn", {"/location": 1})]),
    ],
)
def test_mentions_are_entities_with_types(convert, name, mentions):
    (doc,), report = convert(name, [RECORDS[name]])
    assert [(ent.text, ent._.types) for ent in doc.ents] == mentions
    assert {ent.label_ for ent in doc.ents} == {"MENTION"}
    assert len(doc.spans["luke_ner"]) == report.typed_spans == len(mentions)
    assert set(report.types) == {name for _, types in mentions for name in types}
    assert not report.events


def test_the_words_of_a_file_are_kept(convert):
    (doc,), _ = convert("ufet", [UFET])
    assert [t.text for t in doc] == ["Yesterday", ",", "the", "old", "ferry", "sank", "."]
    assert doc.user_data["id"] == "made/up:1"
    (doc,), _ = convert("figer", [FIGER])
    assert [t.text for t in doc] == FIGER["tokens"]
    assert doc.has_unknown_spaces


@pytest.mark.parametrize("name, key", [("ufet", "y_str"), ("openentity", "labels")])
def test_a_mention_without_types_is_asked_and_has_none(convert, name, key):
    (doc,), report = convert(name, [{**RECORDS[name], key: []}])
    assert doc.ents[0]._.types == {} and get_types(doc.ents[0]) is not None
    assert report.typed_spans == 1 and not report.types


@pytest.mark.parametrize(
    "form,expected", [("round", "( x ) the ( y ) ) sank"), ("plain", "( x ) the { y ] } sank")]
)
@pytest.mark.parametrize("name", ["ufet", "openentity"])
def test_brackets_are_kept_unless_they_are_asked_to_be_written(convert, name, form, expected):
    """The mention stays where it is when what is before and in it becomes shorter."""
    left, mention, right = "-LRB- x -RRB-", "the -LCB- y -RSB-", "-RCB- sank"
    text = f"{left} {mention} {right}"
    record = {
        "ufet": {
            "left_context_token": left.split(),
            "mention_span": mention,
            "right_context_token": right.split(),
            "y_str": ["ship"],
        },
        "openentity": {
            "sent": text,
            "start": len(left) + 1,
            "end": len(left) + 1 + len(mention),
            "labels": ["ship"],
        },
    }[name]
    (doc,), _ = convert(name, [record])
    assert (doc[:].text, doc.ents[0].text) == (text, mention)
    (doc,), _ = convert(name, [record], brackets=form)
    start = expected.index("the")
    assert (doc[:].text, doc.ents[0].text) == (expected, expected[start : start + 9])


@pytest.mark.parametrize(
    "name,kept", [("ufet", "object"), ("openentity", "ship"), ("figer", "/person")]
)
def test_types_that_are_not_asked_for_are_left_out(convert, name, kept):
    (doc,), report = convert(name, [RECORDS[name]], types=(kept, "other"))
    assert doc.ents[0]._.types == {kept: 1.0} and set(report.types) == {kept}
    (doc,), report = convert(name, [RECORDS[name]], types=("other",))
    assert doc.ents[0]._.types == {} and get_types(doc.ents[0]) is not None


def test_a_mention_that_cuts_a_token_splits_it(convert):
    (doc,), report = convert("openentity", [{**OPEN, "start": 4, "end": 7}])
    assert [(ent.text, ent._.types) for ent in doc.ents] == [("fer", {"ship": 1.0})]
    assert doc.text == OPEN["sent"]
    assert len(report.events) == 1
    docs, _ = convert("openentity", [{**OPEN, "end": 7}], alignment="expand")
    assert [ent.text for ent in docs[0].ents] == ["ferry"]


def test_overlapping_mentions_are_in_the_group_with_their_own_types(convert):
    inner = {"start": 1, "end": 2, "labels": ["/name"]}
    (doc,), _ = convert("figer", [{**FIGER, "mentions": [*FIGER["mentions"], inner]}])
    assert [ent.text for ent in doc.ents] == ["Tarn"]
    assert {span.text: list(span._.types) for span in doc.spans["luke_ner"]} == {
        "Ina Moss": ["/person", "/person/artist"],
        "Tarn": ["/location"],
        "Moss": ["/name"],
    }


def test_a_mention_given_twice_has_the_types_of_both(convert):
    again = {"start": 3, "end": 4, "labels": ["/location", "/location/city"]}
    result = convert("figer", [{**FIGER, "mentions": [*FIGER["mentions"], again]}])
    assert list(result.docs[0].ents[1]._.types) == ["/location", "/location/city"]
    assert result.report.types["/location"] == 1
    assert result.events == {
        "repeated spans taken once": (1, "line 1"),
        "types given more than once for the same place, put together": (1, "line 1"),
    }


@pytest.mark.parametrize(
    "name, changes, message",
    [
        *[("ufet", {key: None}, f"{key} of the record is null") for key in list(UFET)[:4]],
        ("ufet", {"mention_span": " "}, "mention_span goes from word 2 to 2"),
        ("ufet", {"y_str": [""]}, "y_str of the record contains an empty name"),
        ("openentity", {"sent": None}, "sent of the record is null"),
        ("openentity", {"end": 40}, "the mention goes from 4 to 40, in a text of 22 characters"),
        ("openentity", {"start": 17}, "the mention goes from 17 to 16"),
        ("openentity", {"start": -1}, "the mention goes from -1 to 16"),
        ("openentity", {"labels": "ship"}, "labels of the record is a string, not a list"),
        ("figer", {"mentions": None}, "mentions is null, not a list"),
        (
            "figer",
            {"mentions": [{"start": 0, "end": 6, "labels": []}]},
            "from word 0 to 6, .* 5",
        ),
        ("figer", {"mentions": [{"start": 3, "end": 2, "labels": []}]}, "from word 3 to 2"),
        ("figer", {"mentions": [{"start": 0, "end": 1}]}, "mention 0 has no key 'labels'"),
        ("figer", {"mentions": [7]}, "mention 0 is a whole number, not an object"),
        ("figer", {"tokens": []}, "the record has no words"),
    ],
)
def test_a_bad_record_is_one_error_that_names_it(convert, name, changes, message):
    good = RECORDS[name]
    with pytest.raises(CorpusError, match=f"corpus.in, (line|record) 2: .*{message}"):
        convert(name, [good, {**good, **changes}])


@pytest.mark.parametrize("name", ["ufet", "openentity", "figer"])
def test_absent_keys_are_named(convert, name):
    for key in RECORDS[name]:
        if key not in ("annot_id", "ents"):
            bad = {other: value for other, value in RECORDS[name].items() if other != key}
            with pytest.raises(CorpusError, match=f"has no key '{key}'"):
                convert(name, [bad])
