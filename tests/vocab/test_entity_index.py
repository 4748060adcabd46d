"""Names to ids on flat arrays: the same answers as a dictionary, in memory and from files."""

import pickle

import numpy as np
import pytest

from spacy_luke.errors import VocabError
from spacy_luke.vocab.entity_index import EntityIndex
from spacy_luke.vocab.entity_vocab import EntityVocab

NAMES = {
    "[MASK]": 0, "[UNK]": 1, "en:Tokyo": 7, "ja:東京": 7, "": 3, "nul\0l": 4, "\n": 5, "Zoë": 6,
    "Zoe\u0308": 9, "a\tb": 8, "😀": 2,
}  # fmt: skip


@pytest.fixture(params=["memory", "files", "pickled"])
def index(request, tmp_path):
    built = EntityIndex.build(NAMES.items())
    if request.param == "files":
        built.save(tmp_path / "new" / "index")
        return EntityIndex.open(tmp_path / "new" / "index")
    return pickle.loads(pickle.dumps(built)) if request.param == "pickled" else built


def test_it_is_the_mapping_it_was_built_from(index):
    assert dict(index) == NAMES and dict(index.items()) == NAMES
    assert len(index) == len(NAMES) and index.largest == 9
    assert [NAMES[name] for name in index] == sorted(NAMES.values())


def test_what_is_not_there_is_not_found(index):
    for name in ("Tokyo", "en:Toky", "en:Tokyo ", "\ud800", "nul"):
        assert name not in index and index.get(name) is None


def test_an_id_has_its_names_in_their_order(index):
    assert index.names_of(7) == ["en:Tokyo", "ja:東京"]
    assert index.names_of(10) == [] and index.names_of(-1) == []


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 20_000])
def test_every_name_of_many_is_found(n):
    names = {f"Title {i * 7919 % 104_729}": i for i in range(n)}
    index = EntityIndex.build(names.items())
    assert all(index[name] == i for name, i in names.items())
    assert not any(f"Absent {i}" in index for i in range(100))


def test_names_whose_hashes_meet_are_told_apart(monkeypatch):
    monkeypatch.setattr("spacy_luke.vocab.entity_index._hash", lambda key: len(key) << 60)
    index = EntityIndex.build(NAMES.items())
    assert dict(index) == NAMES and all(index[name] == i for name, i in NAMES.items())
    assert "b:東京" not in index


def test_hashes_that_are_not_spread_evenly_are_found(monkeypatch):
    monkeypatch.setattr("spacy_luke.vocab.entity_index._hash", lambda key: sum(key) + 1)
    names = {f"{i}": i for i in range(3000)}
    assert all(EntityIndex.build(names.items())[name] == i for name, i in list(names.items())[::97])


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(VocabError, match="not valid text"):
        EntityIndex.build([("\ud800", 0)])


@pytest.mark.parametrize("name", ["text", "starts", "ids", "hashes", "slots"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "no array", "another type", "cut"])
def test_damaged_files_are_named(tmp_path, name, damage):
    EntityIndex.build(NAMES.items()).save(tmp_path)
    path = tmp_path / f"{name}.npy"
    array = np.load(path)
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:-4])
    elif damage == "no array":
        path.write_bytes(pickle.dumps([1, 2, 3]))
    elif damage == "another type":
        np.save(path, array.astype(np.float32))
    else:
        np.save(path, array[:-1])
    with pytest.raises(VocabError, match=str(tmp_path)):
        EntityIndex.open(tmp_path)


def test_a_vocabulary_is_the_same_on_an_index():
    names = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "en:Tokyo": 3, "ja:東京": 3, "[MASK2]": 4}
    plain = EntityVocab(names)
    indexed = plain.indexed()
    assert indexed.indexed() is indexed
    for vocab in (plain, indexed):
        assert (len(vocab), vocab.mask_id, vocab.mask2_id, vocab.pad_id) == (5, 2, 4, 0)
        assert vocab.find("Tokyo", "en") == 3 and vocab.find("東京", "en") is None
        assert vocab.name_of(3) == "en:Tokyo" and vocab.name_of(5) is None


@pytest.mark.parametrize(
    "names,says", [({"[UNK]": 0}, "MASK"), ({"[MASK]": 0, "x": -1}, "'x' has the id -1")]
)
def test_a_vocabulary_on_an_index_is_checked(names, says):
    with pytest.raises(VocabError, match=says):
        EntityVocab(EntityIndex.build(names.items()))
