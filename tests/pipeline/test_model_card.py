"""What a pipeline is made of stands in its meta.json and in the README of its package."""

import hashlib

import pytest
import spacy
from spacy.cli.package import generate_readme
from spacy.training import Example
from spacy.training.loop import create_before_to_disk_callback
from spacy.util import registry

from spacy_luke.pipeline.published import import_checkpoint
from tests.pipeline.conftest import make_examples, make_ner


def test_a_trained_component_names_its_encoder_settings_and_data(luke_dir, tmp_path):
    nlp = make_ner(luke_dir)
    nlp.meta["notes"] = "Ours."
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    nlp.initialize(lambda: examples)  # said once
    nlp.to_disk(tmp_path)
    meta = spacy.load(tmp_path).meta
    card = meta["luke"]["luke_ner"]
    digest = hashlib.sha256((luke_dir / "model.safetensors").read_bytes()).hexdigest()
    assert card["encoder"] == {
        "name": luke_dir.name,
        "sha256": digest,
        "architecture": "LukeModel",
    }
    assert card["settings"]["mode"] == "two-stage" and card["settings"]["tokenization"] == "tokens"
    assert card["training_data"]["gold"] == 8
    assert [x["name"] for x in meta["sources"]] == [luke_dir.name]
    assert str(luke_dir.parent) not in str(meta)
    readme = generate_readme(meta)
    assert readme.count("Encoders and training data") == 1
    for shown in ("Ours.", digest, "gold: 8", "mode = two-stage", luke_dir.name):
        assert shown in readme


def test_an_imported_pipeline_says_where_it_is_from(luke_dir):
    nlp = import_checkpoint(str(luke_dir))
    assert nlp.meta["luke"]["luke"]["encoder"]["architecture"] == "LukeModel"
    assert "none recorded" in nlp.meta["notes"]


def test_the_card_of_a_sourced_component_is_filled_before_it_is_saved(luke_dir, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", source=import_checkpoint(str(luke_dir), "en"))
    assert "luke" not in nlp.meta
    nlp.config["training"]["before_to_disk"] = {"@callbacks": "spacy-luke.fill_card.v1"}
    create_before_to_disk_callback(registry.resolve(nlp.config["training"])["before_to_disk"])(
        nlp
    ).to_disk(tmp_path)
    card = spacy.load(tmp_path).meta["luke"]["luke"]
    assert card["encoder"]["name"] == luke_dir.name


def test_a_preset_is_named_until_the_settings_are_used_anew(make_checkpoint, tmp_path):
    names = {0: "NIL", 1: "LOC"}
    directory = make_checkpoint(
        "luke", "LukeForEntitySpanClassification", id2label=names, num_labels=2
    )
    import_checkpoint(str(directory), "en", preset="conll-2003").to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    card = nlp.meta["luke"]["luke_ner"]
    assert card["preset"] == "conll-2003" and card["settings"]["spaces"] == "conll"
    assert "preset `conll-2003`: mode = full" in generate_readme(nlp.meta)
    nlp.initialize()
    assert "preset" not in nlp.meta["luke"]["luke_ner"]


def test_a_listener_names_no_encoder_of_its_own(luke_dir):
    nlp = import_checkpoint(str(luke_dir), "en")
    listener = {"@architectures": "spacy-luke.LukeListener.v1"}
    model = {"@architectures": "spacy-luke.SpanScorer.v1", "encoder": listener}
    nlp.add_pipe("luke_ner", config={"model": model})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    assert "encoder" not in nlp.meta["luke"]["luke_ner"]
    assert "that of its `luke` component" in nlp.meta["notes"]


def test_a_component_from_another_pipeline_brings_its_source(luke_dir):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", source=import_checkpoint(str(luke_dir), "en"))
    listener = {"@architectures": "spacy-luke.LukeListener.v1"}
    model = {"@architectures": "spacy-luke.SpanScorer.v1", "encoder": listener}
    nlp.add_pipe("luke_ner", config={"model": model})
    nlp.meta["luke"] = {"gone": {"settings": {}}}
    examples = make_examples(nlp)
    with nlp.select_pipes(enable=["luke", "luke_ner"]):
        nlp.get_pipe("luke_ner").initialize(lambda: examples, nlp=nlp)
    assert set(nlp.meta["luke"]) == {"luke", "luke_ner"}
    assert len(nlp.meta["luke"]["luke"]["encoder"]["sha256"]) == 64
    assert nlp.meta["sources"] == [{"name": luke_dir.name}]


@pytest.mark.parametrize("given", [None, [], ["OntoNotes"]])
def test_sources_that_are_there_stay(luke_dir, given):
    nlp = spacy.blank("en")
    nlp.meta["sources"] = given
    nlp.add_pipe(
        "luke",
        config={
            "model": {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(luke_dir)},
        },
    )
    nlp.initialize(lambda: [Example.from_dict(nlp.make_doc("x"), {})])
    assert nlp.meta["sources"] == [*(given or []), {"name": luke_dir.name}]
