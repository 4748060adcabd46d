"""Entities added, changed and removed."""

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_luke.errors import CorpusError, InputError, KnowledgeBaseError
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.entity import NOT_GIVEN, Entity, Findings
from spacy_luke.kb.knowledge_base import MappedKB
from tests.kb.conftest import ENTITIES, build, found

LYON = Entity("Q9", "Lyon", {"Lyon": NOT_GIVEN, "Paris": 50.0}, count=3)
NEW_PARIS = Entity("Q1", "Paris", {"Paris": 4.0}, "Changed.")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_edit_is_the_same_as_building_anew(kb, tmp_path):
    changes = [{"id": "Q2", "name": "P. H.", "count": 2}, {"id": "new", "name": "It"}]
    build(tmp_path / "built", [ENTITIES[0], changes[0], *ENTITIES[3:], changes[1]])
    build(tmp_path / "changes", changes)
    changed = list(MappedKB.open(tmp_path / "changes", Vocab()).tables.entities())
    edited = kb.edited(changed, ["Q3"], tmp_path / "edited")
    assert contents(tmp_path / "edited") == contents(tmp_path / "built")
    assert found(edited, "It") == [("new", "exact")] and found(kb, "It") != found(edited, "It")


def test_what_was_changed_is_reported(kb):
    findings = Findings()
    edited = kb.edited([LYON, NEW_PARIS, LYON], ["Q3", "Q7", "Q3"], findings=findings)
    assert "Q9" in edited and "Q3" not in edited and edited.entity("Q1").description == "Changed."
    assert found(edited, "Paris") == [("Q9", "exact"), ("Q2", "exact"), ("Q1", "exact")]
    assert found(edited, "City of Light") == [] and "Q3" in kb
    assert findings.counts["entities added"] == findings.counts["entities changed"] == 1
    assert findings.counts["entities removed"] == 1
    assert findings.first["unknown ids, which were not removed"] == "Q7"
    assert findings.counts["entities left out because an earlier one has their id"] == 1


def test_a_temporary_result_is_saved_like_any_other(kb, tmp_path):
    kb.edited([LYON]).to_disk(tmp_path / "a")
    kb.edited([LYON], folder=tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_temporary_files_are_removed(kb, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    edited = kb.edited([LYON])
    assert list(tmp_path.iterdir()) == [] and found(edited, "Lyon") == [("Q9", "exact")]


def test_a_folder_may_be_edited_in_place(kb_dir, tmp_path):
    MappedKB.open(kb_dir, Vocab()).to_disk(tmp_path / "kb")
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    edited = kb.edited(remove=["7"], folder=tmp_path / "kb")
    assert "7" not in edited and "7" not in MappedKB.open(tmp_path / "kb", Vocab())
    assert found(kb, "Munich") == [("7", "exact")]
    assert [x.name for x in tmp_path.iterdir()] == ["kb"]


def test_all_entities_may_be_removed(kb):
    empty = kb.edited(remove=[x["id"] for x in ENTITIES])
    assert empty.is_empty() and found(empty, "Paris") == []


def test_an_id_that_is_added_and_removed_is_an_error(kb, tmp_path):
    with pytest.raises(CorpusError, match="'Q9'.*both"):
        kb.edited([LYON], ["Q1", "8"]).edited([LYON], ["Q9"])


def test_vectors_stay_with_their_entities_and_new_ones_are_missing(kb):
    vectors = np.arange(1, 13, dtype=np.float16).reshape(6, 2)
    kb.set_vectors(vectors, "w")
    findings = Findings()
    edited = kb.edited([LYON, NEW_PARIS], ["Q2"], findings=findings)
    assert edited.vectors_hash == "w" and edited.without_vector().tolist() == [0, 5]
    assert findings.counts["entities that have no vector yet"] == 2
    for i, entity in enumerate(ENTITIES[2:], start=2):
        assert edited.get_vector(entity["id"]).tolist() == vectors[i].tolist()
    for entity in ("Q1", "Q9"):
        with pytest.raises(InputError, match=f"'{entity}' of the knowledge base has no vector"):
            edited.get_vector(entity)
    assert kb.edited(remove=[x["id"] for x in ENTITIES]).vectors_hash == "w"


def test_without_vectors_all_are_missing(kb):
    assert kb.without_vector().tolist() == list(range(6))


def test_a_list_is_not_taken_for_aliases_with_counts(kb):
    with pytest.raises(InputError, match="aliases of the entity 'Q9' are \\['Neu'\\]"):
        kb.edited(add=[Entity("Q9", "Neu", ["Neu"])])


def test_one_id_is_not_taken_for_a_list_of_letters(kb):
    with pytest.raises(InputError, match="add contains {'id': 'Q9'}, which is not a"):
        kb.edited(add=[{"id": "Q9"}])
    with pytest.raises(InputError, match="add is Entity\\(id='Q9'.*a list of entities is required"):
        kb.edited(add=Entity("Q9", "Neu", {}))
    with pytest.raises(InputError, match="remove is the text '78'"):
        kb.edited(remove="78")


@pytest.mark.parametrize(
    "add, remove", [([Entity(7, "n", {})], []), ([], [7])], ids=["added", "removed"]
)
def test_an_id_that_is_not_text_is_named(kb, add, remove):
    with pytest.raises(CorpusError, match="id is 7, not text"):
        kb.edited(add, remove)


def test_counts_and_priors_are_not_mixed(tmp_path):
    build_kb([Entity("1", "a", {"a": 0.9})], tmp_path / "kb", priors=True)
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    with pytest.raises(CorpusError, match=r"'2': aliases\['a'\] is 50.* has priors"):
        kb.edited([Entity("2", "a", {"a": 50})])


def test_an_edit_has_the_limit_of_meanings_that_was_chosen(tmp_path):
    records = [{"id": i, "name": "it", "count": i} for i in range(20)]
    build(tmp_path / "all", records, max_meanings=5)
    kb = MappedKB.open(tmp_path / "all", Vocab())
    more = [Entity(f"n{i}", "it", {"it": NOT_GIVEN}, count=50) for i in range(3)]
    form = kb.tables.forms.find("it")
    assert len(kb.edited(more).tables.meanings_of_form(form).entities) == 5
    assert len(kb.edited(more, max_meanings=7).tables.meanings_of_form(form).entities) == 7


def test_an_entity_without_a_name_changes_nothing(kb):
    kb.set_vectors(np.arange(1, 13, dtype=np.float32).reshape(6, 2), "w")
    findings = Findings()
    edited = kb.edited([Entity("Q1", " ", {}), Entity("Q8", "", {})], findings=findings)
    assert edited.entity("Q1") == kb.entity("Q1") and "Q8" not in edited
    assert edited.get_vector("8b").tolist() == [11, 12]
    assert findings.counts["entities left out because their name is empty"] == 2


def test_what_another_process_wrote_in_the_meantime_is_not_lost(kb_dir, tmp_path):
    folder = tmp_path / "kb"
    MappedKB.open(kb_dir, Vocab()).to_disk(folder)
    one, other = MappedKB.open(folder, Vocab()), MappedKB.open(folder, Vocab())
    one.edited([LYON], folder=folder)
    with pytest.raises(KnowledgeBaseError, match="kb was changed after it was opened"):
        other.edited(remove=["7"], folder=folder)
    assert [path.name for path in tmp_path.iterdir()] == ["kb"]
    now = MappedKB.open(folder, Vocab())
    assert "Q9" in now and "7" in now
    now.edited(remove=["7"], folder=folder)  # tried again
    other.edited(remove=["7"], folder=tmp_path / "copy")
    assert "7" not in MappedKB.open(folder, Vocab()) and "Q9" in MappedKB.open(folder, Vocab())


def test_own_changes_are_no_changes_of_others(kb_dir, tmp_path, monkeypatch):
    folder = tmp_path / "kb"
    MappedKB.open(kb_dir, Vocab()).to_disk(folder)
    kb = MappedKB.open(folder, Vocab())
    kb.set_vectors(np.ones((len(kb), 2), "f"), "hash")
    kb.edited([LYON], folder=folder)  # vectors in memory are no change of the folder
    kb = MappedKB.open(folder, Vocab())
    kb.set_vectors(np.ones((len(kb), 3), "f"), "hash")
    kb.to_disk(folder)
    assert "Q9" not in kb.edited(remove=["Q9"], folder=folder)
    monkeypatch.chdir(tmp_path)
    here, other = (MappedKB.open("kb", Vocab()) for _ in range(2))
    other.edited([LYON], folder=folder)
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(KnowledgeBaseError, match="changed after it was opened"):
        here.edited(remove=["7"], folder=folder)
