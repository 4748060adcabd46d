"""The mask embedding of published disambiguation models: read, used for [MASK] alone, written."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_luke.checkpoint.classes import DISAMBIGUATION
from spacy_luke.checkpoint.entity_table import with_entities
from spacy_luke.checkpoint.names import ENTITY_TABLE, MASK_EMBEDDING
from spacy_luke.checkpoint.read import load_into, read_checkpoint
from spacy_luke.checkpoint.write import write_checkpoint
from spacy_luke.errors import CheckpointError, ConfigError
from spacy_luke.model.network import LukeModel
from spacy_luke.model.packing import Entities, LukeInputs, Words
from spacy_luke.vocab.entity_vocab import EntityVocab
from tests.pipeline.published_data import same, tensors

PUBLISHED = f"luke.{MASK_EMBEDDING}"


@pytest.fixture(scope="module", params=["bert-luke", "luke", "mluke"])
def directory(request, make_checkpoint):
    return make_checkpoint(request.param, DISAMBIGUATION.name)


def network_of(checkpoint):
    network = LukeModel(checkpoint.config)
    load_into(network, checkpoint)
    return network.eval()


def states_of(network, ids):
    ids = np.asarray(ids)
    ones = np.ones(len(ids), dtype=np.int64)
    inputs = LukeInputs(
        Words(np.asarray([5, 6, 7]), np.asarray([0, 3])),
        Entities(ids, ones, ones + 1, np.asarray([0, len(ids)])),
    )
    with torch.no_grad():
        return network(inputs).entities


def test_it_replaces_the_row_of_mask_and_no_other(directory):
    checkpoint = read_checkpoint(directory)
    mask = checkpoint.entities.mask_id
    assert checkpoint.config.mask_row == mask
    vector = tensors(directory)[PUBLISHED]
    assert torch.equal(checkpoint.weights[MASK_EMBEDDING], vector)
    network = network_of(checkpoint)
    # As a network without it, in which the vector is the row of [MASK].
    table = checkpoint.weights[ENTITY_TABLE].clone()
    assert not torch.equal(table[mask], vector)
    table[mask] = vector
    weights = {**checkpoint.weights, ENTITY_TABLE: table}
    del weights[MASK_EMBEDDING]
    plain = replace(checkpoint.config, mask_row=None)
    usual = network_of(replace(checkpoint, config=plain, weights=weights))
    assert torch.equal(states_of(network, [mask, 4, 5]), states_of(usual, [mask, 4, 5]))
    network.entity_embeddings.set_table(checkpoint.weights[ENTITY_TABLE].numpy())
    assert torch.equal(states_of(network, [mask, 4]), states_of(usual, [mask, 4]))


def test_it_comes_back_bit_for_bit(directory, tmp_path):
    checkpoint = read_checkpoint(directory)
    write_checkpoint(tmp_path / "out", checkpoint, DISAMBIGUATION.name)
    same(tensors(directory), tensors(tmp_path / "out"))
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == [DISAMBIGUATION.name] and "mask_row" not in config
    again = read_checkpoint(tmp_path / "out")
    assert again.config == checkpoint.config
    assert dict(again.entities.names) == dict(checkpoint.entities.names)


def test_it_follows_mask_into_other_vocabularies(directory):
    checkpoint = read_checkpoint(directory)
    names = {"Atlantis": 0, "[UNK]": 1, "[PAD]": 2, "[MASK2]": 3, "[MASK]": 4}
    other = with_entities(checkpoint, EntityVocab(names))
    assert other.config.mask_row == 4
    states = [states_of(network_of(x), [x.entities.mask_id]) for x in (checkpoint, other)]
    assert torch.equal(*states)
    narrow = with_entities(checkpoint, checkpoint.entities, size=8)
    assert narrow.config.mask_row is None
    network_of(narrow)


def test_a_file_without_it_is_refused(directory, copy_of):
    path = copy_of(directory)
    found = load_file(path / "model.safetensors")
    del found[PUBLISHED]
    save_file(found, path / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"missing weights: {MASK_EMBEDDING}"):
        read_checkpoint(path)
    found[PUBLISHED] = torch.zeros(3)
    save_file(found, path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"mask_embedding has the shape \[3\]"):
        read_checkpoint(path)


@pytest.mark.parametrize("row", [-1, 10**6, "a"])
def test_its_row_must_be_in_the_table(directory, row):
    with pytest.raises(ConfigError, match="mask_row is"):
        replace(read_checkpoint(directory).config, mask_row=row)
