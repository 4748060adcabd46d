"""Weight files: every published layout is read, and nothing is unpickled freely."""

import json
import pickle

import pytest

from spacy_luke.checkpoint.weight_files import read_config, read_weights
from spacy_luke.errors import CheckpointError

torch = pytest.importorskip("torch")
from safetensors.torch import load_file, save_file  # noqa: E402


@pytest.fixture
def directory(copy_of, luke_dir):
    return copy_of(luke_dir)


@pytest.fixture
def tensors(luke_dir):
    return load_file(luke_dir / "model.safetensors")


def as_bin(path, tensors, name="pytorch_model.bin"):
    (path / "model.safetensors").unlink(missing_ok=True)
    torch.save(tensors, path / name)


def as_shards(path, tensors, suffix):
    """Two shards and their index."""
    name = {"safetensors": "model", "bin": "pytorch_model"}[suffix]
    (path / "model.safetensors").unlink()
    shards = [f"{name}-0000{i + 1}-of-00002.{suffix}" for i in range(2)]
    weight_map = {tensor: shards[i % 2] for i, tensor in enumerate(tensors)}
    for shard in shards:
        part = {n: t for n, t in tensors.items() if weight_map[n] == shard}
        if suffix == "bin":
            torch.save(part, path / shard)
        else:
            save_file(part, path / shard)
    index = path / f"{name}.{suffix}.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index, shards


@pytest.mark.parametrize("layout", ["safetensors", "bin", "sharded safetensors", "sharded bin"])
def test_every_layout_gives_the_same_tensors(layout, directory, tensors):
    if layout == "bin":
        as_bin(directory, tensors)
    elif layout.startswith("sharded"):
        as_shards(directory, tensors, layout.split()[1])
    found = read_weights(directory)
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_safetensors_are_preferred(directory, tensors):
    torch.save({"wrong": torch.zeros(1)}, directory / "pytorch_model.bin")
    assert read_weights(directory).keys() == tensors.keys()


class Malice:
    """A pickle of it would create a file when loaded."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


@pytest.mark.parametrize("written", ["plain pickle", "torch.save", "old torch.save"])
def test_a_pickle_in_disguise_is_refused_and_never_run(written, directory, tensors, tmp_path):
    target = tmp_path / "created"
    (directory / "model.safetensors").unlink()
    path = directory / "pytorch_model.bin"
    content = {**tensors, "extra": Malice(target)}
    if written == "plain pickle":
        path.write_bytes(pickle.dumps(Malice(target), protocol=2))
    else:
        new = written == "torch.save"
        torch.save(content, path, _use_new_zipfile_serialization=new)
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin"):
        read_weights(directory)
    assert not target.exists()
    pickle.loads(pickle.dumps(Malice(target)))  # it would have done it
    assert target.exists()


def test_other_objects_than_tensors_are_refused(directory, tensors):
    for content in ([1, 2], {"step": 3}, torch.zeros(2)):
        as_bin(directory, content)
        with pytest.raises(CheckpointError, match=r"pytorch_model\.bin is not a mapping"):
            read_weights(directory)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_truncated_file_is_named(name, share, directory, tensors):
    if name.endswith("bin"):
        as_bin(directory, tensors)
    path = directory / name
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CheckpointError, match=name):
        read_weights(directory)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("content", [b"not weights", b"<html>404</html>", b"\x80\x02]q\x00."])
def test_what_is_no_weight_file_is_named(name, content, directory):
    (directory / "model.safetensors").unlink()
    (directory / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=name):
        read_weights(directory)


def test_an_index_stays_inside_its_directory(directory, tensors):
    index, shards = as_shards(directory, tensors, "bin")
    outside = directory.parent / "outside.bin"
    torch.save(tensors, outside)
    for shard in ("../outside.bin", str(outside), "sub/../../outside.bin", "..", ""):
        index.write_text(json.dumps({"weight_map": {"a": shards[0], "b": shard}}))
        with pytest.raises(CheckpointError, match=r"index\.json"):
            read_weights(directory)


def test_an_index_names_what_is_missing(directory, tensors):
    _, shards = as_shards(directory, tensors, "safetensors")
    (directory / shards[1]).unlink()
    with pytest.raises(CheckpointError, match=shards[1]):
        read_weights(directory)


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}']
)
def test_a_broken_index_is_named(content, directory, tensors):
    index, _ = as_shards(directory, tensors, "safetensors")
    index.write_text(content)
    with pytest.raises(CheckpointError, match=r"index\.json"):
        read_weights(directory)


def test_a_directory_without_weights_says_what_was_expected(directory):
    (directory / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors or pytorch_model\.bin"):
        read_weights(directory)


@pytest.mark.parametrize("content", ["{", "[]", "", '"luke"', b"\xff"])
def test_a_broken_configuration_is_named(content, tmp_path):
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "config.json").write_bytes(data)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_config(tmp_path)


def test_a_directory_without_a_configuration_is_no_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        read_config(tmp_path)
