"""A directory to a checkpoint: what is found, filled, renamed and refused."""

import json
from pathlib import Path

import pytest

from spacy_luke.checkpoint.names import EXTRA_QUERIES, to_ours, to_published
from spacy_luke.checkpoint.read import load_into, read_checkpoint
from spacy_luke.errors import CheckpointError, ConfigError, VocabError
from spacy_luke.model.network import LukeModel

torch = pytest.importorskip("torch")
from safetensors.torch import load_file, save_file  # noqa: E402

KINDS = ["luke_dir", "lite_dir", "bert_dir", "roberta_dir", "xlmr_dir"]
LAYER = "encoder.layer.1"


@pytest.fixture
def directory(copy_of, luke_dir):
    return copy_of(luke_dir)


def change_weights(path, change):
    """Rewrite the weight file through a function of its tensors."""
    tensors = load_file(path / "model.safetensors")
    tensors = change(tensors) or tensors
    save_file(tensors, path / "model.safetensors")


def change_config(path, **values):
    config = json.loads((path / "config.json").read_text())
    config.update(values)
    (path / "config.json").write_text(json.dumps(config))


def change_entities(path, change):
    file = path / "entity_vocab.json"
    names = json.loads(file.read_text(encoding="utf8"))
    change(names)
    file.write_text(json.dumps(names), encoding="utf8")


def equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("fixture", KINDS)
def test_every_weight_returns_to_its_published_name_bit_for_bit(fixture, request):
    path = request.getfixturevalue(fixture)
    weights = read_checkpoint(path).weights
    published = to_published(weights)
    assert equal(to_ours(published, weights), weights)
    original = load_file(path / "model.safetensors")
    kept = {n: t for n, t in original.items() if not n.startswith("pooler.")}
    assert all(torch.equal(published[name], tensor) for name, tensor in kept.items())
    model = LukeModel(read_checkpoint(path).config)
    load_into(model, read_checkpoint(path))
    assert equal(model.state_dict(), weights)


def test_a_directory_is_recorded_by_the_name_it_is_given_as(luke_dir, tmp_path, monkeypatch):
    link = tmp_path / "my-encoder"
    link.symlink_to(luke_dir)
    assert read_checkpoint(link).source.name == "my-encoder"
    assert read_checkpoint(link, name=str(link)).source.name == "my-encoder"
    monkeypatch.chdir(luke_dir)
    assert read_checkpoint(Path(), name=".").source.name == luke_dir.name


def test_tensors_of_heads_are_kept_under_their_names(make_checkpoint):
    path = make_checkpoint("luke", "LukeForMaskedLM")
    checkpoint = read_checkpoint(path)
    original = load_file(path / "model.safetensors")
    tied = {"lm_head.decoder.bias": "lm_head.bias"}  # transformers 5
    heads = {
        tied.get(n, n): t
        for n, t in original.items()
        if not n.startswith("luke.") and n != "lm_head.decoder.weight"
    }
    assert heads
    assert all(torch.equal(checkpoint.others[name], heads[name]) for name in heads)
    assert "entity_predictions.bias" in checkpoint.others


@pytest.mark.parametrize("prefix", ["luke.", ""])
def test_a_prefix_makes_no_difference(prefix, directory):
    expected = read_checkpoint(directory).weights
    change_weights(directory, lambda tensors: {prefix + n: t for n, t in tensors.items()})
    assert equal(read_checkpoint(directory).weights, expected)


@pytest.mark.parametrize(("fixture", "prefix"), [("bert_dir", "bert."), ("xlmr_dir", "roberta.")])
def test_plain_encoders_have_prefixes_and_old_names_too(fixture, prefix, copy_of, request):
    path = copy_of(request.getfixturevalue(fixture))
    expected = read_checkpoint(path).weights

    def old(name):
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        return prefix + name.replace("LayerNorm.bias", "LayerNorm.beta")

    change_weights(path, lambda tensors: {old(n): t for n, t in tensors.items()})
    assert equal(read_checkpoint(path).weights, expected)


def test_position_ids_of_old_files_are_ignored(directory):
    expected = read_checkpoint(directory).weights
    name = "luke.embeddings.position_ids"
    change_weights(directory, lambda tensors: tensors.update({name: torch.arange(9)[None]}))
    assert equal(read_checkpoint(directory).weights, expected)


def test_half_precision_is_read_as_single(directory):
    change_weights(directory, lambda tensors: {n: t.half() for n, t in tensors.items()})
    weights = read_checkpoint(directory).weights
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}


def test_missing_extra_queries_start_as_the_query(directory):
    def drop(tensors):
        return {n: t for n, t in tensors.items() if not any(q in n for q in EXTRA_QUERIES)}

    change_weights(directory, drop)
    published = to_published(read_checkpoint(directory).weights)
    for kind in ("weight", "bias"):
        query = published[f"{LAYER}.attention.self.query.{kind}"]
        for name in EXTRA_QUERIES:
            assert torch.equal(published[f"{LAYER}.{name}.{kind}"], query)


def test_extra_queries_are_dropped_where_attention_is_plain(directory):
    plain = read_checkpoint(directory, entity_aware=False)
    assert not plain.config.use_entity_aware_attention
    assert not any("query" in name for name in plain.weights)
    assert len(plain.weights) < len(read_checkpoint(directory).weights)


@pytest.mark.parametrize(
    "name",
    [
        "embeddings.LayerNorm.bias",
        "entity_embeddings.entity_embedding_dense.weight",
        "entity_embeddings.entity_embeddings.weight",
        f"{LAYER}.attention.self.query.weight",
        f"{LAYER}.output.dense.bias",
    ],
)
def test_a_missing_weight_is_named(name, directory):
    change_weights(directory, lambda tensors: tensors.pop(name) is None or None)
    with pytest.raises(CheckpointError, match=name) as error:
        read_checkpoint(directory)
    assert str(directory) in str(error.value)


@pytest.mark.parametrize("name", ["encoder.layer.2.output.dense.bias", "luke.colour", "cls.x"])
def test_an_unknown_weight_is_named(name, directory):
    change_weights(directory, lambda tensors: tensors.update({name: torch.zeros(2)}))
    with pytest.raises(CheckpointError, match=name.removeprefix("luke.")):
        read_checkpoint(directory)


@pytest.mark.parametrize(
    "name",
    [
        "embeddings.word_embeddings.weight",
        "entity_embeddings.position_embeddings.weight",
        f"{LAYER}.attention.self.key.weight",
        f"{LAYER}.attention.self.e2e_query.bias",
    ],
)
def test_a_weight_of_another_shape_is_named(name, directory):
    def grow(tensors):
        tensors[name] = torch.cat([tensors[name], tensors[name][:1]])

    change_weights(directory, grow)
    with pytest.raises(CheckpointError, match=f"{name} has the shape"):
        read_checkpoint(directory)


@pytest.mark.parametrize("model_type", ["gpt2", None, 3, ["luke"]])
def test_another_kind_of_model_is_named(model_type, directory):
    change_config(directory, model_type=model_type)
    with pytest.raises(CheckpointError, match="model_type is"):
        read_checkpoint(directory)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_act", "relu"),
        ("position_embedding_type", "relative_key"),
        ("hidden_size", "wide"),
        ("hidden_size", 30),
        ("num_attention_heads", 0),
        ("vocab_size", -1),
        ("use_entity_aware_attention", "maybe"),
    ],
)
def test_a_setting_that_cannot_work_is_named(key, value, directory):
    change_config(directory, **{key: value})
    with pytest.raises(ConfigError, match=key) as error:
        read_checkpoint(directory)
    assert "config.json" in str(error.value)


def test_unknown_settings_are_kept(directory):
    change_config(directory, cls_entity_prediction=False, bert_model_name="roberta-base")
    extra = read_checkpoint(directory).config.extra
    assert (extra["cls_entity_prediction"], extra["bert_model_name"]) == (False, "roberta-base")


def test_absent_settings_are_the_defaults_of_the_model_type(copy_of, bert_dir):
    path = copy_of(bert_dir)
    config = json.loads((path / "config.json").read_text())
    for key in ("type_vocab_size", "layer_norm_eps", "pad_token_id"):
        del config[key]
    (path / "config.json").write_text(json.dumps(config))
    found = read_checkpoint(path).config
    assert (found.type_vocab_size, found.layer_norm_eps, found.pad_token_id) == (2, 1e-12, 0)


def test_special_entities_are_as_the_vocabulary_has_them(luke_dir, lite_dir):
    assert read_checkpoint(luke_dir).entities.mask_id == 2
    assert read_checkpoint(lite_dir).entities.mask_id == 0


def test_a_vocabulary_without_mask_is_refused(directory):
    change_entities(directory, lambda names: names.pop("[MASK]"))
    with pytest.raises(VocabError, match=r"entity_vocab\.json has no \[MASK\]"):
        read_checkpoint(directory)


def test_a_vocabulary_longer_than_the_table_is_refused(directory):
    change_entities(directory, lambda names: names.update({"one too many": len(names)}))
    with pytest.raises(CheckpointError, match=r"entity_vocab\.json has ids up to"):
        read_checkpoint(directory)


def test_a_luke_without_an_entity_vocabulary_is_refused(directory):
    (directory / "entity_vocab.json").unlink()
    with pytest.raises(CheckpointError, match="no entity vocabulary"):
        read_checkpoint(directory)


def test_more_pieces_than_the_word_table_has_are_refused(directory):
    (directory / "added_tokens.json").write_text('{"<ent>": 398, "<ent2>": 99999}')
    with pytest.raises(CheckpointError, match="vocab_size"):
        read_checkpoint(directory)


@pytest.mark.parametrize("fixture", ["bert_dir", "roberta_dir", "xlmr_dir"])
def test_a_plain_encoder_becomes_a_luke_that_has_seen_no_entities(fixture, request):
    checkpoint = read_checkpoint(request.getfixturevalue(fixture))
    config, entities, weights = checkpoint.config, checkpoint.entities, checkpoint.weights
    assert not checkpoint.is_luke
    assert config.use_entity_aware_attention
    words, table = weights["word_embeddings.words.weight"], "entity_embeddings.entities.weight"
    mask = words[checkpoint.pieces.mask_id]
    assert torch.equal(weights[table][entities.mask_id], mask)
    assert torch.equal(weights[table][entities.mask2_id], mask)
    assert torch.equal(weights[table][entities.unk_id], words[checkpoint.pieces.unk_id])
    assert not weights[table][entities.pad_id].any()
    positions = weights["word_embeddings.positions.weight"]
    offset = 0 if config.kind == "bert" else 2
    assert config.position_offset == offset
    of_entities = weights["entity_embeddings.positions.weight"]
    assert torch.equal(of_entities[: config.max_pieces], positions[offset:])
    assert not of_entities[config.max_pieces :].any()
    for name in ("types.weight", "norm.weight", "norm.bias"):
        of_words = weights[f"word_embeddings.{name}"]
        assert torch.equal(weights[f"entity_embeddings.{name}"], of_words)
    published = to_published(weights)
    for name in EXTRA_QUERIES:
        query = published[f"{LAYER}.attention.self.query.weight"]
        assert torch.equal(published[f"{LAYER}.{name}.weight"], query)


def test_a_plain_encoder_that_lacks_embeddings_is_refused(copy_of, bert_dir):
    path = copy_of(bert_dir)
    name = "embeddings.token_type_embeddings.weight"
    change_weights(path, lambda tensors: tensors.pop(name) is None or None)
    with pytest.raises(CheckpointError, match=name):
        read_checkpoint(path)


def test_weights_that_do_not_fit_a_network_are_refused(luke_dir):
    checkpoint = read_checkpoint(luke_dir)
    model = LukeModel(checkpoint.config)
    checkpoint.weights["colour"] = checkpoint.weights.pop("layers.0.qkv.bias")
    with pytest.raises(CheckpointError, match=r"layers\.0\.qkv\.bias.*colour"):
        load_into(model, checkpoint)
