"""Doccano's exports become documents, whatever their offsets count and their version."""

import json
import time

import pytest

from spacy_luke.errors import CorpusError

FORMAT = "doccano"
TEXT = "Ada met Bob in Köln."
EMOJI = "🚀🚀 Ada 👍 in Rome"
ADA, ROME = (3, 6), (12, 16)  # characters


def lines(*records):
    return "\n".join(json.dumps(record) for record in records)


def entity(number, start, end, label="PER"):
    return {"id": number, "label": label, "start_offset": start, "end_offset": end}


def relation(head, tail, label="met"):
    return {"id": 1, "from_id": head, "to_id": tail, "type": label}


def test_a_text_with_labels(convert, spans):
    record = {"id": 5, "text": TEXT, "label": [[0, 3, "PER"], [15, 19, "LOC"]], "Comments": []}
    (doc,), report = convert(FORMAT, lines({**record, "source": "letter 3"}))
    assert spans(doc.ents) == spans(doc.spans["luke_ner"]) == [("Ada", "PER"), ("Köln", "LOC")]
    assert doc.user_data["id"] == "5" and doc.user_data["meta"] == {"source": "letter 3"}
    assert not report.events


def test_entities_and_relations(convert, relations):
    entities = [entity(11, 0, 3), entity(12, 8, 11)]
    record = {"id": 5, "text": TEXT, "entities": entities, "relations": [relation(12, 11)]}
    (doc,), report = convert(FORMAT, lines(record))
    assert relations(doc) == [("Bob", "Ada", "met")]
    assert not report.events


def test_relations_without_their_spans_are_counted(convert, relations):
    entities = [entity(1, 0, 3), entity(2, 9, 11), entity(3, 5, 5)]
    found = [relation(1, 2), relation(1, 3), relation(1, 9), relation(1, 1)]
    record = {"text": TEXT, "entities": entities, "relations": found}
    result = convert(FORMAT, lines(record))
    assert relations(result.docs[0]) == []
    assert result.events == {
        "relations left out: an id of theirs has no span": (1, "line 1"),
        "spans left out: they contain no character": (1, "line 1"),
        "spans left out: they cut a token (alignment strict)": (1, "line 1"),
        "relations left out: one of their spans was": (2, "line 1"),
        "relations left out: both sides are the same span": (1, "line 1"),
    }


def test_a_meta_that_is_not_an_object_is_kept(convert):
    records = [{"text": TEXT, "label": [], "meta": meta} for meta in ("letter 3", None)]
    docs, _ = convert(FORMAT, lines(*records))
    assert [doc.user_data.get("meta") for doc in docs] == [{"meta": "letter 3"}, None]


def test_intents_are_read_with_their_spans(convert, spans):
    record = {"text": TEXT, "entities": [[15, 19, "City"]], "cats": ["travel"]}
    (doc,), _ = convert(FORMAT, lines(record))
    assert spans(doc.ents) == [("Köln", "City")]
    assert "meta" not in doc.user_data


def test_exports_of_early_versions(convert, spans):
    marks = [{"label": 7, "start_offset": 0, "end_offset": 3, "user": user} for user in (2, 1)]
    result = convert(
        FORMAT,
        lines(
            {"id": 1, "text": TEXT, "labels": [[0, 3, "PER"]], "meta": {"a": 1}},
            {"id": 2, "text": TEXT, "annotations": marks, "meta": {}, "annotation_approver": None},
        ),
    )
    assert [spans(doc.ents) for doc in result.docs] == [[("Ada", "PER")], [("Ada", "7")]]
    assert [doc.user_data.get("meta") for doc in result.docs] == [{"a": 1}, None]
    assert [count for count, _ in result.events.values()] == [1, 1]
    assert "texts annotated by several users, of whom the first is taken" in result.events


def in_utf16(place):
    return [len(EMOJI[:edge].encode("utf-16-le")) // 2 for edge in place]


@pytest.mark.parametrize("unit, change", [("utf16", in_utf16), ("characters", list)])
@pytest.mark.parametrize("given", [True, False])
def test_the_unit_of_offsets_is_detected_or_given(convert, spans, unit, change, given):
    label = [[*change(ADA), "PER"], [*change(ROME), "LOC"]]
    options = {"offsets": unit} if given else {}
    (doc,), report = convert(FORMAT, lines({"text": EMOJI, "label": label}), **options)
    assert spans(doc.ents) == [("Ada", "PER"), ("Rome", "LOC")]
    assert (
        any(note.startswith(f"offsets count {unit}: of 2 spans") for note in report.notes) != given
    )


def test_the_page_counts_utf16_units_if_both_fit(convert, spans):
    text = "🚀北京大学"
    (doc,), report = convert(FORMAT, lines({"text": text, "label": [[3, 4, "X"]]}), lang="zh")
    assert spans(doc.ents) == [("京", "X")]  # or 大
    assert [x for x in report.events if "fit as utf16 and as characters alike" in x]


@pytest.mark.parametrize("lang", ["zh", "xx"])  # every character is a token, or all are one
@pytest.mark.parametrize("unit, shift", [("characters", 0), ("utf16", 2)])
def test_letters_at_their_ends_decide_where_tokens_do_not(convert, spans, lang, unit, shift):
    text = "😀😀王小明住在北京。"
    label = [[2 + shift, 5 + shift, "PER"], [7 + shift, 9 + shift, "LOC"]]
    (doc,), report = convert(
        FORMAT, lines({"text": text, "label": label}), lang=lang, alignment="split"
    )
    assert spans(doc.ents) == [("王小明", "PER"), ("北京", "LOC")]
    assert any(x.startswith(f"offsets count {unit}: of 2 spans") for x in report.notes)
    assert not any("alike" in x for x in report.events)


def test_an_offset_inside_a_character_is_an_error(convert):
    content = lines({"text": "🚀 a", "label": [[1, 2, "X"]]})
    with pytest.raises(CorpusError, match="line 1: the offset 1, in UTF-16 units, is inside"):
        convert(FORMAT, content, offsets="utf16")


@pytest.mark.parametrize(
    "record, message",
    [
        ({"text": TEXT, "spans": []}, "none of the keys entities, label.*its keys are 'text', 'sp"),
        ({"text": TEXT}, "none of the keys"),
        ({"data": TEXT, "label": []}, "has no key 'text'; its keys are 'data', 'label'"),
        ({"text": TEXT, "label": ["positive"]}, "label of the record is a list of classes"),
        ({"text": TEXT, "label": "positive"}, "label is a string, not a list"),
        ({"text": TEXT, "label": [[0, 3]]}, r"label 0 is \[0, 3\], not a start"),
        ({"text": TEXT, "label": [[0, "3", "X"]]}, "label 0 is"),
        ({"text": TEXT, "label": [[0, 3, None]]}, "the label of label 0 is null"),
        ({"text": TEXT, "label": [[0, 3, ""]]}, "span 0 has an empty label"),
        ({"text": TEXT, "label": [[0, 30, "X"]]}, r"span 0 \(X\) goes from 0 to 30"),
        ({"text": TEXT, "label": [[-2, -2, "X"]]}, "goes from -2 to -2"),
        ({"text": TEXT, "entities": [{"label": "X"}]}, "entities 0 has no key 'start_offset'"),
        ({"text": TEXT, "entities": [entity(1, 0, 3), entity(1, 8, 11)]}, "has the id 1"),
        ({"text": TEXT, "entities": [entity([1], 0, 3)]}, "the id of entities 0 is a list"),
        ({"text": TEXT, "label": [], "relations": [{"id": 1}]}, "relation 0 has no key 'from_id'"),
        ({"text": "a\ud800", "label": []}, "an unpaired surrogate"),
        ({"text": "🚀\ud800", "label": []}, "an unpaired surrogate"),
    ],
)
def test_invalid_records_name_their_line(convert, record, message):
    good = {"text": TEXT, "label": []}
    with pytest.raises(CorpusError, match=f"corpus.in, line 2: .*{message}"):
        convert(FORMAT, lines(good, record))


def test_reports_and_errors_name_the_id_of_the_text(convert):
    cut = {"id": 41, "text": TEXT, "label": [[0, 2, "PER"]]}
    result = convert(FORMAT, lines({"text": TEXT, "label": []}, cut))
    assert [place for _, place in result.events.values()] == ["line 2, id 41"]
    with pytest.raises(CorpusError, match="line 1, id 41: span 0 has an empty label"):
        convert(FORMAT, lines({**cut, "label": [[0, 2, ""]]}))


def test_a_second_key_of_spans_is_counted(convert):
    record = {"text": TEXT, "entities": [], "relations": [], "label": [[0, 3, "PER"]]}
    result = convert(FORMAT, lines(record))
    assert result.events == {"label not read: the spans are those at entities": (1, "line 1")}


def test_a_text_may_be_longer_than_the_limit_of_spacy(convert, spans):
    text = "🚀 Ada ran." + "\n" * 1_000_000
    (doc,), _ = convert(FORMAT, lines({"text": text, "label": [[3, 6, "PER"]]}))
    assert spans(doc.ents) == [("Ada", "PER")]


def test_a_long_text_with_many_spans_is_read_in_time(convert):
    text = "🚀 " + "Ada ran . " * 20_000
    label = [[3 + 10 * i, 6 + 10 * i, "PER"] for i in range(2_000)]
    start = time.perf_counter()
    (doc,), _ = convert(FORMAT, lines({"text": text, "label": label}))
    assert len(doc.ents) == 2_000
    assert time.perf_counter() - start < 20  # it took minutes if every span read the whole text


def test_an_id_that_is_not_unicode_is_an_error(convert):
    """It could not be saved."""
    with pytest.raises(CorpusError, match="line 1, id .: an unpaired surrogate"):
        convert(FORMAT, lines({"id": "\ud800", "text": TEXT, "label": []}))
