"""Modules as bytes: they come back whole, or with one clear error."""

import json

import pytest

from spacy_luke.errors import CheckpointError
from spacy_luke.layers.blob import from_blob, to_blob

torch = pytest.importorskip("torch")
from safetensors.torch import save  # noqa: E402

CONFIG = {"size": 3, "labels": ["PER", "東京"], "nested": {"rate": 0.1}}
TENSORS = {
    "a.weight": torch.arange(6.0).reshape(2, 3).T,  # not contiguous
    "a.bias": torch.tensor(1.5, dtype=torch.float64),
    "ids": torch.tensor([3, -1]),
    "none": torch.zeros((0, 4)),
}
FILES = {"pieces": {"▁東京": 1, "é": [1, None]}, "names": ["a\u2028b", "\n"], "empty": {}}


@pytest.fixture
def blob():
    return to_blob("encoder", CONFIG, TENSORS, FILES)


def test_everything_comes_back(blob):
    config, tensors, files = from_blob("encoder", blob)
    assert (config, files) == (CONFIG, FILES)
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)


def test_files_may_be_absent():
    assert from_blob("scorer", to_blob("scorer", {}, TENSORS))[2] == {}


def test_parameters_are_saved_without_their_graph():
    layer = torch.nn.Linear(2, 2)
    _, tensors, _ = from_blob("x", to_blob("x", {}, dict(layer.named_parameters())))
    assert torch.equal(tensors["weight"], layer.weight)
    assert not tensors["weight"].requires_grad


def test_a_blob_of_another_kind_says_both(blob):
    with pytest.raises(CheckpointError, match=r"Expected a spacy-luke scorer.*found 'encoder'"):
        from_blob("scorer", blob)


def test_a_blob_of_another_version_says_both(blob, monkeypatch):
    monkeypatch.setattr("spacy_luke.layers.blob.VERSION", "2")
    with pytest.raises(CheckpointError, match=r"version 2.*version '1'"):
        from_blob("encoder", blob)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_blob_is_refused(blob, share):
    with pytest.raises(CheckpointError, match="damaged"):
        from_blob("encoder", blob[: int(len(blob) * share)])


def with_header(value):
    data = json.dumps(value).encode()
    return len(data).to_bytes(8, "little") + data


HEADER = {"spacy-luke": "encoder", "version": "1"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a blob at all",
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
        save({"file:x": torch.zeros(1)}, metadata={**HEADER, "config": "{}"}),
        save(
            {"file:x": torch.tensor([255], dtype=torch.uint8)}, metadata={**HEADER, "config": "{}"}
        ),
    ],
)
def test_what_is_no_blob_is_refused(data):
    with pytest.raises(CheckpointError):
        from_blob("encoder", data)
