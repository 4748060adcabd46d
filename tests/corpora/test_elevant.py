"""Benchmarks of ELEVANT become documents with ids and types on their mentions."""

import json

import pytest

from spacy_luke.annotations.types import get_types
from spacy_luke.corpora.elevant import read_elevant
from spacy_luke.errors import CorpusError

FORMAT = "elevant"
TEXT = "Otto of Selm sailed in 1886. He came back."


def label(text, entity_id, kind="Q5", **more):
    start = TEXT.index(text)
    span = [start, start + len(text)]
    return {"id": 0, "span": span, "entity_id": entity_id, "name": "?", "type": kind, **more}


def record(*labels, **more):
    return json.dumps({"id": 7, "title": "Otto", "text": TEXT, "labels": list(labels), **more})


def test_labels_are_mentions_with_ids_and_types(convert, spans):
    labels = [
        label("Otto", "Q1", "Q5|Q215627"),
        label("Selm", "<NIL>", "OTHER"),
        label("1886", "DATETIME", "DATETIME"),
        label("He", "Q1", coref=True),
    ]
    (doc,), report = convert(FORMAT, record(*labels))
    assert doc.text == TEXT
    assert spans(doc.ents) == [
        ("Otto", "MENTION", "Q1"),
        ("Selm", "MENTION", "NIL"),
        ("1886", "MENTION"),
        ("He", "MENTION", "Q1", "coref"),
    ]
    types = [sorted(get_types(ent)) for ent in doc.ents[:3]]
    assert types == [["Q215627", "Q5"], ["OTHER"], ["DATETIME"]]
    assert (doc.user_data["id"], doc.user_data["title"]) == ("7", "Otto")
    assert (report.links, report.nil) == (2, 1)


def test_nested_labels_are_in_the_group(convert, spans):
    (doc,), _ = convert(FORMAT, record(label("Otto of Selm", "Q1"), label("Selm", "Q2")))
    assert not doc.ents
    assert spans(doc.spans["luke_ner"]) == [
        ("Otto of Selm", "MENTION", "Q1"),
        ("Selm", "MENTION", "Q2"),
    ]


def test_nothing_is_known_outside_the_evaluation_span(convert):
    (doc,), _ = convert(FORMAT, record(label("Otto", "Q1"), evaluation_span=[0, 12]))
    assert [token.ent_iob_ for token in doc] == ["B", "O", "O"] + [""] * (len(doc) - 3)


@pytest.mark.parametrize(
    "bad, message",
    [
        ('{"text": "Otto", "spans": []}', "has no key 'labels'; its keys are 'text', 'spans'"),
        ('{"text": "", "labels": []}', "text of the record is empty"),
        (record({"span": [0, 4]}), "label 0 has no key 'entity_id'; its keys are 'span'"),
        (record({"span": [0], "entity_id": "Q1"}), "span of label 0 is .0., not two whole numbers"),
        (record({"span": [0, 99], "entity_id": "Q1"}), "span of label 0 goes from 0 to 99"),
        (record(evaluation_span=[5, 2]), "evaluation_span of the record goes from 5 to 2"),
    ],
)
def test_an_invalid_record_is_an_error_with_its_line(convert, bad, message):
    with pytest.raises(CorpusError, match=f"corpus.in, line 2: .*{message}"):
        convert(FORMAT, record() + "\n" + bad)


def test_a_published_benchmark_is_read_whole(convert_real, data_dir):
    name = "linking/wiki-fair-v2.benchmark.jsonl"
    docs, report = convert_real(name, read_elevant)
    assert len(docs) == 120
    assert (sum(report.labels.values()), report.links, report.nil) == (3371, 2345, 304)
    lines = (data_dir / name).read_text("utf8").splitlines()
    for doc, line in zip(docs, map(json.loads, lines), strict=True):
        assert doc.text == line["text"]
        found = sorted([s.start_char, s.end_char] for s in doc.spans["luke_ner"])
        assert found == sorted(label["span"] for label in line["labels"])
