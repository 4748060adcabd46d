"""A file of Prodigy's linking recipe becomes documents whose mentions have the accepted ids."""

import json

import pytest

from spacy_luke.corpora.prodigy_links import read_prodigy_links
from spacy_luke.errors import CorpusError

FORMAT = "prodigy-links"
TEXT = "Emerson met Emerson in Rome."
FIRST = {"start": 0, "end": 7, "label": "PERSON"}
SECOND = {"start": 12, "end": 19, "label": "PERSON"}
OPTIONS = [
    {"id": "Q1", "html": "poet"},
    {"id": "Q2"},
    {"id": "NIL_otherLink"},
    {"id": "NIL_ambiguous"},
]


def record(*accept, span=FIRST, text=TEXT, **more):
    return {
        "text": text,
        "spans": [span],
        "options": OPTIONS,
        "accept": list(accept),
        "answer": "accept",
        **more,
    }


def lines(*records):
    return "\n".join(map(json.dumps, records))


def test_the_accepted_option_is_the_id_of_the_mention(convert, spans):
    (doc,), report = convert(FORMAT, lines(record("Q1", meta={"score": 1})))
    assert doc.text == TEXT
    assert spans(doc.ents) == spans(doc.spans["luke_ner"]) == [("Emerson", "PERSON", "Q1")]
    assert doc.user_data["meta"] == {"score": 1}
    assert (report.links, report.nil) == (1, 0)
    assert not report.events


def test_ids_may_be_whole_numbers(convert, spans):
    options = [{"id": 12}, {"id": 13}, {"id": "NIL_otherLink"}]
    (doc,), report = convert(FORMAT, lines(record(12, options=options)))
    assert spans(doc.ents) == [("Emerson", "PERSON", "12")] and report.links == 1
    with pytest.raises(CorpusError, match="accept has '14', which is not one of"):
        convert(FORMAT, lines(record(14, options=options)))
    with pytest.raises(CorpusError, match="accept contains true or false at 0, not a string"):
        convert(FORMAT, lines(record(True, options=options)))


def test_nothing_is_known_of_tokens_outside_the_mentions(convert):
    (doc,), _ = convert(FORMAT, lines(record("Q1")))
    assert [token.ent_iob_ for token in doc] == ["B", "", "", "", "", ""]


def test_records_of_one_text_become_one_document(convert, spans):
    other = record("Q2", text="Emerson ran.")
    docs, report = convert(FORMAT, lines(record("Q1"), other, record("Q2", span=SECOND)))
    assert [spans(doc.ents) for doc in docs] == [
        [("Emerson", "PERSON", "Q1"), ("Emerson", "PERSON", "Q2")],
        [("Emerson", "PERSON", "Q2")],
    ]
    assert (report.documents, report.links) == (2, 3)


def test_another_link_is_nil_and_an_ambiguous_mention_is_not_annotated(convert):
    result = convert(
        FORMAT, lines(record("NIL_otherLink"), record("NIL_ambiguous", text="Emerson ran."))
    )
    assert [doc.ents[0].kb_id_ for doc in result.docs] == ["NIL", ""]
    assert (result.report.links, result.report.nil) == (0, 1)
    assert result.events == {
        "mentions with the answer NIL_otherLink, read as NIL": (1, "line 1"),
        "mentions with the answer NIL_ambiguous, read as not annotated": (1, "line 2"),
    }


def test_records_that_were_not_accepted_annotate_nothing(convert, spans):
    rejected = record("Q1", answer="reject")
    ignored = record(answer="ignore", text="Emerson ran.")
    result = convert(FORMAT, lines(rejected, record("Q2", span=SECOND), ignored))
    (doc,) = result.docs
    assert spans(doc.ents) == [("Emerson", "PERSON", "Q2")]
    assert doc[0].ent_iob_ == ""
    assert result.events == {
        "records skipped: answer 'reject'": (1, "line 1"),
        "records skipped: answer 'ignore'": (1, "line 3"),
    }


def test_answers_that_are_not_one_id_leave_the_mention_without_an_id(convert):
    texts = [f"Emerson ran {word}." for word in ("up", "on")]
    records = [
        record(text=texts[0]),
        record("Q1", "Q2", text=texts[1]),
        record("Q1"),
        record("Q2"),
        record("Q2"),
    ]
    result = convert(FORMAT, lines(*records))
    assert [doc.ents[0].kb_id_ for doc in result.docs] == ["", "", ""]
    assert result.events == {
        "mentions without exactly one accepted option, left without an id": (2, "line 1"),
        "mentions with different answers, left without an id": (2, "line 4"),
    }


def test_a_record_without_exactly_one_span_is_skipped(convert):
    result = convert(FORMAT, lines(record("Q1", spans=[]), record("Q1")))
    assert len(result.docs) == 1
    assert result.events == {"records skipped: not exactly one span": (1, "line 1")}


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"text": TEXT, "label": "X"}, "has no key 'spans'; its keys are 'text', 'label'"),
        ({"text": TEXT, "spans": [FIRST]}, "no key 'accept'; its keys are 'text', 'spans'"),
        (record("Q3"), "accept has 'Q3', which is not one of the record's options"),
        (record(""), "accept has ''"),
        (record(accept="Q1"), "accept is a string, not a list"),
        (record("Q1", options=["Q1"]), "option 0 is a string"),
        (record("Q1", options=[{"text": "x"}]), "option 0 has no key 'id'"),
        (record("Q1", answer="maybe"), "answer is 'maybe'"),
        (record("Q1", span={**FIRST, "end": 90}), "goes from 0 to 90"),
    ],
)
def test_an_invalid_record_is_an_error_with_its_line(convert, bad, message):
    with pytest.raises(CorpusError, match=f"corpus.in, line 2: .*{message}"):
        convert(FORMAT, lines(record("Q1"), bad))


def test_the_tutorial_of_three_emersons_is_read_whole(convert_real):
    docs, report = convert_real("nel-emerson/emerson_annotated_text.jsonl", read_prodigy_links)
    assert len(docs) == report.links == 30
    assert report.nil == 0 and not report.events
    ids = [doc.ents[0].kb_id_ for doc in docs]
    assert {name: ids.count(name) for name in ids} == {"Q312545": 10, "Q48226": 10, "Q215952": 10}
    assert {doc.ents[0].text for doc in docs} == {"Emerson"}
