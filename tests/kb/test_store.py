"""Files: linked or written anew, and errors that name what is damaged."""

import json
import shutil

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_luke.errors import KnowledgeBaseError
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.kb.store import verify
from tests.kb.conftest import ENTITIES, build, found


@pytest.fixture
def folder(kb_dir, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(kb_dir, tmp_path / "kb")


def inodes(folder):
    return {path.name: path.stat().st_ino for path in folder.glob("*.npy")}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.npy")}


def test_files_that_did_not_change_are_linked(folder, tmp_path):
    kb = MappedKB.open(folder, Vocab())
    kb.to_disk(tmp_path / "a")
    assert inodes(tmp_path / "a") == inodes(folder)
    kb.set_vectors(np.ones((6, 4), np.float32), "w")
    kb.to_disk(tmp_path / "a")
    after = inodes(tmp_path / "a")
    assert after.pop("vectors.npy") and after == inodes(folder)
    assert MappedKB.open(tmp_path / "a", Vocab()).vectors_hash == "w"


def test_it_may_be_saved_to_the_folder_it_was_opened_from(folder):
    kb, before = MappedKB.open(folder, Vocab()), contents(folder)
    kb.to_disk(folder)
    kb.to_disk(folder)
    assert contents(folder) == before and found(kb, "Munich") == [("7", "exact")]


def test_without_links_files_are_copied(folder, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("links are not possible")

    monkeypatch.setattr("os.link", refuse)
    MappedKB.open(folder, Vocab()).to_disk(tmp_path / "a")
    assert contents(tmp_path / "a") == contents(folder)
    verify(tmp_path / "a")


def test_another_knowledge_base_in_its_place_is_not_taken_for_it(folder, tmp_path):
    kb, before = MappedKB.open(folder, Vocab()), contents(folder)
    build(tmp_path / "other", [{**x, "id": f"other {i}"} for i, x in enumerate(ENTITIES)])
    MappedKB.open(tmp_path / "other", Vocab()).to_disk(folder)
    assert kb.entity("Q1").name == "Paris"
    kb.to_disk(tmp_path / "saved")
    assert contents(tmp_path / "saved") == before
    shutil.rmtree(folder)
    kb.to_disk(tmp_path / "saved again")
    assert contents(tmp_path / "saved again") == before


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_nothing_but_a_knowledge_base_is_replaced(kb, tmp_path, kind):
    path = tmp_path / "mine"
    if kind == "folder":
        path.mkdir()
    (path / "notes.txt" if kind == "folder" else path).touch()
    with pytest.raises(KnowledgeBaseError, match="is not a knowledge base"):
        kb.to_disk(path)
    with pytest.raises(KnowledgeBaseError, match="is not a knowledge base"):
        build(path, [])
    assert len(list(tmp_path.rglob("notes.txt"))) == (kind == "folder")


def test_bytes_have_everything(kb, tmp_path):
    again = MappedKB(Vocab()).from_bytes(kb.to_bytes())
    assert again.entity("Q1") == kb.entity("Q1") and found(again, "Paris") == found(kb, "Paris")
    again.to_disk(tmp_path / "a")
    kb.to_disk(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize("data", [b"", b"\x80", b"abc"])
def test_other_bytes_are_refused(data):
    with pytest.raises(KnowledgeBaseError, match="not a knowledge base"):
        MappedKB(Vocab()).from_bytes(data)


def test_every_missing_or_truncated_file_is_named(kb_dir, tmp_path):
    names = sorted(path.name for path in kb_dir.iterdir())
    assert len(names) > 20
    for name in names:
        for damage in ("missing", "truncated", "empty"):
            folder = shutil.copytree(kb_dir, tmp_path / f"{name} {damage}")
            path = folder / name
            data = path.read_bytes()
            path.unlink()
            if damage != "missing":
                path.write_bytes(data[: len(data) // 2] if damage == "truncated" else b"")
            with pytest.raises(KnowledgeBaseError, match=name.replace(".npy", "")):
                MappedKB.open(folder, Vocab())


def test_an_array_of_another_knowledge_base_is_named(kb_dir, tmp_path):
    build(tmp_path / "other", ENTITIES[:3])
    for path in kb_dir.glob("*.npy"):
        if path.read_bytes() == (tmp_path / "other" / path.name).read_bytes():
            continue
        folder = shutil.copytree(kb_dir, tmp_path / path.stem)
        shutil.copy(tmp_path / "other" / path.name, folder / path.name)
        with pytest.raises(KnowledgeBaseError, match=path.stem):
            MappedKB.open(folder, Vocab())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"format": "x"}, "format is 'x'"),
        ({"version": 99}, "version is 99"),
        ({"arrays": 1}, "arrays is 1"),
        ({"arrays": {}}, "ids.text is missing"),
        ({"weights": "x"}, "weights or lang"),
        ({"lang": None}, "weights or lang"),
    ],
)
def test_a_wrong_field_is_named(folder, change, message):
    meta = json.loads((folder / "kb.json").read_text())
    (folder / "kb.json").write_text(json.dumps({**meta, **change}))
    with pytest.raises(KnowledgeBaseError, match=message):
        MappedKB.open(folder, Vocab())


def test_folders_that_are_no_knowledge_base_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(KnowledgeBaseError, match=r"kb\.json is missing"):
            MappedKB.open(path, Vocab())


def test_verifying_finds_a_changed_byte(folder):
    verify(folder)
    path = folder / "names.text.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.unlink()
    path.write_bytes(data)
    with pytest.raises(KnowledgeBaseError, match=r"names\.text\.npy is missing or damaged"):
        verify(folder)


def test_text_that_is_damaged_is_an_error_when_it_is_read(folder):
    path = folder / "ids.text.npy"
    data = bytearray(path.read_bytes())
    data[-10:] = b"\xff" * 10
    path.unlink()
    path.write_bytes(data)
    kb = MappedKB.open(folder, Vocab())
    with pytest.raises(KnowledgeBaseError, match="ids is damaged"):
        found(kb, "Munich")
