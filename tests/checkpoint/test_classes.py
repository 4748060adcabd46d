"""The table of published classes: what it says is what others publish and what we have."""

from pathlib import Path

import pytest
import spacy
import torch

import spacy_luke
from spacy_luke.checkpoint.classes import ANY, CLASSES, class_named
from spacy_luke.checkpoint.names import CLASSIFIER_BIAS, by_short_name
from spacy_luke.checkpoint.network_config import network_config

SIZES = {
    "vocab_size": 50,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "entity_vocab_size": 7,
    "entity_emb_size": 4,
}
ROWS = pytest.mark.parametrize("row", CLASSES, ids=lambda row: row.name)


@ROWS
def test_heads_have_the_tensors_of_the_class_in_transformers(row):
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, row.name):
        pytest.skip("published by others")
    config = transformers.LukeConfig(**SIZES)
    with torch.device("meta"):
        model = getattr(transformers, row.name)(config)
    prefix = "" if row.name == "LukeModel" else "luke."
    found = {
        name: tuple(tensor.shape)
        for name, tensor in by_short_name(model.state_dict()).items()
        if f"{prefix}{name}" not in model.state_dict() and "decoder" not in name
    }
    shapes = row.shapes(network_config(config.to_dict(), Path("config.json")))
    if not row.component:
        assert not shapes and not row.settings
        return
    found.pop(CLASSIFIER_BIAS, None)
    shapes.pop(CLASSIFIER_BIAS, None)
    assert found.keys() == shapes.keys()
    for name, shape in shapes.items():
        assert all(x in (ANY, y) for x, y in zip(shape, found[name])), name


@ROWS
def test_components_take_the_settings(row):
    if row.component:
        spacy.blank("en").add_pipe(row.component, config=row.settings)


def test_variants_and_unknown_classes():
    assert class_named("UCTopic") is class_named("UCTopicModel")
    unknown = class_named("LukeForTomorrow")
    assert (unknown.component, unknown.head, unknown.n_states) == ("luke", {}, 0)


def test_names_of_classes_stand_in_the_table_alone():
    package = Path(spacy_luke.__file__).parent
    found = {x.name for x in package.rglob("*.py") if "LukeFor" in x.read_text("utf8")}
    assert found == {"classes.py"}
