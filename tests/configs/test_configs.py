"""The configs are complete: they build without data, weights or a network."""

import re
import shlex
import statistics
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import parse_config_overrides
from spacy.schemas import ConfigSchemaInit, ConfigSchemaTraining
from spacy.tokens import Doc, DocBin
from spacy.util import load_config, load_model_from_config, registry, resolve_dot_names
from thinc.api import fix_random_seed

FOLDER = Path(__file__).parents[2] / "configs"
PIPELINES = {
    "ner": ["sentencizer", "luke_ner"],
    "known": ["sentencizer", "known_names", "luke_ner"],
    "relation": ["sentencizer", "luke_relation"],
    "entity_typing": ["sentencizer", "luke_entity_typing"],
    "linker": ["sentencizer", "luke_linker"],
    "qa": ["luke_qa"],
    "cloze": ["luke_cloze"],
    "joint": ["sentencizer", "luke", "luke_ner", "luke_relation", "luke_entity_typing"],
    "all": [
        *("sentencizer", "luke", "luke_ner", "luke_linker"),
        *("luke_relation", "luke_entity_typing", "luke_qa"),
    ],
}
ENCODERS = {
    "ner": "components.luke_ner.model.encoder",
    "known": "components.luke_ner.model.encoder",
    "relation": "components.luke_relation.model.encoder",
    "entity_typing": "components.luke_entity_typing.model.encoder",
    "linker": "components.luke_linker.model.encoder",
    "qa": "components.luke_qa.model.encoder",
    "cloze": "components.luke_cloze.model.encoder",
    "joint": "components.luke.model",
    "all": "components.luke.model",
}


@pytest.fixture(params=list(PIPELINES))
def name(request) -> str:
    return request.param


def config_of(name: str, **overrides):
    return load_config(FOLDER / f"{name}.cfg", overrides=overrides)


@pytest.fixture
def nlp(name):
    return load_model_from_config(config_of(name), auto_fill=False, validate=True)


def test_every_config_tunes_what_it_saves(name):
    assert config_of(name)["training"]["before_to_disk"] == {"@callbacks": "spacy-luke.tune.v1"}


def test_every_config_is_tested():
    assert {path.stem for path in FOLDER.glob("*.cfg")} == set(PIPELINES)


def test_the_pipeline_builds_without_weights(name, nlp):
    assert nlp.pipe_names == PIPELINES[name]


def test_nothing_is_left_to_defaults(name, nlp):
    """What the file says, against what a pipeline made of it knows about itself."""
    assert settings(nlp.config) - settings(config_of(name)) == set()


def settings(config, prefix=""):
    found = set()
    for key, value in config.items():
        name = f"{prefix}{key}"
        found |= settings(value, f"{name}.") if isinstance(value, dict) and value else {name}
    return found


def test_training_resolves_and_is_planned(nlp, tmp_path):
    vocab = spacy.blank("en").vocab
    for part in ("train", "dev"):
        path = tmp_path / f"{part}.spacy"
        DocBin(docs=[Doc(vocab, words=["word"] * 10)] * 50).to_disk(path)
        nlp.config["corpora"][part]["path"] = str(path)
    callbacks = registry.resolve(nlp.config["initialize"], schema=ConfigSchemaInit)
    fix_random_seed(0)
    callbacks["after_init"](nlp)
    config = nlp.config.interpolate()
    settings = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpora = resolve_dot_names(config, [settings["train_corpus"], settings["dev_corpus"]])
    assert all(callable(corpus) for corpus in corpora)
    schedule = config["training"]["optimizer"]["learn_rate"]
    # With 200,000 words there are 400 epochs of 500, and at most 1,000. Batches are drawn.
    epochs = min(1000, nlp.config["initialize"]["after_init"]["words"] / 500)
    examples = list(corpora[0](nlp))
    batches = [len(list(settings["batcher"](examples))) for _ in range(100)]
    assert epochs >= 400 and 1 <= min(batches) <= max(batches) <= 4
    assert settings["max_steps"] == pytest.approx(epochs * statistics.fmean(batches), rel=0.1)
    assert settings["max_steps"] == schedule["total_steps"]
    assert schedule["warmup_steps"] == round(schedule["total_steps"] / 10)
    assert settings["eval_frequency"] == -(-settings["max_steps"] // 8)


def test_nothing_of_the_encyclopedia_is_left_in_a_config(name):
    """project.yml says what is true of it: labels, distances, symmetric relations, paths."""
    text = (FOLDER / f"{name}.cfg").read_text("utf8").split("\n[", 1)[1]
    project = (FOLDER.parent / "project.yml").read_text("utf8")
    (labels,) = set(re.findall(r"label_pairs '(.*?)'", project))
    assert len(re.findall(r"\w+", labels)) > 10
    assert not [label for label in re.findall(r"\w+", labels) if f'"{label}"' in text]
    for block in config_of(name)["components"].values():
        assert block.get("symmetric", []) == [] and not block.get("ancestors")
        candidates = block.get("candidates", {})
        assert candidates.get("label_pairs") is None and candidates.get("max_distance") is None


def test_sentences_are_set_in_training(name):
    """By the data if it has them; scores on development data are those on text."""
    config = config_of(name)
    if name in ("qa", "cloze"):  # questions and queries are about a whole text
        assert "sentencizer" not in config["components"]
        return
    assert "sentencizer" in config["training"]["annotating_components"]
    assert config["components"]["sentencizer"]["overwrite"] is False
    assert config["corpora"]["train"]["sents"] is True
    assert not config["corpora"]["dev"].get("sents")


def test_case_is_varied_if_word_shapes_are_on(name):
    """They are, unless the encoder is frozen."""
    config = config_of(name)
    encoder = reduce(getitem, ENCODERS[name].split("."), config)
    assert encoder["word_shapes"] is (encoder["learn_rate_factor"] > 0) is (name != "linker")
    batcher, found = config["training"]["batcher"], {}
    while "batcher" in batcher:
        found[batcher["@batchers"]] = batcher
        batcher = batcher["batcher"]
    vary = found.get("spacy-luke.vary_case.v1", {"lower": 0, "upper": 0})
    assert (vary["lower"] > 0) is (vary["upper"] > 0) is encoder["word_shapes"]
    assert (encoder["word_shape_dropout"] > 0) is encoder["word_shapes"]


def documented(name: str) -> list[str]:
    """The arguments that a file's head tells to give, one after the other."""
    head = (FOLDER / f"{name}.cfg").read_text("utf8").split("\n[", 1)[0]
    return shlex.split(" ".join(re.findall(r"^#   (--.*)$", head, re.MULTILINE)))


def test_the_overrides_of_the_head_build(name):
    arguments = documented(name)
    at = arguments.index("--gpu-id")  # of the command, not of the config
    overrides = parse_config_overrides(arguments[:at] + arguments[at + 2 :])
    assert f"{ENCODERS[name]}.freeze_word_embeddings" in overrides and len(overrides) > 8
    config = config_of(name)
    for key in overrides:
        *sections, value = key.split(".")
        assert value in reduce(getitem, sections, config), key
    load_model_from_config(config_of(name, **overrides), auto_fill=False, validate=True)


def test_consumers_of_entities_train_on_gold_ones():
    reader = "spacy-luke.PresetEntsCorpus.v1"
    for name in ("relation", "entity_typing", "joint"):
        assert config_of(name)["corpora"]["train"]["@readers"] == reader
        assert config_of(name)["corpora"]["train"]["ents"] is True
    assert config_of("ner")["corpora"]["train"]["ents"] is False
    # End to end: luke_ner's own entities reach the others.
    assert config_of("joint")["corpora"]["dev"]["@readers"] == "spacy.Corpus.v1"
