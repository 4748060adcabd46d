"""Another entity vocabulary for a checkpoint: rows that are kept are kept exactly."""

from dataclasses import replace

import pytest
import torch

from spacy_luke.checkpoint.entity_table import with_entities
from spacy_luke.checkpoint.read import load_into, read_checkpoint
from spacy_luke.errors import CheckpointError
from spacy_luke.model.network import LukeModel
from spacy_luke.vocab.editing import shared_rows
from spacy_luke.vocab.entity_vocab import EntityVocab

TABLE = "entity_embeddings.entities.weight"
BIAS = "entity_predictions.bias"
SPECIALS = ("[PAD]", "[UNK]", "[MASK]", "[MASK2]")


def vocab(*names: str) -> EntityVocab:
    return EntityVocab({name: i for i, name in enumerate((*SPECIALS, *names))})


@pytest.fixture(scope="module")
def luke(make_checkpoint):
    return read_checkpoint(make_checkpoint("luke", "LukeForMaskedLM"))


def row(checkpoint, name: str) -> torch.Tensor:
    return checkpoint.weights[TABLE][checkpoint.entities.names[name]]


def test_titles_of_one_language_are_found_in_a_vocabulary_of_several(luke):
    names = [x if x in SPECIALS else f"en:{x}" for x in luke.entities.names]
    several = replace(luke, entities=EntityVocab({x: i for i, x in enumerate(names)}))
    found = with_entities(several, vocab("Tokyo", "Atlantis"), language="en")
    assert torch.equal(row(found, "Tokyo"), row(luke, "Tokyo"))
    assert shared_rows(found.entities, several.entities, "de").keys() == {0, 1, 2, 3}
    other = with_entities(several, vocab("Tokyo", "Atlantis"), language="de")
    assert not torch.equal(row(other, "Tokyo"), row(luke, "Tokyo"))


def test_pruning_keeps_rows_and_biases(luke):
    small = with_entities(luke, vocab("Japan", "Tokyo"))
    for name in ("[UNK]", "[MASK]", "[MASK2]", "Japan", "Tokyo"):
        assert torch.equal(row(small, name), row(luke, name))
        biases = [
            x.others["entity_predictions.bias"][x.entities.names[name]] for x in (small, luke)
        ]
        assert biases[0] == biases[1]
    assert small.config.entity_vocab_size == 6 and len(small.weights[TABLE]) == 6
    load_into(LukeModel(small.config), small)


def test_extending_adds_fresh_rows_and_going_back_is_exact(luke):
    titles = [x for x in luke.entities.names if x not in SPECIALS]
    large = with_entities(luke, vocab(*titles, "Orrin", "Ines Marrow"))
    fresh = torch.stack([row(large, "Orrin"), row(large, "Ines Marrow")])
    assert 0.0 < fresh.std() < 0.1 and not torch.equal(fresh[0], fresh[1])
    assert not large.others["entity_predictions.bias"][-2:].any()
    back = with_entities(large, luke.entities)
    for name in luke.entities.names:
        assert torch.equal(row(back, name), row(luke, name))
    assert torch.equal(back.others[BIAS], luke.others[BIAS])


def test_fresh_rows_are_those_of_the_seed(luke):
    tables = [with_entities(luke, vocab("Orrin"), seed=x).weights[TABLE] for x in (0, 0, 1)]
    assert torch.equal(tables[0], tables[1]) and not torch.equal(tables[0], tables[2])


def test_beginning_anew_keeps_special_entities_alone(luke):
    anew = with_entities(luke, vocab("Tokyo"), keep=False)
    assert torch.equal(row(anew, "[MASK]"), row(luke, "[MASK]"))
    assert not torch.equal(row(anew, "Tokyo"), row(luke, "Tokyo"))


@pytest.mark.parametrize("size", [8, 32])
def test_another_width_begins_the_table_and_its_projection_anew(luke, size):
    wide = with_entities(luke, vocab("Tokyo"), size=size)
    assert wide.config.entity_emb_size == size and wide.weights[TABLE].shape == (5, size)
    assert not any(x.startswith("entity_predictions.") for x in wide.others)
    load_into(LukeModel(wide.config), wide)


def test_lite_becomes_full_and_lite_again(luke):
    lite = with_entities(luke, EntityVocab({"[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "[MASK2]": 3}))
    lite.weights[TABLE][0] += 1.0  # as fine-tuning does
    full = with_entities(lite, luke.entities, fallback=luke)
    for name in luke.entities.names:
        assert torch.equal(row(full, name), row(lite if name in SPECIALS else luke, name))
    assert torch.equal(full.others[BIAS], luke.others[BIAS])
    again = with_entities(full, lite.entities)
    assert torch.equal(again.weights[TABLE], lite.weights[TABLE])
    assert torch.equal(again.others[BIAS], lite.others[BIAS])


def test_rows_of_another_width_are_refused(luke):
    wide = with_entities(luke, vocab("Tokyo"), size=8)
    with pytest.raises(CheckpointError, match="size 8; size 16 is needed"):
        with_entities(luke, vocab("Tokyo", "Kobe"), fallback=wide)
