"""What is built: the same bytes every time, and every entity as it was given."""

import math

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_luke.errors import CorpusError
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.entity import Entity
from spacy_luke.kb.knowledge_base import MappedKB
from tests.kb.conftest import ENTITIES, build, found


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_entities_are_what_was_given(kb):
    assert len(kb) == 6 and "8b" in kb and "8c" not in kb
    paris = kb.entity("Q1")
    assert (paris.name, paris.type, paris.count) == ("Paris", "place", 100)
    assert paris.description == "The capital of France."
    assert paris.aliases == {"Paris": 90, "City of Light": 2}
    munich = kb.entity("7")
    assert list(munich.aliases) == ["München", "Munich", "ميونخ", "ミュンヘン"]
    assert all(map(math.isnan, munich.aliases.values()))


def test_the_same_entities_give_the_same_bytes(kb_dir, tmp_path):
    build(tmp_path / "again", ENTITIES)
    assert contents(tmp_path / "again") == contents(kb_dir)
    assert [x.name for x in tmp_path.iterdir() if x.name.startswith(".")] == []


def test_an_empty_file_gives_an_empty_knowledge_base(tmp_path):
    findings = build(tmp_path / "empty", [])
    kb = MappedKB.open(tmp_path / "empty", Vocab())
    assert len(kb) == 0 and kb.is_empty() and found(kb, "Paris") == []
    assert findings.lines() == ["entities: 0"]


def test_the_first_of_two_entities_with_one_id_is_kept(tmp_path):
    records = [{"id": 1, "name": "one"}, {"id": "1", "name": "uno"}, {"id": "2", "name": "two"}]
    findings = build(tmp_path / "kb", records)
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    assert len(kb) == 2 and kb.entity("1").name == "one" and found(kb, "uno") == []
    assert findings.counts["entities left out because an earlier one has their id"] == 1


def test_an_alias_of_too_many_entities_keeps_the_most_frequent_and_is_reported(tmp_path):
    n = 10_000
    records = [{"id": i, "name": f"n{i}", "aliases": ["it"], "count": i % 100} for i in range(n)]
    findings = build(tmp_path / "kb", records, max_meanings=150)
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    lines = "\n".join(findings.lines())
    assert "more than 150 entities: 1 (first: 'it')" in lines
    assert "left out (the least frequent): 9,850 (first: 'it', which means 10,000)" in lines
    meanings = kb.tables.meanings_of_form(kb.tables.forms.find("it"))
    counts = [kb.tables.counts[row] for row in meanings.entities]
    assert sorted(counts) == [98.0] * 50 + [99.0] * 100
    assert [int(kb.tables.ids[x]) for x in meanings.entities[:3]] == [98, 99, 198]
    assert list(kb.entity("0").aliases) == ["n0"]


def test_a_nil_id_of_another_source_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="NIL"):
        build_kb([Entity("NIL", "n", {})], tmp_path / "kb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "entity, message",
    [
        (Entity("a", "\ud800", {}), "'a': name is not valid text"),
        (Entity("a", "n", {"\ud800": 1}), "'a': aliases is not valid text"),
        (Entity("a", "n", {"n": -1.0}), r"'a': aliases\['n'\] is -1"),
        (Entity("a", "n", {}, count=float("inf")), "'a': count is inf"),
        (Entity("a", "n", {}, count=1e101), "'a': count is 1e.101, not a number from 0 to 1e.100"),
        (Entity("a", "n", {}, count="5"), "'a': count is '5'"),
    ],
)
def test_wrong_values_of_another_source_are_named(tmp_path, entity, message):
    with pytest.raises(CorpusError, match=message):
        build_kb([entity], tmp_path / "kb")


def test_many_entities_are_all_found(tmp_path):
    records = [
        {
            "id": f"e{i}",
            "name": f"thing number {i * 7919 % 104_729}",
            "aliases": [f"t{i}", "x" * (i % 7 + 1)],
        }
        for i in range(3000)
    ]
    build(tmp_path / "kb", records, max_meanings=10_000)
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    for record in records:
        assert found(kb, record["name"])[0] == (record["id"], "exact")
        assert found(kb, record["aliases"][0])[0] == (record["id"], "exact")
    assert not any(f"absent {i}" in kb for i in range(100))
    assert [kb.tables.ids[i] for i in range(len(kb))] == [x["id"] for x in records]


def test_numbers_of_numpy_are_numbers(tmp_path):
    build_kb([Entity("a", "n", {"n": np.float32(2)}, count=np.int64(3))], tmp_path / "kb")
    entity = MappedKB.open(tmp_path / "kb", Vocab()).entity("a")
    assert (entity.count, entity.aliases) == (3.0, {"n": 2.0})


def test_ambiguous_aliases_are_counted(tmp_path):
    lines = build(tmp_path / "kb", ENTITIES).lines()
    assert "aliases that mean several entities: 2 (first: 'Paris', which means 2)" in lines


def test_empty_names_of_another_source_are_left_out_and_counted(tmp_path):
    entities = [Entity("a", " ", {"x": 1}), Entity("b", "b", {"": 1, "\n": 1, "b": 1})]
    findings = build_kb(entities, tmp_path / "kb")
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    assert len(kb) == 1 and list(kb.tables.forms) == ["b"]
    assert findings.counts["entities left out because their name is empty"] == 1
    assert findings.counts["empty aliases left out"] == 2
