"""A damaged encoder is one clear error when it is read, and is not saved."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from spacy_luke.errors import CheckpointError, LukeError
from spacy_luke.layers.encoder_check import check_encoder

FILE = "luke/encoder/encoder.safetensors"
ENTITIES = "luke/encoder/entities"


@pytest.fixture(scope="module")
def pipeline(request, tmp_path_factory):
    directory = request.getfixturevalue("luke_dir")
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(directory)}
    nlp.add_pipe("luke", config={"model": model})
    nlp.initialize()
    return nlp


@pytest.fixture
def saved(pipeline, tmp_path):
    pipeline.to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def encoder(nlp) -> Any:
    return nlp.get_pipe("luke").model.shims[0].module


def header(change: Callable[[dict], Any]) -> Callable[[Path], None]:
    """Damage the header of the file of weights; ``change`` may return other bytes for it."""

    def damage(path: Path) -> None:
        data = (path / FILE).read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        found = json.loads(data[8 : 8 + length])
        changed = change(found)
        text = changed if isinstance(changed, bytes) else json.dumps(found).encode()
        (path / FILE).write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])

    return damage


def meta(key: str, value: str) -> Callable[[Path], None]:
    return header(lambda found: found["__metadata__"].update({key: value}))


def config(**values: Any) -> Callable[[Path], None]:
    def change(found: dict) -> None:
        whole = {**json.loads(found["__metadata__"]["config"]), **values}
        found["__metadata__"]["config"] = json.dumps(whole)

    return header(change)


def tensors(change: Callable[[dict], None]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with safe_open(path / FILE, "pt") as file:
            metadata = file.metadata()
        found = {name: tensor.clone() for name, tensor in load_file(path / FILE).items()}
        change(found)
        save_file(found, path / FILE, metadata)

    return damage


def query(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    def damage(found: dict) -> None:
        name = next(name for name in found if "qkv.weight" in name)
        found[name] = change(found[name])

    return tensors(damage)


def text(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Damage a JSON text of the file; ``change`` may return other content, or bytes."""

    def damage(found: dict) -> None:
        value = json.loads(bytes(found[f"text:{name}"].numpy()))
        changed = change(value)
        changed = value if changed is None else changed
        data = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
        found[f"text:{name}"] = torch.frombuffer(bytearray(data), dtype=torch.uint8)

    return tensors(damage)


def array(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        file = path / ENTITIES / f"{name}.npy"
        np.save(file, change(np.load(file)))

    return damage


def with_value(at: int, value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(found: np.ndarray) -> np.ndarray:
        found[at] = value
        return found

    return change


DEEP = b"[" * 100_000 + b"]" * 100_000
DAMAGES = {
    "config deep": meta("config", DEEP.decode()),
    "config list": meta("config", "[1]"),
    "config no JSON": meta("config", "{"),
    "no config": header(lambda found: found["__metadata__"].pop("config") and None),
    "no metadata": header(lambda found: found.pop("__metadata__") and None),
    "header deep": header(lambda found: b'{"__metadata__":' + DEEP + b"}"),
    "more layers": config(num_hidden_layers=3),
    "fewer layers": config(num_hidden_layers=1),
    "labels": config(entity_labels=5),
    "extra": config(extra=5),
    "huge vocabulary": config(vocab_size=2**62),
    "huge width": config(hidden_size=10**30),
    "unknown key": config(other=1),
    "pieces list": text("pieces", lambda value: []),
    "pieces empty": text("pieces", lambda value: {}),
    "pieces deep": text("pieces", lambda value: DEEP),
    "pieces not UTF-8": text("pieces", lambda value: b"\xff"),
    "cls too large": text("pieces", lambda value: value["special_ids"].update(cls=10**9)),
    "cls negative": text("pieces", lambda value: value["special_ids"].update(cls=-1)),
    "cls string": text("pieces", lambda value: value["special_ids"].update(cls="x")),
    "unknown tokenizer": text(
        "pieces", lambda value: value.update(tokenizer={"model": {"type": "?"}})
    ),
    "SentencePiece": text("pieces", lambda value: value.update(sentencepiece="!!!")),
    "source list": text("source", lambda value: [1]),
    "source unknown": text("source", lambda value: value.update(other=1)),
    "ints": query(lambda x: x.to(torch.int32)),
    "bools": query(lambda x: x > 0),
    "half": query(lambda x: x.half()),
    "NaN": query(lambda x: x * float("nan")),
    "infinite": query(lambda x: x * float("inf")),
    "too large": query(lambda x: x * 1e38),
    "truncated": lambda path: (path / FILE).write_bytes((path / FILE).read_bytes()[:-100]),
    "no file": lambda path: (path / FILE).unlink(),
    "entity ids negative": array("ids", with_value(0, -5)),
    "entity ids descending": array("ids", lambda x: x[::-1].copy()),
    "entity ids too large": array("ids", with_value(-1, 10**12)),
    "slots too large": array("slots", lambda x: x + 10**6),
    "slots negative": array("slots", lambda x: x - 10**6),
    "starts descending": array("starts", lambda x: np.r_[x[:1], x[1:-1][::-1], x[-1:]]),
    "starts negative": array("starts", with_value(1, -100)),
    "hashes descending": array("hashes", lambda x: x[::-1].copy()),
    "dtype": array("ids", lambda x: x.astype("f8")),
    "two dimensions": array("ids", lambda x: x[None]),
    "no ids": array("ids", lambda x: x[:0]),
    "pickled": lambda path: np.save(path / ENTITIES / "ids.npy", np.array([{}]), allow_pickle=True),
    "no array": lambda path: (path / ENTITIES / "ids.npy").write_bytes(b"x" * 200),
    "array missing": lambda path: (path / ENTITIES / "ids.npy").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_encoder_is_one_error_that_names_it(saved, damage):
    DAMAGES[damage](saved)
    with pytest.raises(LukeError) as caught:
        spacy.load(saved)
    assert str(caught.value).startswith(f"The saved encoder in {saved / 'luke' / 'encoder'}")
    assert len(str(caught.value)) < 1000


def test_names_that_are_not_text_are_an_error(saved):
    array("text", lambda x: x * 0 + 255)(saved)
    with pytest.raises(LukeError, match="entit"):
        spacy.load(saved)


def test_a_sound_encoder_loads(saved, pipeline):
    loaded = spacy.load(saved)
    check_encoder(encoder(loaded), "it")
    doc = loaded("Tokyo is in Japan.")
    assert np.isfinite(doc._.luke.token_vectors).all()


@pytest.mark.parametrize("way", ["disk", "bytes"])
def test_an_encoder_that_cannot_be_used_is_not_saved(pipeline, tmp_path, way):
    pipeline.to_disk(tmp_path / "saved")
    before = (tmp_path / "saved" / FILE).read_bytes()
    table = encoder(pipeline).network.entity_embeddings.table
    kept = table.data.clone()
    table.data[5, 0] = float("nan")
    try:
        with pytest.raises(CheckpointError, match="is to be saved: .* NaN or infinite"):
            pipeline.to_disk(tmp_path / "saved") if way == "disk" else pipeline.to_bytes()
    finally:
        table.data.copy_(kept)
    assert (tmp_path / "saved" / FILE).read_bytes() == before


def test_the_check_leaves_the_mode_of_the_encoder(pipeline):
    module = encoder(pipeline)
    for mode in (True, False):
        module.train(mode)
        check_encoder(module, "it")
        assert module.training is mode
