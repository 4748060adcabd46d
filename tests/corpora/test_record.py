"""Passages with entities, and queries with a gap, in both shapes of ReCoRD."""

import json

import pytest

from spacy_luke.annotations.queries import get_completions, get_queries, has_completions
from spacy_luke.corpora.record import read_record
from spacy_luke.errors import CorpusError

TEXT = "Ada met Bob in Rome.\n@highlight\nBob left."
QUERY = "@placeholder stayed."
# As in SuperGLUE: one object per line, ends inclusive.
SUPERGLUE = """\
{"source": "Daily mail", "passage": {"text": "Ada met Bob in Rome.\\n@highlight\\nBob left.", \
"entities": [{"start": 0, "end": 2}, {"start": 8, "end": 10}, {"start": 15, "end": 18}, \
{"start": 32, "end": 34}]}, "qas": [{"query": "@placeholder stayed.", "answers": \
[{"start": 0, "end": 2, "text": "Ada"}], "idx": 7}, {"query": "Who left @placeholder?", \
"answers": [{"start": 15, "end": 18, "text": "Rome"}], "idx": 8}], "idx": 4}
{"source": "CNN", "passage": {"text": "Eve sang.", "entities": [{"start": 0, "end": 2}]}, \
"qas": [{"query": "@placeholder was heard.", "idx": 9}], "idx": 5}
"""


def entities(exclusive=False):
    places = [(0, 3), (8, 11), (15, 19), (32, 35)]
    return [{"start": a, "end": b - (not exclusive)} for a, b in places]


def qa(query=QUERY, answers=((0, 2, "Ada"),), **more):
    found = [dict(zip(("start", "end", "text"), answer)) for answer in answers]
    return {"id": "q", "query": query, "answers": found, **more}


def record(*queries, **passage):
    passage = {"text": TEXT, "entities": entities(), **passage}
    return {"id": "r", "passage": passage, "qas": list(queries)}


def original(*records):
    return json.dumps({"version": "1.0", "data": list(records)}, indent=1)


def described(doc):
    return [
        (x.query, [(y.text, [z.start_char for z in y.mentions], y.score) for y in x.candidates])
        for x in get_completions(doc)
    ]


def test_the_original_shape(convert, spans):
    both = [(8, 10, "Bob"), (32, 34, "Bob")]
    (doc,), report = convert("record", original(record(qa(), qa(answers=both))))
    assert doc.text == TEXT.replace("\n", " ")
    assert spans(doc.ents) == [(x, "MENTION") for x in ("Ada", "Bob", "Rome", "Bob")]
    assert [x.candidates for x in get_queries(doc)] == [None, None]
    assert described(doc) == [(QUERY, [("Ada", [0], 1.0)]), (QUERY, [("Bob", [8, 32], 1.0)])]
    assert (doc.user_data["id"], [*doc.user_data["query_ids"]]) == ("r", ["q", "q"])
    notes = "2 queries, 2 of them with answers; ends are inclusive, by the texts of 3 answers"
    assert notes in report.notes and not report.events


def test_the_shape_of_superglue(convert):
    (one, two), report = convert("record", SUPERGLUE)
    assert [x.text for x in one.ents] == ["Ada", "Bob", "Rome", "Bob"]
    assert [x.best.text for x in get_completions(one)] == ["Ada", "Rome"]
    assert (one.user_data["id"], [*one.user_data["query_ids"]]) == (4, [7, 8])
    # Test data have no answers.
    assert len(get_queries(two)) == 1 and not has_completions(two)
    assert any("3 queries, 2 of them with answers" in x for x in report.notes)


def test_ends_are_what_the_texts_of_answers_say(convert):
    data = record(qa(answers=[(0, 3, "Ada")]), entities=entities(exclusive=True))
    (doc,), report = convert("record", original(data))
    assert [x.text for x in doc.ents] == ["Ada", "Bob", "Rome", "Bob"]
    assert described(doc) == [(QUERY, [("Ada", [0], 1.0)])]
    assert any("ends are exclusive, by the texts of 1 answers" in x for x in report.notes)


def test_what_is_lost_is_counted(convert):
    queries = [
        qa(),
        qa("No gap."),
        qa("@placeholder and @placeholder"),
        qa(answers=[(1, 3, "Bob")]),
        qa(answers=[(4, 6, "met")]),
        qa(answers=[(1, 3, "Zoe")]),
    ]
    data = record(*queries, entities=[*entities(), {"start": 90, "end": 93}])
    result = convert("record", original(data))
    assert result.events == {
        "entities left out: not in the text": (1, "record 1"),
        "queries left out: without a placeholder": (1, "record 1"),
        "queries left out: with several placeholders": (1, "record 1"),
        "answers that are not at their offsets, taken by their text": (2, "record 1"),
        "queries none of whose answers is an entity": (2, "record 1"),
    }
    (doc,) = result.docs
    found = [items for _, items in described(doc)]
    assert [x[0][:2] for x in found] == [
        ("Ada", [0]),
        ("Bob", [8, 32]),
        ("met", [4]),
        ("Zoe", []),
    ]


def test_a_passage_may_have_no_entities_and_no_queries(convert):
    (doc, bare), _ = convert(
        "record", original(record(qa(answers=()), entities=[]), record(text=" ", entities=[]))
    )
    assert len(get_queries(doc)) == 1 and not doc.ents and not has_completions(doc)
    assert get_queries(bare) == ()


@pytest.mark.parametrize(
    "content,says",
    [
        ('{"version": "1.1", "rows": []}', "no key 'passage'; its keys are 'version', 'rows'"),
        ('{\n"version": "1.1"}', "no key 'data'; its keys are 'version'"),
        ('{"data": {}}', "data is an object, not a list"),
        ('{"data": [{"paragraphs": []}]}', "record 1.*no key 'passage'; its keys are 'paragraphs'"),
        ('{"passage": {}, "qas": []}', "no key 'text'; it is empty"),
        ('{"passage": "x", "qas": []}', "passage is a string"),
        ('{"passage": {"text": "x"}}', "no key 'qas'"),
        ('{"passage": {"text": "x", "entities": [{"start": 0}]}, "qas": []}', "no key 'end'"),
        ('{"passage": {"text": "x"}, "qas": [{"answers": []}]}', "no key 'query'"),
        ('{"passage": {"text": "x"}, "qas": [{"query": "@placeholder", "answers": [{}]}]}', "text"),
        ("[1]", "not an object"),
        ("nothing", "line 1: not JSON"),
        ("", "is empty"),
    ],
)
def test_other_files_are_errors_with_their_keys(convert, content, says):
    with pytest.raises(CorpusError, match=says):
        convert("record", content)


def test_the_wikinews_set(convert_real):
    docs, report = convert_real("cloze-wikinews/cloze-a.json", read_record)
    assert len(docs) == 179 and not report.events
    assert report.labels["MENTION"] == 1971
    for doc in docs:
        (completions,) = get_completions(doc)
        for answer in completions.candidates:
            assert [x.text for x in answer.mentions] == [answer.text] * len(answer.mentions)
            assert {(x.start, x.end) for x in answer.mentions} <= {
                (x.start, x.end) for x in doc.ents
            }


def test_offsets_may_count_units_of_utf16(convert, spans):
    """As those of JavaScript; the unit is that with which more entities fit tokens."""
    text = "\U0001f600\U0001f600 Ada met Bob in Rome."
    ends = [{"start": start, "end": end} for start, end in ((5, 7), (13, 15), (20, 23))]
    passage = {"text": text, "entities": ends}
    (doc,), report = convert("record", original(record(qa(answers=[]), **passage)))
    assert [x.text for x in doc.ents] == ["Ada", "Bob", "Rome"]
    assert any("offsets count utf16" in note for note in report.notes)
    (doc,), _ = convert("record", original(record(qa(answers=[]), **passage)), offsets="characters")
    assert [x.text for x in doc.ents][0] == "a m"


def test_exclusive_ends_in_units_of_utf16_are_known_by_the_answers(convert):
    text = "\U0001f600\U0001f600 Ada met Bob in Rome."
    ends = [{"start": start, "end": end} for start, end in ((5, 8), (13, 16), (20, 24), (1, 2))]
    found = convert(
        "record", original(record(qa(answers=[(20, 24, "Rome")]), text=text, entities=ends))
    )
    assert [x.text for x in found.docs[0].ents] == ["Ada", "Bob", "Rome"]
    assert any("ends are exclusive" in note for note in found.report.notes)
    assert "entities left out: not in the text" in found.report.events  # inside a character
