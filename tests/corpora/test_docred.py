"""Documents whose entities have several mentions, and relations between entities."""

import pytest

from spacy_luke.annotations.annotated import annotated_labels
from spacy_luke.errors import CorpusError


def mention(sentence, start, end, kind, **more):
    return {"sent_id": sentence, "pos": [start, end], "type": kind, **more}


RECORD = {
    "title": "Otto Brandl",
    "sents": [["Otto", "Brandl", "lived", "in", "Selm", "."], ["Brandl", "left", "Selm", "."]],
    "vertexSet": [
        [mention(1, 0, 1, "PER", name="Brandl"), mention(0, 0, 2, "PER", name="Otto Brandl")],
        [mention(0, 4, 5, "LOC", name="Selm"), mention(1, 2, 3, "LOC", name="Selm")],
    ],
    "labels": [{"h": 0, "t": 1, "r": "P551", "evidence": [0]}],
}
OTTO, SELM = RECORD["vertexSet"]
LABEL = RECORD["labels"][0]


def record(**changes):
    return {**RECORD, **changes}


def test_mentions_of_an_entity_share_its_number(convert, spans):
    (doc,), report = convert("docred", [RECORD])
    assert spans(doc.ents) == [
        ("Otto Brandl", "PER", "0"),
        ("Selm", "LOC", "1"),
        ("Brandl", "PER", "0"),
        ("Selm", "LOC", "1"),
    ]
    assert sorted(spans(doc.spans["luke_ner"])) == sorted(spans(doc.ents))
    assert (report.documents, report.sentences, report.tokens) == (1, 2, 10)
    assert not report.events


def test_sentences_and_title_are_kept(convert):
    (doc,), _ = convert("docred", [record(sents=[*RECORD["sents"], [], ["End", "."]])])
    assert [sent.start for sent in doc.sents] == [0, 6, 10]
    assert doc.user_data["title"] == "Otto Brandl"


def test_a_relation_is_kept_once_between_first_mentions(convert, relations):
    (doc,), report = convert("docred", [RECORD])
    assert relations(doc) == [("Otto Brandl", "Selm", "P551")]
    assert [(r.head.start, r.tail.start) for r in doc._.relations] == [(0, 4)]
    assert report.relations == {"P551": 1}


@pytest.mark.parametrize("labels", [{}, {"labels": None}])
def test_relations_of_documents_without_labels_are_unknown_and_it_is_said(convert, labels):
    bare = {key: value for key, value in RECORD.items() if key != "labels"}
    (doc,), report = convert("docred", [{**bare, **labels}])
    assert doc._.relations == () and len(doc.ents) == 4
    assert annotated_labels(doc, "relations") == frozenset()
    note = "1 documents have no labels: their relations are unknown, neither learned nor scored"
    assert note in report.notes
    (empty,), _ = convert("docred", [{**bare, "labels": []}])
    assert annotated_labels(empty, "relations") is None


def test_a_mention_given_twice_is_merged_and_the_first_type_wins(convert, spans):
    twice = [*OTTO, OTTO[0], {**OTTO[1], "type": "ORG"}]
    result = convert("docred", [record(vertexSet=[twice, SELM])])
    assert spans(result.docs[0].ents)[0] == ("Otto Brandl", "PER", "0")
    assert len(result.docs[0].ents) == 4
    assert result.events == {
        "repeated mentions of an entity taken once": (1, "record 1"),
        "repeated mentions of an entity taken once, with the first type": (1, "record 1"),
    }


def test_entities_that_share_a_place_are_in_the_group_only(convert, spans, relations):
    other = [mention(0, 0, 2, "PER")]
    labels = [LABEL, {"h": 2, "t": 1, "r": "P551"}, {"h": 0, "t": 2, "r": "P361"}]
    result = convert("docred", [record(vertexSet=[OTTO, SELM, other], labels=labels)])
    (doc,) = result.docs
    assert ("Otto Brandl", "PER", "2") in spans(doc.spans["luke_ner"])
    assert [ent.text for ent in doc.ents] == ["Selm", "Brandl", "Selm"]
    assert relations(doc) == [("Otto Brandl", "Selm", "P551")]
    assert result.events["repeated relations taken once"] == (1, "record 1")
    assert result.events["relations left out: both sides are the same span"] == (1, "record 1")


def test_nested_mentions_are_in_the_group_and_a_relation_can_be_theirs(convert, relations):
    inner = [mention(0, 1, 2, "PER")]
    labels = [{"h": 2, "t": 1, "r": "P551"}]
    (doc,), _ = convert("docred", [record(vertexSet=[OTTO, SELM, inner], labels=labels)])
    assert relations(doc) == [("Brandl", "Selm", "P551")]
    assert [token.ent_iob_ for token in doc][:3] == ["", "", "O"]


def test_a_name_that_its_words_do_not_say_is_counted(convert, spans):
    wrong = [mention(0, 0, 2, "PER", name="Otto  Brandl"), mention(1, 0, 1, "PER", name="Selm")]
    result = convert("docred", [record(vertexSet=[wrong, SELM])])
    assert ("Brandl", "PER", "0") in spans(result.docs[0].ents)
    what = "mentions whose name is not what their words say, taken by words"
    assert result.events == {what: (1, "record 1")}


def test_an_empty_word_shifts_neither_mentions_nor_sentences(convert, spans):
    sents = [["", *RECORD["sents"][0]], RECORD["sents"][1]]
    first = [mention(0, 1, 3, "PER"), mention(1, 0, 1, "PER")]
    result = convert("docred", [record(sents=sents, vertexSet=[first], labels=[])])
    (doc,) = result.docs
    assert [span[0] for span in spans(doc.ents)] == ["Otto Brandl", "Brandl"]
    assert [sent.start for sent in doc.sents] == [0, 6]


def test_a_relation_of_an_entity_without_mentions_is_left_out_and_counted(convert, relations):
    result = convert("docred", [record(vertexSet=[OTTO, []])])
    assert relations(result.docs[0]) == []
    what = "relations left out: an entity of theirs has no mention"
    assert result.events == {what: (1, "record 1")}


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"vertexSet": []}, "the record has no key 'sents'"),
        ({"sents": [["a"]]}, "the record has no key 'vertexSet'"),
        (record(sents=[]), "the record has no words"),
        (record(sents=["Otto Brandl"]), "sentence 0 is a string, not a list"),
        (record(title=4), "title of the record is a whole number"),
        (record(vertexSet=[{}]), "entity 0 is an object, not a list of mentions"),
        (record(vertexSet=[["Otto"]]), "mention 0 of entity 0 is a string"),
        (record(vertexSet=[[mention(2, 0, 1, "PER")]]), "has sent_id 2, .* 2 sentences"),
        (record(vertexSet=[[mention(-1, 0, 1, "PER")]]), "has sent_id -1"),
        (record(vertexSet=[[mention(1, 2, 5, "PER")]]), "from word 2 to 5, in a sentence of 4"),
        (record(vertexSet=[[mention(0, 3, 1, "PER")]]), "from word 3 to 1"),
        (record(vertexSet=[[{**OTTO[0], "pos": [0]}]]), "pos of .* is \\[0\\], not two whole"),
        (record(vertexSet=[[{"sent_id": 0, "pos": [0, 1]}]]), "has no key 'type'"),
        (
            record(labels=[{**LABEL, "t": 2}]),
            "label 0 refers to entity 2, but the record has 2 entities",
        ),
        (record(labels=[{"h": 0, "t": 1}]), "label 0 has no key 'r'"),
        (record(labels={}), "labels is an object, not a list"),
    ],
)
def test_a_bad_record_is_one_error_that_names_it(convert, bad, message):
    with pytest.raises(CorpusError, match=f"corpus.in, record 2: .*{message}"):
        convert("docred", [RECORD, bad])
