"""Entities of one's own, encoders without [MASK2], and what has no rows."""

from dataclasses import replace

import pytest
import spacy
import torch

from spacy_luke.checkpoint.entity_table import with_entities
from spacy_luke.checkpoint.names import ENTITY_HEAD, ENTITY_TABLE
from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import CheckpointError, ConfigError
from spacy_luke.layers.encoder import module_of, set_encoder, to_checkpoint
from spacy_luke.pipeline.entity_store import (
    TitledMention,
    add_entities,
    find_encoder,
    replace_entities,
)
from spacy_luke.pipeline.published import import_checkpoint
from spacy_luke.vocab.editing import lite
from spacy_luke.vocab.entity_vocab import EntityVocab


def test_a_known_entity_is_replaced_by_its_title_in_the_pipelines_language(make_checkpoint):
    nlp = import_checkpoint(str(make_checkpoint("luke", "LukeForMaskedLM")), "en")
    node = find_encoder(nlp)
    checkpoint = to_checkpoint(module_of(node))
    names = {
        f"en:{x}" if not x.startswith("[") else x: i for x, i in checkpoint.entities.names.items()
    }
    checkpoint.others[ENTITY_HEAD["bias"]] += torch.arange(23)
    del names["en:Japan"]  # a row without a name
    set_encoder(node, replace(checkpoint, entities=EntityVocab(names)))
    doc = nlp.make_doc("Tokyo is large.")
    mentions = [TitledMention("Tokyo", doc, 0, 1), TitledMention("Halden", doc, 2, 3)]
    assert add_entities(node, mentions, "en") == [
        "Tokyo", "Halden",
    ]  # fmt: skip
    after = to_checkpoint(module_of(node))
    assert "Tokyo" not in after.entities and after.entities.names["Halden"] == 23
    changed = (after.weights[ENTITY_TABLE][:23] != checkpoint.weights[ENTITY_TABLE]).any(1)
    assert changed.nonzero().flatten().tolist() == [names["en:Tokyo"]]
    biases = [x.others[ENTITY_HEAD["bias"]] for x in (checkpoint, after)]
    kept = [i for i in range(23) if i != names["en:Tokyo"]]
    assert torch.equal(biases[0][kept], biases[1][kept])


def test_mentions_of_one_entity_under_several_names_are_one_entity(make_checkpoint):
    nlp = import_checkpoint(str(make_checkpoint("luke", "LukeForMaskedLM")), "en")
    node = find_encoder(nlp)
    before = to_checkpoint(module_of(node))
    doc = nlp.make_doc("Tokyo is large and far away.")
    places = [("Ada_Lovelace", 0), ("Ada Lovelace", 2), ("Old_Halden", 4), ("Old Halden", 5)]
    mentions = [TitledMention(name, doc, i, i + 1) for name, i in places]
    assert add_entities(node, mentions, "en") == ["Ada_Lovelace", "Old_Halden"]
    after = to_checkpoint(module_of(node))
    assert len(after.entities) == len(before.entities) + 1
    alone = []
    for i in (0, 1):
        set_encoder(node, before)
        add_entities(node, mentions[i : i + 1], "en")
        alone.append(row_of(node, "Ada Lovelace"))
    both = after.weights[ENTITY_TABLE][after.entities.names["Ada Lovelace"]]
    assert not torch.allclose(both, alone[0]) and not torch.allclose(both, alone[1])


def row_of(node, name):
    checkpoint = to_checkpoint(module_of(node))
    return checkpoint.weights[ENTITY_TABLE][checkpoint.entities.names[name]].clone()


def test_a_decoder_that_fits_no_other_table_is_told(make_checkpoint, caplog):
    checkpoint = read_checkpoint(make_checkpoint("luke", "LukeForMaskedLM"))
    checkpoint.others["entity_predictions.decoder.weight"] = torch.ones(23, 16)
    with caplog.at_level("WARNING", logger="spacy.luke"):
        spacy.util.logger.propagate = True
        found = with_entities(checkpoint, lite(checkpoint.entities))
    assert "entity decoder that is not tied" in caplog.text
    assert "entity_predictions.decoder.weight" not in found.others


def test_rows_of_another_kind_of_encoder_are_refused(luke_dir, make_checkpoint):
    nlp = import_checkpoint(str(luke_dir), "en")
    other = read_checkpoint(make_checkpoint("luke", num_hidden_layers=3))
    with pytest.raises(CheckpointError, match="num_hidden_layers 3"):
        replace_entities(find_encoder(nlp), other.entities, other)


def test_an_entity_without_a_row_is_refused(luke_dir):
    nlp = import_checkpoint(str(luke_dir), "en")
    node = find_encoder(nlp)
    wanted = EntityVocab({**dict(module_of(node).entities.names.items()), "Atlantis": 23})
    with pytest.raises(ConfigError, match="no rows for 1 entities, 'Atlantis'"):
        replace_entities(node, wanted)
    with pytest.raises(ConfigError, match="no rows"):
        replace_entities(node, wanted, read_checkpoint(luke_dir))


def test_word_shapes_and_labels_survive_another_table(bert_dir):
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-luke.LukeEncoder.v1",
        "name": str(bert_dir),
        "word_shapes": True,
        "entity_labels": ["PER"],
    }
    nlp.add_pipe("luke", config={"model": model})
    nlp.initialize()
    node = find_encoder(nlp)
    before = module_of(node).network.state_dict()
    replace_entities(node, lite(module_of(node).entities))
    after = module_of(node).network.state_dict()
    for name in ("word_embeddings.shapes.weight", "entity_embeddings.labels.weight"):
        assert (before[name] == after[name]).all()


def test_which_encoder_is_meant_must_be_clear(luke_dir):
    nlp = import_checkpoint(str(luke_dir), "en")
    nlp.add_pipe("luke", name="other", source=import_checkpoint(str(luke_dir), "en"))
    with pytest.raises(ConfigError, match=r"2 components have an encoder \['luke', 'other'\]"):
        find_encoder(nlp)
    assert find_encoder(nlp, "other") is nlp.get_pipe("other").model
    with pytest.raises(ConfigError, match="'ner' has no LUKE encoder"):
        find_encoder(nlp, "ner")
