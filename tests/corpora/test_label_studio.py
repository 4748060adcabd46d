"""Label Studio's tasks become documents with the regions and relations of one annotation."""

import json

import pytest

from spacy_luke.errors import ConfigError, CorpusError

FORMAT = "label-studio"
TEXT = "Ada met Bob in Köln."


def region(name, start, end, text, *labels, kind="labels"):
    value = {"start": start, "end": end, "text": text, kind: list(labels)}
    return {"id": name, "from_name": "label", "to_name": "text", "type": kind, "value": value}


ADA, BOB = region("a", 0, 3, "Ada", "PER"), region("b", 8, 11, "Bob", "PER")
COLOGNE = region("c", 15, 19, "Köln", "LOC")


def relation(head, tail, direction="right", *labels):
    sides = {"from_id": head, "to_id": tail}
    return {**sides, "type": "relation", "direction": direction, "labels": list(labels) or ["met"]}


def annotation(*results, **more):
    return {"id": 1, "completed_by": 1, "was_cancelled": False, "result": list(results), **more}


def task(*annotations, text=TEXT, **more):
    return {"id": 9, "data": {"text": text}, "annotations": list(annotations), **more}


def test_regions_are_spans(convert, spans):
    (doc,), report = convert(FORMAT, [task(annotation(ADA, COLOGNE))])
    assert spans(doc.ents) == spans(doc.spans["luke_ner"]) == [("Ada", "PER"), ("Köln", "LOC")]
    assert doc.user_data["id"] == "9"
    assert not report.events


def test_several_labels_of_a_region_are_overlapping_spans(convert, spans):
    (doc,), _ = convert(
        FORMAT, [task(annotation(region("a", 0, 3, "Ada", "PER", "POET"), COLOGNE))]
    )
    assert spans(doc.ents) == [("Köln", "LOC")]
    assert {x[1] for x in spans(doc.spans["luke_ner"])} == {"PER", "POET", "LOC"}


@pytest.mark.parametrize(
    "direction, expected",
    [
        ("right", [("Ada", "Bob", "met")]),
        ("left", [("Bob", "Ada", "met")]),
        ("bi", [("Ada", "Bob", "met"), ("Bob", "Ada", "met")]),
    ],
)
def test_a_relation_has_a_direction(convert, relations, direction, expected):
    (doc,), _ = convert(FORMAT, [task(annotation(relation("a", "b", direction), ADA, BOB))])
    assert relations(doc) == expected


def test_relations_without_label_or_span_are_counted(convert):
    unlabelled = {**relation("a", "b"), "labels": []}
    result = convert(FORMAT, [task(annotation(ADA, BOB, unlabelled, relation("a", "z")))])
    assert result.events == {
        "relations left out: they have no label": (1, "record 1, task 9"),
        "relations left out: an id of theirs has no span": (1, "record 1, task 9"),
    }


def test_the_ground_truth_or_else_the_newest_annotation_is_taken(convert, spans):
    old, new = annotation(ADA, updated_at="2024-01-01"), annotation(BOB, updated_at="2024-01-02")
    truth = annotation(COLOGNE, updated_at="2023-01-01", ground_truth=True)
    result = convert(FORMAT, [task(new, old), {**task(old, truth, new), "id": 10}])
    assert [spans(doc.ents) for doc in result.docs] == [[("Bob", "PER")], [("Köln", "LOC")]]
    what = "annotations left out: another one of the task is the ground truth, or newer"
    assert result.events == {what: (3, "record 1, task 9")}


def test_what_is_not_annotated_is_skipped_and_counted(convert, spans):
    predictions = [{"result": [ADA]}]
    result = convert(
        FORMAT,
        [
            task(annotation(ADA, was_cancelled=True), annotation(BOB)),
            task(annotation(ADA, was_cancelled=True), id=2),
            task(predictions=predictions, id=3),
            task(annotation(), id=4, predictions=predictions),
        ],
    )
    assert [spans(doc.ents) for doc in result.docs] == [[("Bob", "PER")], []]
    assert result.events == {
        "annotations skipped: cancelled": (2, "record 1, task 9"),
        "tasks skipped: not annotated": (1, "record 2, task 2"),
        "tasks skipped: not annotated; predictions are not annotation": (1, "record 3, task 3"),
    }


def test_results_that_are_not_spans_are_counted(convert):
    choice = {"from_name": "c", "to_name": "text", "type": "choices", "value": {"choices": ["x"]}}
    html = region("h", "/p[1]/text()[1]", "/p[1]/text()[1]", "Ada", "PER", kind="hypertextlabels")
    result = convert(FORMAT, [task(annotation(choice, html, region("e", 0, 3, "Ada")))])
    assert set(result.events) == {
        "results not read: choices",
        "spans left out: they are parts of HTML",
        "spans left out: they have no label",
    }


def test_offsets_are_checked_by_the_text_of_the_region(convert, spans):
    text = "🚀🚀 Ada in Rome."
    found = [
        region("a", 5, 8, "Ada", "PER"),
        region("b", 12, 16, "Rome", "LOC"),
        region("c", 0, 90, "Paris", "LOC"),
    ]
    result = convert(FORMAT, [task(annotation(*found), text=text)])
    (doc,) = result.docs
    assert spans(doc.ents) == [("Ada", "PER"), ("Rome", "LOC")]
    assert result.events == {
        "spans whose offsets count UTF-16 units, converted by their text": (2, "record 1, task 9"),
        "spans left out: their text is not at their offsets": (1, "record 1, task 9"),
    }
    assert [token.ent_iob_ for token in doc] == ["", "", "B", "", "B", ""]


def test_a_line_break_is_written_with_a_backslash(convert, spans):
    quoted = region("a", 0, 8, r"Ada\nKing", "PER")
    (doc,), report = convert(FORMAT, [task(annotation(quoted), text="Ada\nKing ran")])
    assert spans(doc.ents) == [("Ada\nKing", "PER")]
    assert not report.events


def unquoted(start, end):
    return {"id": "a", "type": "labels", "value": {"start": start, "end": end, "labels": ["PER"]}}


@pytest.mark.parametrize("unit, place", [("utf16", (3, 6)), ("characters", (2, 5))])
def test_without_the_texts_of_regions_the_unit_of_offsets_is_detected_or_told(
    convert, spans, unit, place
):
    tasks = [task(annotation(unquoted(*place)), text="🚀 Ada ran")]
    (doc,), report = convert(FORMAT, tasks)
    assert spans(doc.ents) == [("Ada", "PER")]
    assert any(note.startswith(f"offsets count {unit}: of 1 spans") for note in report.notes)
    (doc,), report = convert(FORMAT, tasks, offsets=unit)
    assert spans(doc.ents) == [("Ada", "PER")]
    assert not any("offsets count" in note for note in report.notes)
    other = {"utf16": "characters", "characters": "utf16"}[unit]
    assert convert(FORMAT, tasks, offsets=other).events


def test_offsets_count_characters_if_both_units_fit(convert, spans):
    (doc,), _ = convert(FORMAT, [task(annotation(unquoted(3, 4)), text="🚀 (a)")])
    assert spans(doc.ents) == [("a", "PER")]


def test_the_texts_of_regions_tell_what_their_offsets_count(convert):
    _, report = convert(FORMAT, [task(annotation(region("a", 3, 6, "Ada", "PER")), text="🚀 Ada")])
    assert not any("offsets count" in note for note in report.notes)


@pytest.mark.parametrize(
    "data", [{"body": TEXT}, {"title": "On Ada", "body": TEXT}, {"title": 1, "body": TEXT}]
)
def test_the_key_of_the_text_is_found(convert, data):
    (doc,), _ = convert(FORMAT, [{"data": data, "annotations": [annotation(COLOGNE)]}])
    assert doc.text == TEXT


def test_the_other_keys_of_the_data_are_kept(convert):
    letter = {"id": "L7", "title": "On Ada", "url": "https://example.org/7", "year": 1843}
    tasks = [
        task(annotation(COLOGNE)),
        {"id": 10, "data": {"text": TEXT, **letter}, "annotations": [annotation()]},
        {"id": 11, "data": {"text": TEXT, "n": 1, "meta": {"a": 2}}, "annotations": [annotation()]},
    ]
    docs, _ = convert(FORMAT, tasks)
    assert [doc.user_data["id"] for doc in docs] == ["9", "10", "11"]
    assert [doc.user_data.get("meta") for doc in docs] == [None, letter, {"a": 2, "n": 1}]


def test_the_other_keys_of_the_short_export_are_kept(convert):
    ada = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
    (doc,), _ = convert(FORMAT, [minimal(1, 1, ada, title="On Ada", updated_at="")])
    assert doc.user_data["id"] == "9"
    assert doc.user_data["meta"] == {"title": "On Ada", "sentiment": "good"}


def test_a_task_without_regions_has_its_text_where_other_tasks_have_it(convert):
    told = {"data": {"title": "On Ada", "body": TEXT}, "annotations": [annotation(COLOGNE)]}
    silent = {"data": {"title": "On Bea", "body": "Bea slept."}, "annotations": [annotation()]}
    docs, _ = convert(FORMAT, [silent, told])
    assert [doc.text for doc in docs] == ["Bea slept.", TEXT]
    other = {"data": {"title": TEXT, "body": "?"}, "annotations": [annotation(COLOGNE)]}
    with pytest.raises(CorpusError, match="record 1: .*not one other key with a text"):
        convert(FORMAT, [silent, told, other])


def test_the_key_of_the_text_may_be_given(convert):
    tasks = [{"data": {"text": "x", "body": TEXT}, "annotations": [annotation(COLOGNE)]}]
    (doc,), _ = convert(FORMAT, tasks, fields=(("text", "body"),))
    assert doc.text == TEXT
    with pytest.raises(CorpusError, match="no text at 'title'; its keys are 'text', 'body'"):
        convert(FORMAT, tasks, fields=(("text", "title"),))
    with pytest.raises(ConfigError, match="fields is .label.; choose one of text"):
        convert(FORMAT, tasks, fields=(("label", "title"),))


def minimal(number, annotator, *values, **more):
    controls = {"label": list(values)} if values else {}
    meta = {"annotator": annotator, "annotation_id": number, "created_at": "", "lead_time": 1.5}
    return {"text": TEXT, "id": 9, **controls, "sentiment": "good", **meta, **more}


def test_the_short_export_is_read(convert, spans):
    ada = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
    result = convert(
        FORMAT,
        [
            minimal(1, 1, ada, updated_at="2024-01-02"),
            minimal(2, 2, updated_at="2024-01-01"),
            minimal(3, 1, id=10),
            minimal(None, {}, id=11),
        ],
    )
    assert [spans(doc.ents) for doc in result.docs] == [[("Ada", "PER")], []]
    assert [doc.user_data["id"] for doc in result.docs] == ["9", "10"]
    assert [count for count, _ in result.events.values()] == [1, 1]


@pytest.mark.parametrize(
    "bad, message",
    [
        (
            {"text": TEXT, "label": []},
            "neither 'data' nor 'annotation_id'; its keys are 'text', 'l",
        ),
        ({"data": {"text": TEXT}}, "has no key 'annotations'; its keys are 'data'"),
        ({"data": TEXT, "annotations": []}, "data of the record is a string"),
        (task("x"), "annotation 0 is a string"),
        (task({"id": 1}), "has no key 'result'"),
        (task(annotation("x")), "result 0 is a string"),
        (task(annotation({"type": "labels"})), "value of result 0 is null"),
        (task(annotation(region("a", 0, None, "Ada", "PER"))), "end of result 0 is null"),
        (task(annotation(region("a", 0, 3, None, ""))), "result 0 has an empty label"),
        (task(annotation(region("a", 0, 33, None, "X"))), r"result 0 \(X\) goes from 0 to 33"),
        (task(annotation(region(["a"], 0, 3, None, "X"))), "the id of result 0"),
        (task(annotation(ADA, region("a", 8, 11, "Bob", "PER"))), "has the id 'a'"),
        (task(annotation(ADA, relation("a", "a", "up"))), "direction of result 1 is 'up'"),
        (task(annotation(ADA, relation("a", "a", ["right"]))), r"direction of result 1 is \['rig"),
        (task(annotation(region("a", 0, 3, 1886, "X"))), "text of result 0 is a whole number"),
        (
            {"data": {"n": 1}, "annotations": [annotation()]},
            "its keys are 'n'. Give the key, as in",
        ),
        (
            {"data": {"a": "x", "b": "y"}, "annotations": [annotation()]},
            "not one other key with a text; its keys are 'a', 'b'",
        ),
    ],
)
def test_invalid_tasks_name_their_record(convert, bad, message):
    with pytest.raises(CorpusError, match=f"corpus.in, record 2, task 77: .*{message}"):
        convert(FORMAT, json.dumps([task(annotation(ADA)), {**bad, "id": 77}]))


def test_tasks_of_several_projects_may_have_the_same_id(convert):
    other = "Eve ran."
    full = convert(FORMAT, [task(annotation(ADA)), task(annotation(), text=other)])
    first = {"start": 0, "end": 3, "labels": ["PER"]}
    short = convert(FORMAT, [minimal(1, 1, first), minimal(1, 1, first, text=other)])
    assert [doc.text for doc in full.docs] == [doc.text for doc in short.docs] == [TEXT, other]
    assert not full.events and not short.events


def test_a_file_without_any_labelled_part_of_a_text_is_an_error(convert):
    choice = {"from_name": "c", "to_name": "text", "type": "choices", "value": {"choices": ["x"]}}
    with pytest.raises(CorpusError, match="no labelled part of a text; types of results: choices"):
        convert(FORMAT, [task(annotation(choice))])
    with pytest.raises(CorpusError, match="no labelled part of a text; types of results: none"):
        convert(FORMAT, [minimal(1, 1)])
    docs, _ = convert(FORMAT, [task(annotation(choice)), task(annotation(ADA))])
    assert [len(doc.ents) for doc in docs] == [0, 1]


@pytest.mark.parametrize("text", ["https://example.org/1.txt", "/data/upload/1/letter.txt"])
def test_the_address_of_a_text_is_not_the_text(convert, text):
    region_ = region("a", 0, 3, None, "PER")
    with pytest.raises(CorpusError, match=f"the address of its text, '{text}', not the text"):
        convert(FORMAT, [task(annotation(region_), text=text)])


def test_regions_of_another_text_of_the_task_are_left_out(convert, spans):
    data = {"title": "Ada and Eve", "body": TEXT}
    eve = {**region("e", 8, 11, "Eve", "PER"), "to_name": "title"}
    short = {**region("t", 0, 3, "Ada", "TITLE"), "to_name": "title"}
    met = relation("a", "e")
    tasks = [{"id": 1, "data": data, "annotations": [annotation(ADA, BOB, eve, short, met)]}]
    result = convert(FORMAT, tasks, fields=(("text", "body"),))
    assert spans(result.docs[0].ents) == [("Ada", "PER"), ("Bob", "PER")]
    assert {what: count for what, (count, _) in result.events.items()} == {
        "spans left out: they are of another text of the task": 2,
        "relations left out: one of their spans was": 1,
    }
    same = {**region("t", 0, 3, "Ada", "TITLE"), "to_name": "title"}
    tasks[0]["annotations"] = [annotation(ADA, same)]
    with pytest.raises(CorpusError, match=r"of several texts \('text', 'title'\), and it cannot"):
        convert(FORMAT, tasks, fields=(("text", "body"),))


def title(name, start, end, text):
    return {**region(name, start, end, text, "TOPIC"), "to_name": "title"}


def titled(title_, text, *results):
    data = {"title": title_, "text": text}
    return {"id": title_, "data": data, "annotations": [annotation(*results)]}


def test_all_tasks_tell_which_regions_are_of_the_text(convert, spans):
    """Also of a task in which only the title has regions, whose words are in the text, too."""
    ada = region("a", 8, 11, "Ada", "PER")
    tasks = [
        titled("Paris", "She met Ada.", title("t", 0, 5, "Paris"), ada),
        titled("London news", "London is large.", title("t", 0, 6, "London")),
        titled("Bob", "Bob. Met Ada.", title("t", 0, 3, "Bob"), region("a", 9, 12, "Ada", "PER")),
    ]
    result = convert(FORMAT, tasks)
    assert [spans(doc.ents) for doc in result.docs] == [[("Ada", "PER")], [], [("Ada", "PER")]]
    (event,) = result.events.items()
    assert event[0] == "spans left out: they are of another text of the task" and event[1][0] == 3


def test_of_texts_that_fit_alike_that_with_the_name_of_the_key_is_read(convert, spans):
    both = titled("Ada", "Ada ran.", title("t", 0, 3, "Ada"), region("a", 0, 3, "Ada", "PER"))
    (doc,) = convert(FORMAT, [both]).docs
    assert spans(doc.ents) == [("Ada", "PER")]


def test_a_region_that_does_not_fit_makes_no_text_another(convert, spans):
    """The words of a title are often at the start of the text, too."""
    tasks = [
        titled("Bob left", "Bob left. Met Ada.", region("a", 14, 17, "Ada", "PER"))
        for _ in range(9)
    ]
    tasks[0]["annotations"][0]["result"].append(title("t", 0, 3, "Bob"))
    tasks[1]["annotations"][0]["result"] = [region("a", 14, 17, "Someone else", "PER")]
    found = [spans(doc.ents) for doc in convert(FORMAT, tasks).docs]
    assert found == [[("Ada", "PER")], [], *[[("Ada", "PER")]] * 7]


def test_projects_may_name_their_text_differently(convert, spans):
    other = {**region("b", 0, 3, "Bob", "PER"), "to_name": "body"}
    moved = {**region("c", 0, 3, "Eve", "PER"), "to_name": "body"}
    tasks = [
        task(annotation(ADA)),
        task(annotation(other), text="Bob ran."),
        task(annotation(moved)),
    ]
    result = convert(FORMAT, tasks)
    assert [spans(doc.ents) for doc in result.docs] == [[("Ada", "PER")], [("Bob", "PER")], []]
