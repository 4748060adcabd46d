"""JSON lines with relations and types keep both, or say why not."""

import pytest

from spacy_luke.annotations.types import get_types
from spacy_luke.errors import CorpusError

TEXT = "Ada Lovelace met Lord Byron in London"
WORDS = TEXT.split()
PLACES = {
    "Ada Lovelace": (0, 12),
    "Lovelace": (4, 12),
    "Lord Byron": (17, 27),
    "London": (31, 37),
    "Lord": (17, 21),
    "Lon": (31, 34),
}
TOKENS = [
    {"text": word, "id": i, "start": TEXT.index(word), "end": TEXT.index(word) + len(word)}
    for i, word in enumerate(WORDS)
]


def span(text, label="PER", **more):
    start, end = PLACES[text]
    return {"start": start, "end": end, "label": label, **more}


def record(*spans, relations=(), **more):
    return {"text": TEXT, "spans": list(spans), "relations": list(relations), **more}


def prodigy(head, child, label="met", **more):
    """As Prodigy writes a relation: numbers of tokens, and the spans themselves."""
    sides = {"head": WORDS.index(head.split()[-1]), "child": WORDS.index(child.split()[-1])}
    return {**sides, "head_span": span(head), "child_span": span(child), "label": label, **more}


def bare(head, child, label="met"):
    return {"head": head, "child": child, "label": label}


def plain(head, tail, label="met"):
    (a, b), (c, d) = PLACES[head], PLACES[tail]
    return {"head_start": a, "head_end": b, "tail_start": c, "tail_end": d, "label": label}


ADA, BYRON, LONDON = span("Ada Lovelace"), span("Lord Byron"), span("London", "LOC")
NAME = span("Lovelace", "NAME")
MET = ("Ada Lovelace", "Lord Byron", "met")


@pytest.mark.parametrize(
    "relation",
    [prodigy("Ada Lovelace", "Lord Byron"), plain("Ada Lovelace", "Lord Byron"), bare(1, 4)],
    ids=["Prodigy's spans", "plain offsets", "tokens"],
)
def test_each_form_of_a_relation_is_read(convert, relations, relation):
    (doc,), report = convert("jsonl", [record(ADA, BYRON, relations=[relation], tokens=TOKENS)])
    assert relations(doc) == [MET]
    assert report.relations == {"met": 1}
    assert not report.events


def test_a_token_that_is_not_the_last_finds_the_one_span_around_it(convert, relations):
    line = record(ADA, BYRON, relations=[bare(0, 3)], tokens=TOKENS)
    assert relations(convert("jsonl", [line]).docs[0]) == [MET]


def test_of_two_spans_around_a_token_the_one_that_ends_with_it_is_meant(convert, relations):
    spans = [ADA, span("Lord"), BYRON]
    line = record(*spans, relations=[bare(1, 3)], tokens=TOKENS)
    assert relations(convert("jsonl", [line]).docs[0]) == [("Ada Lovelace", "Lord", "met")]


def test_spans_of_a_relation_may_be_told_by_tokens(convert, relations):
    sides = {
        "head_span": {"token_start": 0, "token_end": 1},
        "child_span": {"token_start": 3, "token_end": 4},
    }
    line = record(ADA, BYRON, relations=[{**sides, "label": "met"}], tokens=TOKENS)
    assert relations(convert("jsonl", [line]).docs[0]) == [MET]


def test_a_relation_between_overlapping_spans_is_kept(convert, relations):
    (doc,), _ = convert("jsonl", [record(ADA, NAME, relations=[plain("Ada Lovelace", "Lovelace")])])
    assert not doc.ents
    assert relations(doc) == [("Ada Lovelace", "Lovelace", "met")]


def test_a_relation_given_twice_is_taken_once(convert, relations):
    twice = [plain("Ada Lovelace", "Lord Byron"), prodigy("Ada Lovelace", "Lord Byron")]
    result = convert("jsonl", [record(ADA, BYRON, relations=twice)])
    assert relations(result.docs[0]) == [MET]
    assert result.events == {"repeated relations taken once": (1, "line 1")}


def test_relations_and_types_that_their_score_denies_are_left_out_and_counted(convert, relations):
    denied = {**plain("Lord Byron", "Ada Lovelace", "married"), "score": 0.0}
    given = [{**plain("Ada Lovelace", "Lord Byron"), "score": 1.0}, denied]
    ada = {**ADA, "types": ["/person", "/place"], "type_scores": [1.0, 0.25]}
    result = convert("jsonl", [record(ada, BYRON, relations=given)])
    assert relations(result.docs[0]) == [MET]
    assert get_types(result.docs[0].ents[0]) == {"/person": 1.0}
    assert result.events == {
        "relations left out: their score is below 0.5": (1, "line 1"),
        "types left out: their score is below 0.5": (1, "line 1"),
    }
    with pytest.raises(CorpusError, match="line 1: span 0 has 2 types, and 1 type_scores"):
        convert("jsonl", [record({**ada, "type_scores": [1.0]})])


def test_what_may_be_annotation_under_another_key_is_counted(convert):
    ada = {**ADA, "type": ["/person"], "id": 7}
    more = {"rels": [plain("Ada Lovelace", "Lord Byron")], "title": "x", "_timing": {"a": 1}}
    result = convert("jsonl", [{**record(ada, BYRON), **more, "cats": {}}])
    assert result.events == {
        "rels not read": (1, "line 1"),
        "span's type not read": (1, "line 1"),
    }


def test_a_relation_of_a_span_that_does_not_align_is_left_out_and_counted(convert, relations):
    cut = record(ADA, span("Lon", "LOC"), relations=[plain("Ada Lovelace", "Lon")])
    result = convert("jsonl", [record(ADA), cut])
    assert relations(result.docs[1]) == []
    assert result.events == {
        "spans left out: they cut a token (alignment strict)": (1, "line 2"),
        "relations left out: one of their spans was": (1, "line 2"),
    }


@pytest.mark.parametrize("alignment, tail", [("expand", "London"), ("split", "Lon")])
def test_a_relation_follows_its_span_to_other_tokens(convert, relations, alignment, tail):
    line = record(ADA, span("Lon", "LOC"), relations=[plain("Ada Lovelace", "Lon")])
    (doc,), _ = convert("jsonl", [line], alignment=alignment)
    assert relations(doc) == [("Ada Lovelace", tail, "met")]


def test_types_of_spans_are_kept_and_none_is_not_absence(convert):
    lines = [record({**ADA, "types": ["/person", "/person/poet"]}, {**BYRON, "types": []}, LONDON)]
    (doc,), report = convert("jsonl", lines)
    ada, byron, london = doc.ents
    assert ada._.types == {"/person": 1.0, "/person/poet": 1.0}
    assert byron._.types == {} and get_types(byron) is not None
    assert get_types(london) is None
    assert report.types == {"/person": 1, "/person/poet": 1}
    assert report.typed_spans == 2


def test_types_follow_their_span_to_other_tokens_or_go_with_it(convert):
    line = record(span("Lon", "LOC", types=["/place"]))
    (doc,), _ = convert("jsonl", [line], alignment="expand")
    assert doc.ents[0]._.types == {"/place": 1.0}
    (doc,), report = convert("jsonl", [line])
    assert not doc.user_data and not report.typed_spans


def test_a_repeated_span_joins_its_types(convert):
    result = convert("jsonl", [record({**ADA, "types": ["/a"]}, {**ADA, "types": ["/b"]})])
    assert result.docs[0].ents[0]._.types == {"/a": 1.0, "/b": 1.0}
    assert result.events == {
        "repeated spans taken once": (1, "line 1"),
        "types given more than once for the same place, put together": (1, "line 1"),
    }


def labelled(**more):
    return {"label": "met", **more}


@pytest.mark.parametrize(
    "relation, message",
    [
        ("met", "relation 0 is a string, not an object"),
        ({"head": 1, "child": 4}, "relation 0 has no key 'label'"),
        (bare(1, 4, ""), "relation 0 has an empty label"),
        (labelled(), "relation 0 has no key 'head'"),
        (labelled(head=1), "relation 0 has no key 'child'"),
        (labelled(head=1, tail=4), "relation 0 has no key 'child'"),
        (bare(1, 7), "child of relation 0 is token 7, but the record has 7 tokens"),
        (bare(-1, 4), "head of relation 0 is token -1"),
        (bare("1", 4), "head of relation 0 is a string, not a whole number"),
        (bare(2, 4), "head of relation 0 \\(token 2\\) does not identify a span"),
        (plain("Ada Lovelace", "London"), "its tail, 31 to 37, is not one of the record's spans"),
        (prodigy("London", "Lord Byron"), "its head, 31 to 37, is not one of the record's spans"),
        (labelled(head_start=0, head_end=12, tail_start=3), "relation 0 has no key 'tail_end'"),
        (labelled(head_span=4), "head_span of relation 0 is a whole number, not an object"),
        (labelled(head_span={"start": 0}), "head_span of relation 0 has no key 'end'"),
        (
            labelled(head_span={"token_start": 1, "token_end": 0}),
            "head_span of relation 0 goes from token 1 to 0",
        ),
    ],
)
def test_what_cannot_be_matched_is_one_error_that_names_the_line(convert, relation, message):
    bad = record(ADA, BYRON, relations=[relation], tokens=TOKENS)
    with pytest.raises(CorpusError, match=f"corpus.in, line 2: .*{message}"):
        convert("jsonl", [record(ADA), bad])


def test_a_token_in_two_spans_and_the_last_of_none_is_an_error(convert):
    spans = [ADA, NAME, BYRON]
    with pytest.raises(
        CorpusError, match="head of relation 0 \\(token 1\\) does not identify a span"
    ):
        convert("jsonl", [record(*spans, relations=[bare(1, 4)], tokens=TOKENS)])


def test_numbers_of_tokens_need_tokens(convert):
    with pytest.raises(CorpusError, match="relation 0 has no head_span, .* no tokens"):
        convert("jsonl", [record(ADA, BYRON, relations=[bare(1, 4)])])


@pytest.mark.parametrize(
    "types, message",
    [
        ("/person", "types of span 0 is a string, not a list"),
        ([1], "types of span 0 contains a whole number at 0"),
        (["/a", ""], "types of span 0 contains an empty name"),
    ],
)
def test_bad_types_are_one_error_that_names_the_line(convert, types, message):
    with pytest.raises(CorpusError, match=f"corpus.in, line 1: {message}"):
        convert("jsonl", [record({**ADA, "types": types})])
