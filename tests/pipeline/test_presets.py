"""Presets: settings of published results, written out in the pipeline that they make."""

import json
from typing import Any

import pytest
import spacy
from typer.testing import CliRunner

from spacy_luke.cli import app
from spacy_luke.errors import ConfigError
from spacy_luke.pipeline.presets import PRESETS, preset_settings
from spacy_luke.pipeline.published import import_checkpoint

HEADS = {
    "luke_ner": ("LukeForEntitySpanClassification", ["NIL", "LOC"]),
    "luke_relation": ("LukeForEntityPairClassification", ["no_relation", "born_in"]),
    "luke_entity_typing": ("LukeForEntityClassification", ["person", "place"]),
    "luke_linker": ("LukeForEntityDisambiguation", []),
}


@pytest.fixture(scope="module")
def published(make_checkpoint):
    return {
        factory: make_checkpoint(
            "luke", architecture, **({"id2label": dict(enumerate(labels))} if labels else {})
        )
        for factory, (architecture, labels) in HEADS.items()
    }


def within(small: Any, large: Any) -> bool:
    """Whether all that one says the other says, too."""
    if not isinstance(small, dict):
        return small == large
    return all(key in large and within(value, large[key]) for key, value in small.items())


@pytest.mark.parametrize("name", PRESETS)
def test_all_settings_of_a_preset_stand_in_the_pipeline_it_makes(name, published, tmp_path):
    ((factory, settings),) = PRESETS[name].items()
    import_checkpoint(str(published[factory]), "en", preset=name).to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    assert within(settings, nlp.config["components"][factory])
    assert nlp.get_pipe(factory).answer_labels
    assert name not in (tmp_path / "config.cfg").read_text()


def test_settings_come_before_a_preset_and_do_not_change_it(published):
    settings = {"threshold": 0.25, "model": {"encoder": {"spaces": "words"}}}
    directory = str(published["luke_ner"])
    nlp = import_checkpoint(directory, "en", settings, preset="conll-2003")
    found = nlp.config["components"]["luke_ner"]
    assert (found["threshold"], found["model"]["encoder"]["spaces"]) == (0.25, "words")
    assert found["model"]["layout"] == "context"
    again = preset_settings("conll-2003", "luke_ner")
    assert (again["threshold"], again["model"]["encoder"]["spaces"]) == (0.0, "conll")
    again["model"]["mode"] = "probe"
    assert preset_settings("conll-2003", "luke_ner")["model"]["mode"] == "full"


def test_a_published_class_without_preset_asks_as_published(published):
    configs = {
        factory: import_checkpoint(str(path)).config["components"][factory]["model"]
        for factory, path in published.items()
    }
    assert {config["encoder"]["tokenization"] for config in configs.values()} == {"mentions"}
    assert {config["encoder"]["spaces"] for config in configs.values()} == {None}
    assert configs["luke_ner"]["mode"] == "full"
    for factory in ("luke_relation", "luke_entity_typing"):
        assert configs[factory]["mode"] == "markers"
        assert configs[factory]["max_mention_pieces"] == 30


def test_an_unknown_preset_is_one_error_that_lists_them(published):
    with pytest.raises(
        ConfigError, match="'conll' is not known.*conll-2003, .*open-entity.examples"
    ):
        import_checkpoint(str(published["luke_ner"]), preset="conll")


@pytest.mark.parametrize("factory", ["luke_ner", "luke"])
def test_a_preset_of_another_component_is_refused(factory, published, luke_dir):
    directory = published.get(factory, luke_dir)
    with pytest.raises(ConfigError, match=f"for a checkpoint of luke_relation.*becomes {factory}"):
        import_checkpoint(str(directory), preset="tacred")


def test_the_command_takes_a_preset(published, tmp_path):
    run = CliRunner()
    arguments = ["import", str(published["luke_relation"]), str(tmp_path / "out"), "--preset"]
    done = run.invoke(app, [*arguments, "tacred"])
    assert done.exit_code == 0, done.output
    meta = json.loads((tmp_path / "out" / "meta.json").read_text())
    assert meta["luke"]["luke_relation"]["preset"] == "tacred"
    done = run.invoke(app, ["import", arguments[1], str(tmp_path / "no"), "--preset", "re-tacred"])
    assert done.exit_code == 1 and "choose one of" in done.output
    assert not (tmp_path / "no").exists()
