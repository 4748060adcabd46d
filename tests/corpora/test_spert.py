"""Words, entities and relations between the numbers of entities."""

import pytest

from spacy_luke.errors import CorpusError

RECORD = {
    "tokens": ["Ina", "Moss", "lives", "in", "Tarn", "."],
    "entities": [
        {"type": "Peop", "start": 0, "end": 2},
        {"type": "Loc", "start": 4, "end": 5},
    ],
    "relations": [{"type": "Live_In", "head": 0, "tail": 1}],
    "orig_id": 31,
}
INA, TARN = RECORD["entities"]
LIVES = RECORD["relations"][0]


def record(**changes):
    return {**RECORD, **changes}


def test_entities_and_relations_are_read(convert, spans, relations):
    (doc,), report = convert("conll04", [RECORD])
    assert spans(doc.ents) == [("Ina Moss", "Peop"), ("Tarn", "Loc")]
    assert relations(doc) == [("Ina Moss", "Tarn", "Live_In")]
    assert doc.user_data["id"] == "31"
    assert report.relations == {"Live_In": 1}
    assert not report.events


def test_a_language_without_spaces(convert, spans, relations):
    entities = [{"type": "Peop", "start": 0, "end": 3}, {"type": "Loc", "start": 5, "end": 7}]
    (doc,), report = convert(
        "conll04", [record(tokens=list("王小明住在北京。"), entities=entities)], lang="zh"
    )
    assert doc.text == "王小明住在北京。" and relations(doc) == [("王小明", "北京", "Live_In")]
    assert spans(doc.ents) == [("王小明", "Peop"), ("北京", "Loc")]
    assert sum("joined without spaces" in note for note in report.notes) == 1


def test_the_alias_names_the_tool_whose_format_it_is(convert):
    assert len(convert("spert", [RECORD, RECORD]).docs) == 2


def test_repeated_entities_and_relations_are_taken_once(convert, spans, relations):
    again = {"type": "Live_In", "head": 2, "tail": 1}
    result = convert("conll04", [record(entities=[INA, TARN, INA], relations=[LIVES, again])])
    assert spans(result.docs[0].spans["luke_ner"]) == [("Ina Moss", "Peop"), ("Tarn", "Loc")]
    assert relations(result.docs[0]) == [("Ina Moss", "Tarn", "Live_In")]
    assert result.events == {
        "repeated spans taken once": (1, "record 1"),
        "repeated relations taken once": (1, "record 1"),
    }


def test_several_relations_of_a_pair_and_both_directions_are_kept(convert, relations):
    more = [LIVES, {"type": "Works_In", "head": 0, "tail": 1}, {"type": "Of", "head": 1, "tail": 0}]
    (doc,), _ = convert("conll04", [record(relations=more)])
    assert sorted(relations(doc)) == [
        ("Ina Moss", "Tarn", "Live_In"),
        ("Ina Moss", "Tarn", "Works_In"),
        ("Tarn", "Ina Moss", "Of"),
    ]


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"tokens": ["a"], "relations": []}, "the record has no key 'entities'"),
        ({"tokens": ["a"], "entities": []}, "the record has no key 'relations'"),
        ({"entities": [], "relations": []}, "the record has no key 'tokens'"),
        (record(entities=None), "entities is null, not a list"),
        (record(entities=[INA, {**TARN, "end": 7}]), "entity 1 goes from word 4 to 7, .* 6"),
        (record(entities=[{**INA, "start": 2}]), "entity 0 goes from word 2 to 2"),
        (record(entities=[{**INA, "start": -1}]), "entity 0 goes from word -1 to 2"),
        (record(entities=["Ina"]), "entity 0 is a string, not an object"),
        (record(entities=[{"start": 0, "end": 1}]), "entity 0 has no key 'type'"),
        (record(relations=[{**LIVES, "tail": 2}]), "relation 0 refers to entity 2, .* 2 entities"),
        (record(relations=[{**LIVES, "head": -1}]), "relation 0 refers to entity -1"),
        (record(relations=[{"head": 0, "tail": 1}]), "relation 0 has no key 'type'"),
    ],
)
def test_a_bad_record_is_one_error_that_names_it(convert, bad, message):
    with pytest.raises(CorpusError, match=f"corpus.in, record 2: {message}"):
        convert("conll04", [RECORD, bad])
