"""Modules as bytes: they come back whole, or with one clear error."""

import json

import pytest

from spacy_luke.errors import CheckpointError
from spacy_luke.layers.archive import Archive
from tests.full_disk import no_more_space

torch = pytest.importorskip("torch")
from safetensors.torch import save  # noqa: E402

CONFIG = {"size": 3, "labels": ["PER", "東京"], "nested": {"rate": 0.1}}
TENSORS = {
    "a.weight": torch.arange(6.0).reshape(2, 3).T,  # not contiguous
    "a.bias": torch.tensor(1.5, dtype=torch.float64),
    "ids": torch.tensor([3, -1]),
    "none": torch.zeros((0, 4)),
}
TEXTS = {"pieces": {"▁東京": 1, "é": [1, None]}, "names": ["a\u2028b", "\n"], "empty": {}}


@pytest.fixture
def archive():
    return Archive("encoder", CONFIG, TENSORS, TEXTS).to_bytes()


@pytest.mark.parametrize("space", [100, 5_000])
def test_a_full_disk_is_an_error_of_the_file_and_leaves_the_old_one(tmp_path, space):
    path = tmp_path / "x.safetensors"
    Archive("encoder", CONFIG, TENSORS, TEXTS).to_file(path)
    before = path.read_bytes()
    large = Archive("encoder", CONFIG, {"a": torch.zeros(10_000)}, TEXTS)
    with no_more_space(space), pytest.raises(OSError, match="safetensors cannot be written"):
        large.to_file(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("way", ["bytes", "file"])
def test_everything_comes_back(archive, way, tmp_path):
    if way == "bytes":
        found = Archive.from_bytes("encoder", archive)
    else:
        Archive("encoder", CONFIG, TENSORS, TEXTS).to_file(tmp_path / "new" / "x.safetensors")
        found = Archive.from_file("encoder", tmp_path / "new" / "x.safetensors")
    assert (found.config, found.texts) == (CONFIG, TEXTS)
    assert found.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)


def test_a_file_is_saved_over_while_it_is_read_from(tmp_path):
    path = tmp_path / "x.safetensors"
    Archive("x", {}, {"a": torch.ones(10_000)}).to_file(path)
    found = Archive.from_file("x", path)
    Archive("x", {}, {"a": found.tensors["a"] * 2, "b": found.tensors["a"]}).to_file(path)
    assert found.tensors["a"].sum() == 10_000
    again = Archive.from_file("x", path)
    assert again.tensors["a"].sum() == 20_000 and again.tensors["b"].sum() == 10_000


@pytest.mark.parametrize("damage", ["missing", "truncated", "other kind"])
def test_a_file_that_is_not_an_archive_is_named(archive, damage, tmp_path):
    path = tmp_path / "x.safetensors"
    if damage != "missing":
        path.write_bytes(archive if damage == "other kind" else archive[:100])
    with pytest.raises(CheckpointError, match="x.safetensors"):
        Archive.from_file("scorer", path)


def test_texts_may_be_absent():
    assert Archive.from_bytes("scorer", Archive("scorer", {}, TENSORS).to_bytes()).texts == {}


def test_parameters_are_saved_without_their_graph():
    layer = torch.nn.Linear(2, 2)
    data = Archive("x", {}, dict(layer.named_parameters())).to_bytes()
    tensors = Archive.from_bytes("x", data).tensors
    assert torch.equal(tensors["weight"], layer.weight)
    assert not tensors["weight"].requires_grad


def test_an_archive_of_another_kind_says_both(archive):
    with pytest.raises(CheckpointError, match=r"Expected a spacy-luke scorer.*found 'encoder'"):
        Archive.from_bytes("scorer", archive)


def test_an_archive_of_another_version_says_both(archive, monkeypatch):
    monkeypatch.setattr("spacy_luke.layers.archive.VERSION", "3")
    with pytest.raises(CheckpointError, match=r"version 3.*version '2'"):
        Archive.from_bytes("encoder", archive)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_archive_is_refused(archive, share):
    with pytest.raises(CheckpointError, match="damaged"):
        Archive.from_bytes("encoder", archive[: int(len(archive) * share)])


def with_header(value):
    data = json.dumps(value).encode()
    return len(data).to_bytes(8, "little") + data


HEADER = {"spacy-luke": "encoder", "version": "2"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not an archive at all",
        b"\xff" * 64,
        with_header([]),
        with_header(3),
        with_header({}),
        with_header({"__metadata__": None}),
        with_header({"__metadata__": [1]}),
        with_header({"__metadata__": "x"}),
        save({"a": torch.zeros(1)}),
        save({"a": torch.zeros(1)}, metadata=HEADER),
        save({"a": torch.zeros(1)}, metadata={**HEADER, "config": "{"}),
        save({"text:x": torch.zeros(1)}, metadata={**HEADER, "config": "{}"}),
        save(
            {"text:x": torch.tensor([255], dtype=torch.uint8)}, metadata={**HEADER, "config": "{}"}
        ),
    ],
)
def test_what_is_no_archive_is_refused(data):
    with pytest.raises(CheckpointError):
        Archive.from_bytes("encoder", data)


@pytest.mark.parametrize("name", ["a", "abc", "a name that makes the header longer", "ü" * 40])
def test_tensors_of_a_file_begin_where_torch_would_put_them(tmp_path, name):
    tensors = {"weight": torch.arange(64.0), name: torch.arange(32.0)}
    path = tmp_path / "archive.safetensors"
    Archive("test", {}, tensors, {"text": "x"}).to_file(path)
    assert [x.name for x in tmp_path.iterdir()] == [path.name]
    found = Archive.from_file("test", path)
    assert all(torch.equal(found.tensors[x], tensors[x]) for x in tensors)
    assert all(x.data_ptr() % 64 == 0 for x in found.tensors.values())
    assert found.texts == {"text": "x"}
