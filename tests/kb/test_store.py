"""Files: linked or written anew, and errors that name what is damaged."""

import json
import shutil
import threading
from dataclasses import replace

import numpy as np
import pytest
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from spacy_luke.errors import KnowledgeBaseError
from spacy_luke.kb import store
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.kb.layout import KNOWLEDGE_BASE
from spacy_luke.kb.store import Store, verify
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
    verify(str(tmp_path / "a"))


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


def test_arrays_of_something_else_are_not_replaced(kb, tmp_path):
    np.save(tmp_path / "embeddings.npy", np.ones(3))
    with pytest.raises(KnowledgeBaseError, match=r"knowledge base: it contains embeddings\.npy"):
        kb.to_disk(tmp_path)
    with pytest.raises(KnowledgeBaseError, match="is not a knowledge base"):
        build(tmp_path, [])
    (tmp_path / "kb.json").write_text('{"mine": 1}')
    with pytest.raises(KnowledgeBaseError, match="is not a knowledge base"):
        kb.to_disk(tmp_path)
    assert {x.name for x in tmp_path.iterdir()} == {"embeddings.npy", "kb.json"}


def test_a_knowledge_base_of_spacy_and_a_damaged_one_are_replaced(kb, tmp_path):
    """A pipeline that got another knowledge base is saved where it was."""
    other = InMemoryLookupKB(Vocab(), entity_vector_length=3)
    other.to_disk(tmp_path / "kb")
    for _ in range(2):
        kb.to_disk(tmp_path / "kb")
        assert not (tmp_path / "kb" / "contents").exists()
        assert MappedKB.open(tmp_path / "kb", Vocab()).entity("Q1") == kb.entity("Q1")
        (tmp_path / "kb" / "kb.json").write_text("{")


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
        ({"arrays": {"../mine": {"sha256": ""}}}, r"has '\.\./mine', which is not known"),
        ({"arrays": {"counts": 1}}, r"arrays\['counts'\] has no sha256"),
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


def test_text_that_is_damaged_is_an_error_when_it_is_read(tmp_path):
    """Opening reads a sample of large files."""
    build(tmp_path / "kb", [{"id": f"{i:0100}", "name": f"n{i}"} for i in range(1000)])
    path = tmp_path / "kb" / "ids.text.npy"
    data = bytearray(path.read_bytes())
    data[20_000:40_000] = b"\xff" * 20_000
    path.write_bytes(data)
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    with pytest.raises(KnowledgeBaseError, match="ids is damaged"):
        found(kb, "n300")


def test_a_file_of_another_knowledge_base_of_the_same_size_is_named(tmp_path):
    for name in ("one", "two"):
        records = [{"id": f"{name} {i:0100}", "name": f"n{i}"} for i in range(1000)]
        build(tmp_path / name, records)
    shutil.copy(tmp_path / "one" / "ids.text.npy", tmp_path / "two" / "ids.text.npy")
    with pytest.raises(KnowledgeBaseError, match=r"ids\.text was changed, or is of another"):
        MappedKB.open(tmp_path / "two", Vocab())


def test_vectors_are_written_once_and_then_linked(kb, tmp_path):
    kb.set_vectors(np.ones((6, 4), np.float32), "w")
    kb.to_disk(tmp_path / "a")
    kb.to_disk(tmp_path / "b")
    assert inodes(tmp_path / "a") == inodes(tmp_path / "b")
    shutil.rmtree(tmp_path / "b")
    kb.to_disk(tmp_path / "a")
    shutil.rmtree(tmp_path / "a")
    kb.to_disk(tmp_path / "c")
    verify(tmp_path / "c")


def test_verifying_finds_a_changed_vector(kb, tmp_path):
    kb.set_vectors(np.asfortranarray(np.arange(24, dtype=np.float32).reshape(6, 4)), "w")
    kb.to_disk(tmp_path / "kb")
    verify(tmp_path / "kb")
    np.save(tmp_path / "kb" / "vectors.npy", np.zeros((6, 4), np.float32))
    with pytest.raises(KnowledgeBaseError, match=r"vectors\.npy is missing or damaged"):
        verify(tmp_path / "kb")


def test_damaged_bytes_are_refused(kb):
    data = bytearray(kb.to_bytes())
    for place in (200, len(data) // 2, len(data) - 3):
        damaged = data.copy()
        damaged[place] ^= 1
        with pytest.raises(KnowledgeBaseError):
            MappedKB(Vocab()).from_bytes(bytes(damaged))


def test_bytes_of_another_version_are_refused(kb):
    data = kb.to_bytes()
    newer = replace(KNOWLEDGE_BASE, version=99)
    with pytest.raises(KnowledgeBaseError, match=r"version is 3; .* the knowledge base again"):
        Store.from_bytes(data, newer)


def test_symbolic_links_are_followed(folder, tmp_path):
    """To a folder, which stays a link; and of files, as in the cache of a hub."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    MappedKB.open(folder, Vocab()).to_disk(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "kb.json").is_file()
    build(tmp_path / "link", ENTITIES[:2])
    assert (tmp_path / "link").is_symlink() and len(MappedKB.open(tmp_path / "real", Vocab())) == 2
    (tmp_path / "cache").mkdir()
    for path in folder.iterdir():
        (tmp_path / "cache" / path.name).symlink_to(f"../kb/{path.name}")
    MappedKB.open(tmp_path / "cache", Vocab()).to_disk(tmp_path / "out" / "deep")
    assert not any(path.is_symlink() for path in (tmp_path / "out" / "deep").iterdir())
    assert contents(tmp_path / "out" / "deep") == contents(folder)


def test_the_current_folder_may_be_written(folder, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    MappedKB.open(folder, Vocab()).to_disk(".")
    assert contents(tmp_path / "here") == contents(folder)


def test_a_full_disk_is_one_error_and_leaves_nothing(kb, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    kb.to_disk(tmp_path / "kb")
    for function in ("os.posix_fallocate", "numpy.save"):
        with monkeypatch.context() as patch, pytest.raises(KnowledgeBaseError) as caught:
            patch.setattr(function, full)
            kb.edited(remove=["Q1"], folder=tmp_path / "kb")
        assert "cannot be written" in str(caught.value) and "No space left" in str(caught.value)
    assert [x.name for x in tmp_path.iterdir()] == ["kb"]
    assert "Q1" in MappedKB.open(tmp_path / "kb", Vocab())


def test_a_folder_that_is_missing_again_right_after_it_was_found_is_waited_for(folder, monkeypatch):
    """Replaced twice while it is opened: it has no name at the first and at the third look."""
    looks, opened = [], []
    look, read = store.identity, Store._open

    def seldom_there(path):
        if path != folder:
            return look(path)
        looks.append(path)
        return () if len(looks) in (1, 3) else look(path)

    def fails_once(*args):
        opened.append(args)
        if len(opened) == 1:
            raise KnowledgeBaseError("is missing")
        return read(*args)

    monkeypatch.setattr(store, "identity", seldom_there)
    monkeypatch.setattr(Store, "_open", fails_once)
    assert len(Store.open(folder).arrays) > 1 and len(opened) == 2


def test_readers_do_not_notice_that_a_folder_is_replaced(folder):
    """There is a moment without a folder of that name, and one between two files."""
    stop, errors = threading.Event(), []

    def read():
        while not stop.is_set():
            try:
                assert found(MappedKB.open(folder, Vocab()), "Munich") == [("7", "exact")]
            except Exception as error:
                errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    kb = MappedKB.open(folder, Vocab())
    for _ in range(100):
        kb.to_disk(folder)
    stop.set()
    for reader in readers:
        reader.join()
    assert errors == []
