"""Broken checkpoint directories: each is one clear error that names the file and the field."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.cli import app
from spacy_luke.errors import LukeError

WEIGHTS, CONFIG, ENTITIES = "model.safetensors", "config.json", "entity_vocab.json"
TABLE = "luke.entity_embeddings.entity_embeddings.weight"
POSITIONS = "luke.embeddings.position_embeddings.weight"
Break = Callable[[Path], None]


def weights(change: Callable[[dict], dict | None]) -> Break:
    def run(path: Path) -> None:
        found = load_file(path / WEIGHTS)
        found = {k: v.clone() for k, v in (change(found) or found).items()}
        save_file(found, path / WEIGHTS, {"format": "pt"})

    return run


def config(**values: object) -> Break:
    def run(path: Path) -> None:
        found = json.loads((path / CONFIG).read_text())
        found.update(values)
        (path / CONFIG).write_text(json.dumps(found))

    return run


def text(name: str, content: str | bytes) -> Break:
    def run(path: Path) -> None:
        data = content if isinstance(content, bytes) else content.encode()
        (path / name).write_bytes(data)

    return run


def without(name: str) -> Break:
    return lambda path: (path / name).unlink()


def cut(name: str, share: float) -> Break:
    def run(path: Path) -> None:
        data = (path / name).read_bytes()
        (path / name).write_bytes(data[: int(len(data) * share)])

    return run


def objects(name: str, change: Callable[[dict], dict | None]) -> Break:
    def run(path: Path) -> None:
        found = json.loads((path / name).read_text("utf8"))
        (path / name).write_text(json.dumps(change(found) or found), "utf8")

    return run


def entities(change: Callable[[dict], dict | None]) -> Break:
    return objects(ENTITIES, change)


def binary(change: Callable[[dict], dict]) -> Break:
    def run(path: Path) -> None:
        torch.save(change(load_file(path / WEIGHTS)), path / "pytorch_model.bin")
        (path / WEIGHTS).unlink()

    return run


def number(name: str, value: float) -> Break:
    def change(found: dict) -> None:
        found[name] = found[name].clone()
        found[name].view(-1)[0] = value

    return weights(change)


def sharded(weight_map: object) -> Break:
    def run(path: Path) -> None:
        shutil.move(path / WEIGHTS, path / "part.safetensors")
        (path / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": weight_map}))

    return run


def twice_in_shards(path: Path) -> None:
    shutil.copy(path / WEIGHTS, path / "a.safetensors")
    shutil.move(path / WEIGHTS, path / "b.safetensors")
    both = {"x": "a.safetensors", "y": "b.safetensors"}
    (path / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": both}))


def in_parts(change: Callable[[dict], dict], **listed: str) -> Break:
    """In two parts: entity tables, and the rest. listed: further entries of the index."""

    def run(path: Path) -> None:
        found = change(load_file(path / WEIGHTS))
        parts = {name: f"{'ab'['entity' not in name]}.safetensors" for name in found}
        for part in set(parts.values()):
            save_file({k: found[k].clone() for k in found if parts[k] == part}, path / part)
        (path / WEIGHTS).unlink()
        (path / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": parts | listed}))

    return run


class Payload:
    def __reduce__(self):  # type: ignore[no-untyped-def]
        return (pytest.fail, ("a pickle was run",))


def pickled(name: str, value: object) -> Break:
    def run(path: Path) -> None:
        (path / WEIGHTS).unlink()
        (path / name).write_bytes(pickle.dumps(value))

    return run


# What is broken -> how, and what the message has to name: the file, and the field or tensor.
BROKEN: dict[str, tuple[Break, tuple[str, ...]]] = {
    "no configuration": (without(CONFIG), (CONFIG,)),
    "configuration cut off": (cut(CONFIG, 0.5), (CONFIG,)),
    "configuration is a list": (text(CONFIG, "[]"), (CONFIG, "list")),
    "configuration in another encoding": (text(CONFIG, b"\xff\xfe{}"), (CONFIG,)),
    "another kind of model": (config(model_type="t5"), (CONFIG, "model_type", "t5")),
    "no kind of model": (config(model_type=None), (CONFIG, "model_type")),
    "a size that is text": (config(hidden_size="32"), (CONFIG, "hidden_size", "'32'")),
    "a negative size": (config(num_hidden_layers=-1), (CONFIG, "num_hidden_layers", "-1")),
    "heads that do not divide": (config(num_attention_heads=5), (CONFIG, "num_attention_heads")),
    "another activation": (config(hidden_act="silu"), (CONFIG, "hidden_act", "silu")),
    "fewer layers than weights": (
        config(num_hidden_layers=1),
        (WEIGHTS, "unknown", "encoder.layer.1"),
    ),
    "more layers than weights": (
        config(num_hidden_layers=3),
        (WEIGHTS, "missing", "encoder.layer.2"),
    ),
    "another hidden size": (config(hidden_size=64), (WEIGHTS, "shape", "64]")),
    "fewer positions": (
        config(max_position_embeddings=9),
        (WEIGHTS, "position_embeddings", "shape"),
    ),
    "fewer words than pieces": (config(vocab_size=9), ("vocab_size 9", CONFIG)),
    "no weights": (without(WEIGHTS), (WEIGHTS, "pytorch_model.bin")),
    "weights cut off": (cut(WEIGHTS, 0.7), (WEIGHTS, "damaged")),
    "weights without a header": (cut(WEIGHTS, 0.0), (WEIGHTS, "damaged")),
    "weights of another format": (text(WEIGHTS, "PK\x03\x04zip"), (WEIGHTS, "damaged")),
    "a missing tensor": (
        weights(lambda x: {k: v for k, v in x.items() if "layer.1.output.dense.bias" not in k}),
        (WEIGHTS, "missing", "encoder.layer.1.output.dense.bias"),
    ),
    "an unknown tensor": (
        weights(lambda x: {**x, "luke.colour": torch.ones(2)}),
        (WEIGHTS, "unknown", "colour"),
    ),
    "a misshapen tensor": (
        weights(lambda x: {**x, TABLE: x[TABLE][:, :7]}),
        (WEIGHTS, "entity_embeddings.entity_embeddings.weight", "[23, 7]", "[23, 16]"),
    ),
    "one tensor under two names": (
        weights(lambda x: {**x, TABLE.removeprefix("luke."): x[TABLE].clone()}),
        (WEIGHTS, "entity_embeddings.entity_embeddings.weight", "two names"),
    ),
    "not a number": (
        number(TABLE, float("nan")),
        (WEIGHTS, "entity_embeddings.weight", "NaN or infinite"),
    ),
    "infinity": (
        number("luke.encoder.layer.0.attention.self.key.weight", float("inf")),
        (WEIGHTS, "attention.self.key.weight", "NaN or infinite"),
    ),
    "an index that points outside": (
        sharded({"x": "../part.safetensors"}),
        ("index.json", "../part.safetensors"),
    ),
    "an absolute path in an index": (
        sharded({"x": "/etc/passwd"}),
        ("index.json", "/etc/passwd"),
    ),
    "an index that names nothing": (sharded({}), ("index.json", "weight_map")),
    "an index that names a missing part": (
        sharded({"x": "other.safetensors"}),
        ("index.json", "other.safetensors"),
    ),
    "an index that is a list": (sharded(["part.safetensors"]), ("index.json",)),
    "a tensor in two parts": (twice_in_shards, ("b.safetensors", "another part")),
    "an index that names a missing tensor": (
        in_parts(lambda x: x, colour="a.safetensors"),
        ("index.json", "colour"),
    ),
    "a misshapen tensor in a part": (
        in_parts(lambda x: {**x, TABLE: x[TABLE][:, :7]}),
        ("a.safetensors", "entity_embeddings.entity_embeddings.weight", "[23, 7]"),
    ),
    "misshapen positions of words, beside those of entities": (
        in_parts(lambda x: {**x, POSITIONS: x[POSITIONS][:, :7]}),
        ("/b.safetensors", "embeddings.position_embeddings.weight", "[130, 7]"),
    ),
    "missing positions of words, beside those of entities": (
        in_parts(lambda x: {k: v for k, v in x.items() if k != POSITIONS}),
        ("index.json", "missing", ": embeddings.position_embeddings.weight"),
    ),
    "unknown tensors in two parts": (
        in_parts(lambda x: {**x, "luke.entity": torch.ones(2), "luke.colour": torch.ones(2)}),
        ("index.json", "unknown", "colour, entity"),
    ),
    "a number too large for float32": (
        weights(lambda x: {**x, TABLE: torch.full(x[TABLE].shape, 1e300, dtype=torch.float64)}),
        (WEIGHTS, "entity_embeddings.entity_embeddings.weight", "NaN or infinite"),
    ),
    "a missing tensor of a part": (
        in_parts(lambda x: {k: v for k, v in x.items() if k != TABLE}),
        ("index.json", "missing", "entity_embeddings.entity_embeddings.weight"),
    ),
    "a pickle that runs code": (
        pickled("pytorch_model.bin", {"x": Payload()}),
        ("pytorch_model.bin", "pickle"),
    ),
    "a pickle that is not a mapping": (pickled("pytorch_model.bin", [1]), ("pytorch_model.bin",)),
    "no masked-entity head": (
        weights(lambda x: {k: v for k, v in x.items() if "entity_predictions" not in k}),
        (WEIGHTS, "missing", "LukeForMaskedLM", "entity_predictions.bias"),
    ),
    "a misshapen head": (
        weights(lambda x: {**x, "entity_predictions.bias": torch.zeros(5)}),
        (WEIGHTS, "entity_predictions.bias", "[5]", "[23]"),
    ),
    "an unknown part of a head": (
        weights(lambda x: {**x, "lm_head.colour": torch.zeros(5)}),
        (WEIGHTS, "unknown", "lm_head.colour"),
    ),
    "a head that is not a number": (
        number("lm_head.dense.weight", float("nan")),
        (WEIGHTS, "lm_head.dense.weight", "NaN or infinite"),
    ),
    "a misshapen pooler": (
        weights(lambda x: {**x, "luke.pooler.dense.weight": torch.zeros(3, 3)}),
        (WEIGHTS, "pooler.dense.weight", "[3, 3]"),
    ),
    "a class that is a number": (config(architectures=5), (CONFIG, "architectures", "5")),
    "a class that is text": (
        config(architectures="LukeForMaskedLM"),
        (CONFIG, "architectures", "LukeForMaskedLM"),
    ),
    "a classifier that is not there": (
        config(architectures=["LukeForEntitySpanClassification"]),
        (WEIGHTS, "missing", "classifier.weight"),
    ),
    "no entity vocabulary": (without(ENTITIES), (ENTITIES,)),
    "entity vocabulary cut off": (cut(ENTITIES, 0.5), (ENTITIES,)),
    "entity vocabulary is empty": (text(ENTITIES, ""), (ENTITIES, "empty")),
    "no [MASK]": (
        entities(lambda x: {k: v for k, v in x.items() if k != "[MASK]"} | {"other": 2}),
        (ENTITIES, "[MASK]"),
    ),
    "a special entity twice": (
        text(ENTITIES, '{"[MASK]": 0, "[UNK]": 1, "[MASK]": 22}'),
        (ENTITIES, "[MASK]", "twice"),
    ),
    "an id that is text": (entities(lambda x: {**x, "Tokyo": "3"}), (ENTITIES, "Tokyo", "'3'")),
    "a negative id": (entities(lambda x: {**x, "Tokyo": -3}), (ENTITIES, "Tokyo", "-3")),
    "a vocabulary longer than the table": (
        entities(lambda x: {**x, "Atlantis": 23}),
        (ENTITIES, "entity_vocab_size 23"),
    ),
    "a vocabulary shorter than the table": (
        entities(lambda x: {k: v for k, v in x.items() if v < 20}),
        (ENTITIES, "entity_vocab_size 23"),
    ),
    "no tokenizer": (without("vocab.json"), ("tokenizer.json", "vocab.json")),
    "tokenizer cut off": (cut("vocab.json", 0.5), ("vocab.json",)),
    "merges that are none": (text("merges.txt", "#version: 0.2\nx\n"), ("merges.txt",)),
    "added pieces that are no ids": (
        text("added_tokens.json", '{"<ent>": "x"}'),
        ("added_tokens.json", "'<ent>'", "'x'"),
    ),
    "a negative added piece": (
        text("added_tokens.json", '{"<ent>": -5}'),
        ("added_tokens.json", "-5"),
    ),
    "an added piece that is true": (
        text("added_tokens.json", '{"<ent>": true}'),
        ("added_tokens.json", "True"),
    ),
    "an added piece with the id of another": (
        text("added_tokens.json", '{"<ent>": 7}'),
        ("added_tokens.json", "<ent>", "id 7 of"),
    ),
    "a piece outside the word table": (
        objects("vocab.json", lambda x: {**x, "Tokyo": 5000}),
        ("ids up to 5000", "vocab_size", CONFIG),
    ),
    "padding that is no piece": (config(pad_token_id=400), (CONFIG, "pad_token_id", "400")),
    "padding that leaves no positions": (
        config(pad_token_id=129),
        (CONFIG, "max_position_embeddings (130)", "pad_token_id (129)"),
    ),
    "an id beyond all numbers": (
        entities(lambda x: {**x, "Tokyo": 2**63}),
        (ENTITIES, "Tokyo", str(2**63)),
    ),
    "a name that is half a character": (
        text(ENTITIES, '{"[MASK]": 0, "\\ud800Tokyo": 1}'),
        (ENTITIES, "Tokyo", "not valid text"),
    ),
    "a vocabulary nested too deeply": (text(ENTITIES, '{"a":' * 9999), (ENTITIES, "deeply")),
    "a configuration nested too deeply": (text(CONFIG, '{"a":' * 9999), (CONFIG, "deeply")),
    "tensors under numbers": (
        binary(lambda x: dict(enumerate(x.values()))),
        ("pytorch_model.bin", "names"),
    ),
    "a sparse tensor": (
        binary(lambda x: {**x, TABLE: x[TABLE].to_sparse()}),
        ("pytorch_model.bin", TABLE, "sparse"),
    ),
    "a tensor in eight bits": (
        weights(
            lambda x: {**x, "lm_head.dense.bias": x["lm_head.dense.bias"].to(torch.float8_e4m3fn)}
        ),
        (WEIGHTS, "lm_head.dense.bias", "float8"),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_it_is_one_clear_error(what, copy_of, make_checkpoint, tmp_path):
    path = copy_of(make_checkpoint("luke", "LukeForMaskedLM"))
    read_checkpoint(path)
    damage, named = BROKEN[what]
    damage(path)
    with pytest.raises(LukeError) as caught:
        read_checkpoint(path)
    message = str(caught.value)
    for word in named:
        assert word in message, message
    assert str(path) in message and len(message) < 1500
    result = CliRunner().invoke(app, ["import", str(path), str(tmp_path / "out")])
    assert result.exit_code == 1 and "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_plain_encoder_that_lacks_a_tensor_is_one_clear_error(copy_of, bert_dir):
    path = copy_of(bert_dir)
    weights(lambda x: {k: v for k, v in x.items() if k != "embeddings.LayerNorm.bias"})(path)
    with pytest.raises(LukeError, match="lacks weights .*: embeddings.LayerNorm.bias") as caught:
        read_checkpoint(path)
    assert str(path / WEIGHTS) in str(caught.value)
