"""What is written is read back as the same model, by us and by transformers."""

import json

import numpy as np
import pytest
import spacy
import torch
from safetensors.torch import load_file, save_file

from spacy_luke.checkpoint.entity_table import with_entities
from spacy_luke.checkpoint.read import load_into, read_checkpoint
from spacy_luke.checkpoint.write import write_checkpoint
from spacy_luke.errors import CheckpointError
from spacy_luke.model.network import LukeModel
from spacy_luke.model.packing import Entities, LukeInputs, Words
from spacy_luke.vocab.entity_vocab import EntityVocab
from tests.conftest import SENTENCES

KINDS = pytest.mark.parametrize("kind", ["luke", "lite", "bert", "roberta", "xlm-roberta"])

POSITIONS = {"word_embeddings.positions.weight", "entity_embeddings.positions.weight"}


def write(checkpoint, folder):
    masked = "entity_predictions.bias" in checkpoint.others
    write_checkpoint(folder, checkpoint, "LukeForMaskedLM" if masked else "LukeModel")
    return read_checkpoint(folder)


@KINDS
def test_reading_what_was_written_gives_the_same(kind, make_checkpoint, tmp_path):
    before = read_checkpoint(make_checkpoint(kind))
    after = write(before, tmp_path / "out")
    assert after.is_luke and after.weights.keys() == before.weights.keys()
    moved = POSITIONS if kind == "bert" else set()
    rest = before.weights.keys() - moved
    assert all(torch.equal(after.weights[x], before.weights[x]) for x in rest)
    assert after.entities.names == before.entities.names
    assert after.config.max_pieces == before.config.max_pieces
    assert after.pieces.special_ids == before.pieces.special_ids
    assert after.pieces.added == before.pieces.added
    odd = [*SENTENCES, "<mask> or [MASK] </s>", "naïve 東京 \u00a0x", " spaced  out "]
    for a, b in zip(before.pieces.encode_words(odd), after.pieces.encode_words(odd)):
        assert np.array_equal(a, b)


def test_a_luke_that_began_as_a_bert_keeps_its_positions(make_checkpoint, tmp_path):
    """Whatever the configuration leaves out: its type says that it is a LUKE already."""
    source = make_checkpoint("luke", bert_model_name="google-bert/bert-base-uncased")
    config = json.loads((source / "config.json").read_text())
    del config["architectures"]
    (source / "config.json").write_text(json.dumps(config))
    before = read_checkpoint(source)
    after = write(before, tmp_path / "out")
    assert before.config.kind == after.config.kind == "bert"
    assert all(torch.equal(after.weights[x], before.weights[x]) for x in before.weights)


@pytest.mark.parametrize("key", ["torch_dtype", "dtype"])
def test_the_configuration_names_the_precision_of_the_tensors(make_checkpoint, tmp_path, key):
    source = make_checkpoint("luke")
    tensors = {x: t.half() for x, t in load_file(source / "model.safetensors").items()}
    save_file(tensors, source / "model.safetensors", {"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    config.pop("torch_dtype", None)
    (source / "config.json").write_text(json.dumps({**config, key: "float16"}))
    checkpoint = read_checkpoint(source)
    write(checkpoint, tmp_path / "same")
    assert json.loads((tmp_path / "same" / "config.json").read_text())[key] == "float16"
    checkpoint.weights["word_embeddings.norm.bias"] += 1e-6  # trained
    write(checkpoint, tmp_path / "trained")
    assert json.loads((tmp_path / "trained" / "config.json").read_text())[key] == "float32"


def test_a_bias_may_have_the_name_of_its_decoder(make_checkpoint, tmp_path):
    """As ``transformers`` 5 writes it."""
    source = make_checkpoint("luke", "LukeForMaskedLM")
    tensors = load_file(source / "model.safetensors")
    bias = tensors.pop("lm_head.decoder.bias", tensors.pop("lm_head.bias", None))
    before = {**tensors, "lm_head.decoder.bias": bias}
    save_file(before, source / "model.safetensors", {"format": "pt"})
    checkpoint = read_checkpoint(source)
    assert torch.equal(checkpoint.others["lm_head.bias"], bias)
    for names, name in ((True, "lm_head.decoder.bias"), (False, "lm_head.bias")):
        folder = tmp_path / name
        write_checkpoint(folder, checkpoint, "LukeForMaskedLM", source_names=names)
        after = load_file(folder / "model.safetensors")
        assert after.keys() == {*tensors, name} and torch.equal(after[name], bias)


def test_a_decoder_that_differs_from_its_table_is_told(make_checkpoint, caplog):
    source = make_checkpoint("luke", "LukeForMaskedLM")
    tensors = load_file(source / "model.safetensors")
    table = tensors["luke.embeddings.word_embeddings.weight"]
    tensors["lm_head.decoder.weight"] = table + 1
    save_file(tensors, source / "model.safetensors", {"format": "pt"})
    spacy.util.logger.propagate = True
    read_checkpoint(source)
    assert "lm_head.decoder.weight differs from embeddings.word_embeddings.weight" in caplog.text


def test_transformers_loads_it_with_the_same_logits(make_checkpoint, tmp_path):
    transformers = pytest.importorskip("transformers")
    source = make_checkpoint("luke", "LukeForMaskedLM")
    write(read_checkpoint(source), tmp_path / "out")
    inputs = {
        "input_ids": torch.tensor([[0, 10, 11, 12, 2]]),
        "entity_ids": torch.tensor([[2, 4]]),
        "entity_position_ids": torch.tensor([[[1, 2, -1], [3, -1, -1]]]),
    }
    logits = []
    for path in (source, tmp_path / "out"):
        model = transformers.LukeForMaskedLM.from_pretrained(path).eval()
        with torch.no_grad():
            found = model(**inputs)
        logits.append((found.logits, found.entity_logits))
    assert torch.equal(logits[0][0], logits[1][0]) and torch.equal(logits[0][1], logits[1][1])


def test_transformers_reads_the_tokenizer(make_checkpoint, tmp_path):
    transformers = pytest.importorskip("transformers")
    checkpoint = read_checkpoint(make_checkpoint("luke"))
    write(checkpoint, tmp_path / "out")
    tokenizer = transformers.LukeTokenizer.from_pretrained(tmp_path / "out")
    for text in SENTENCES:
        (ours,) = checkpoint.pieces.encode_words([text])
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == ours.tolist()
    assert tokenizer.entity_vocab == checkpoint.entities.names


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_transformers_gives_what_began_as_a_plain_encoder_the_same_states(
    kind, make_checkpoint, tmp_path
):
    """With its own positions, and with the pieces that its own tokenizer makes of the files."""
    transformers = pytest.importorskip("transformers")
    before = read_checkpoint(make_checkpoint(kind))
    after = write(before, tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    model = transformers.LukeModel.from_pretrained(tmp_path / "out").eval()
    text = SENTENCES[0]
    (pieces,) = before.pieces.encode_texts([text])
    ids = np.asarray([before.pieces.cls_id, *pieces[0], before.pieces.sep_id])
    assert tokenizer(text)["input_ids"] == ids.tolist()
    positions = torch.full((1, 1, 30), -1)
    positions[0, 0, :2] = torch.tensor([1, 2])
    with torch.no_grad():
        theirs = model(
            input_ids=torch.from_numpy(ids)[None],
            entity_ids=torch.tensor([[before.entities.mask_id]]),
            entity_position_ids=positions,
        )
    inputs = LukeInputs(
        Words(ids, np.array([0, len(ids)])),
        Entities(
            np.array([before.entities.mask_id]), np.array([1]), np.array([3]), np.array([0, 1])
        ),
    )
    for checkpoint in (before, after):
        network = LukeModel(checkpoint.config).eval()
        load_into(network, checkpoint)
        with torch.no_grad():
            states = network(inputs)
        assert (states.words - theirs.last_hidden_state[0]).abs().max() < 1e-5
        assert (states.entities - theirs.entity_last_hidden_state[0]).abs().max() < 1e-5


def test_an_existing_directory_is_not_written_over(make_checkpoint, tmp_path):
    with pytest.raises(CheckpointError, match="exists"):
        write(read_checkpoint(make_checkpoint("luke")), tmp_path)


def test_a_pruned_table_is_written_as_pruned(make_checkpoint, tmp_path):
    checkpoint = read_checkpoint(make_checkpoint("luke"))
    small = EntityVocab({"[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "Tokyo": 3})
    after = write(with_entities(checkpoint, small), tmp_path / "out")
    assert after.config.entity_vocab_size == 4 and after.entities.names == small.names
