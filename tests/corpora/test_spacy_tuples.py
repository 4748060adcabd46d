"""spaCy's training tuples become documents with entities, spans and ids."""

import json

import pytest

from spacy_luke.errors import CorpusError

FORMAT = "spacy-tuples"
TEXT = "Ada met Bob in Köln."
PAIR = [TEXT, {"entities": [[0, 3, "PER"], [15, 19, "LOC"]]}]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([PAIR, PAIR]),
        json.dumps([PAIR, PAIR], indent=2),
        f"{json.dumps(PAIR)}\n\n{json.dumps(PAIR)}\n",
        json.dumps({"classes": ["PER"], "annotations": [PAIR, PAIR]}),
        json.dumps({"classes": ["PER"], "annotations": [PAIR, PAIR]}, indent=1),
    ],
    ids=["list", "indented", "lines", "object", "indented object"],
)
def test_pairs_may_be_a_list_lines_or_in_an_object(convert, spans, content):
    docs, report = convert(FORMAT, content)
    assert [spans(doc.ents) for doc in docs] == [[("Ada", "PER"), ("Köln", "LOC")]] * 2
    assert not report.events


def test_links_give_ids(convert, spans):
    ids = {"(0, 3)": {"Q1": 1.0, "Q2": 0.0}, "15,19": {"Q3": 0.4, "Q4": 0.5}, "4 7": {"Q9": 1}}
    result = convert(FORMAT, [[TEXT, {**PAIR[1], "links": ids}]])
    assert spans(result.docs[0].ents) == [("Ada", "PER", "Q1"), ("Köln", "LOC")]
    assert result.events == {
        "links without exactly one right id, left out": (1, "record 1"),
        "links left out: no entity has their place": (1, "record 1"),
    }


def test_groups_of_spans_are_read_with_their_ids(convert, spans):
    groups = {"sc": [[0, 3, "PER", "Q1"], [0, 7, "CLAUSE", None]], "other": [[8, 11, "PER"]]}
    (doc,), _ = convert(FORMAT, [[TEXT, {"spans": groups}]])
    assert spans(doc.ents) == [("Bob", "PER")]
    assert set(spans(doc.spans["luke_ner"])) == {
        ("Ada", "PER", "Q1"),
        ("Ada met", "CLAUSE"),
        ("Bob", "PER"),
    }


def test_other_annotation_and_null_are_counted(convert):
    content = json.dumps([None, [TEXT, {"entities": [], "cats": {"a": 1.0}}]])
    assert convert(FORMAT, content).events == {
        "records skipped: null": (1, "record 1"),
        "annotation not read: cats": (1, "record 2"),
    }


def test_offsets_may_count_utf16_units(convert, spans):
    (doc,), _ = convert(FORMAT, [["🚀 Ada", {"entities": [[3, 6, "PER"]]}]], offsets="utf16")
    assert spans(doc.ents) == [("Ada", "PER")]


@pytest.mark.parametrize(
    "bad, message",
    [
        ([TEXT, {"cats": {}}], "neither 'entities' nor 'spans'; its keys are 'cats'"),
        ([TEXT, [[0, 3, "PER"]]], "the annotation is a list, not an object"),
        ([TEXT], "the record is a list, not a list of a text and a dictionary"),
        (
            {"text": TEXT, "entities": []},
            "the record is an object.*its keys are 'text', 'entities'",
        ),
        ({"id": 0, "paragraphs": []}, "spaCy 2's JSON for training; 'spacy convert' reads it"),
        ([TEXT, {"entities": ["B-PER", "O"]}], "entities 0 is the tag 'B-PER'"),
        ([TEXT, {"entities": [[0, 3]]}], r"entities 0 is \[0, 3\], not a start"),
        ([TEXT, {"entities": [[0, 99, "X"]]}], r"entities 0 \(X\) goes from 0 to 99"),
        ([TEXT, {"entities": {"a": 1}}], "entities is an object, not a list"),
        ([TEXT, {"entities": [], "links": {"0": {}}}], "'0' of links is not a start and an end"),
        ([TEXT, {"entities": [], "links": {f"0, {'9' * 5000}": {}}}], "'0, 9+' of links is not"),
        ([TEXT, {"entities": [], "links": {"0, 3": "Q1"}}], "links 0, 3 is a string"),
    ],
)
def test_invalid_pairs_name_their_record(convert, bad, message):
    with pytest.raises(CorpusError, match=f"corpus.in, record 2: .*{message}"):
        convert(FORMAT, json.dumps([PAIR, bad]))


def test_ids_of_entities_are_texts_or_whole_numbers(convert, spans):
    entities = [[0, 3, "PER", "Q1"], [4, 7, "ACT", 17], [15, 19, "LOC", 0, 5], [8, 11, "X", None]]
    (doc,), report = convert(FORMAT, [[TEXT, {"entities": entities}]])
    assert {x[2:] for x in spans(doc.ents)} == {("Q1",), ("17",), ()} and not report.events


def test_places_of_links_count_what_those_of_entities_do(convert, spans):
    data = {"entities": [[3, 6, "PER"]], "links": {"(3, 6)": {"Q1": 1.0}}}
    (doc,), report = convert(FORMAT, [["🚀 Ada ran.", data]], offsets="utf16")
    assert spans(doc.ents) == [("Ada", "PER", "Q1")]
    assert not report.events
