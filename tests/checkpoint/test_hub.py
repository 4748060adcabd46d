"""A name to a directory: a path, the hub's cache, or one clear error. Nothing is downloaded."""

import shutil

import pytest

from spacy_luke.checkpoint.hub import resolve
from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import CheckpointError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty hub cache, offline."""
    from huggingface_hub import constants

    path = tmp_path / "hub"
    path.mkdir()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return path


def put(cache, name, source):
    """Lay a checkpoint out as ``huggingface_hub`` does: refs and snapshots."""
    repository = cache / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    return shutil.copytree(source, repository / "snapshots" / COMMIT)


def test_a_directory_is_itself(luke_dir, cache, monkeypatch):
    assert resolve(str(luke_dir)) == luke_dir
    monkeypatch.chdir(luke_dir.parent)
    assert resolve(luke_dir.name).samefile(luke_dir)


def test_a_name_is_found_in_the_cache(cache, luke_dir):
    snapshot = put(cache, "some/name", luke_dir)
    found = resolve("some/name")
    assert found.samefile(snapshot)
    assert read_checkpoint(found).is_luke


def test_a_name_with_bin_weights_is_found_too(cache, luke_dir):
    snapshot = put(cache, "some/name", luke_dir)
    (snapshot / "model.safetensors").rename(snapshot / "pytorch_model.bin")
    assert (resolve("some/name") / "pytorch_model.bin").exists()


@pytest.mark.parametrize("name", ["some/other", "bert-of-nobody", "bad name/!", "a--b/c..d"])
def test_a_name_that_is_nowhere_is_one_clear_error(cache, name):
    with pytest.raises(CheckpointError, match="is not a directory and cannot be loaded") as error:
        resolve(name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("name", ["./missing", "/no/such/directory", "a/b/c", "../x", "~/nowhere"])
def test_a_path_that_is_missing_is_not_looked_up(cache, name, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("huggingface_hub.snapshot_download", never)
    with pytest.raises(CheckpointError, match="The encoder's directory"):
        resolve(name)
