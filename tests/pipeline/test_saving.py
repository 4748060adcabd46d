"""What is saved is the same every time, and holds nothing of an earlier save."""

import hashlib
import os
import subprocess
import sys

import pytest
import spacy

from spacy_luke.errors import CheckpointError, ConfigError
from tests.pipeline.conftest import LISTENER
from tests.pipeline.relation_data import make_examples

PROGRAM = """
import hashlib, sys, spacy
nlp = spacy.load(sys.argv[1])
print([hashlib.sha256(pipe.to_bytes()).hexdigest() for _, pipe in nlp.pipeline])
nlp.to_disk(sys.argv[2])
"""
HEADS = ("luke_ner", "luke_relation", "luke_entity_typing")


@pytest.fixture(scope="module")
def nlp(luke_dir):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(luke_dir)}})
    for name in HEADS:
        nlp.add_pipe(name, config={"model": {"encoder": LISTENER}})
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def test_bytes_are_the_same_every_time(nlp):
    once = nlp.to_bytes()
    assert all(nlp.to_bytes() == once for _ in range(5))


def test_two_processes_save_the_same_bytes_and_files(nlp, tmp_path):
    nlp.to_disk(tmp_path / "given")
    said = []
    for seed in ("1", "2"):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "given"), str(tmp_path / seed)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        said.append(done.stdout)
    assert said[0] == said[1]
    assert hashes(tmp_path / "1") == hashes(tmp_path / "2") == hashes(tmp_path / "given")


def hashes(folder):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(x.relative_to(folder)): hashlib.sha256(x.read_bytes()).digest() for x in files}


def test_a_folder_without_the_learned_settings_is_not_whole(nlp, tmp_path):
    """It would be loaded with what a new component has: other answers, in silence."""
    nlp.to_disk(tmp_path)
    (tmp_path / "luke_ner" / "cfg").unlink()
    with pytest.raises(ConfigError, match="luke_ner/cfg is missing"):
        spacy.load(tmp_path)
    (tmp_path / "luke_ner" / "cfg").write_text("{}")
    with pytest.raises(ConfigError, match="luke_ner/cfg is empty"):
        spacy.load(tmp_path)
    (tmp_path / "luke_ner" / "cfg").write_text("[]")
    with pytest.raises(CheckpointError, match="luke_ner/cfg holds a list, not an object"):
        spacy.load(tmp_path)
    assert "luke" in spacy.load(tmp_path, exclude=["luke_ner"]).pipe_names


@pytest.mark.parametrize("name", HEADS)
def test_thresholds_of_other_labels_are_not_saved(nlp, tmp_path, name):
    """The pipeline could be loaded, and its first prediction would be an error."""
    pipe = nlp.get_pipe(name)
    pipe.thresholds = {"NOPE": 0.9}
    try:
        with pytest.raises(ConfigError, match=rf"{name}.thresholds names \['NOPE'\]"):
            nlp.to_disk(tmp_path)
    finally:
        pipe.thresholds = {}


@pytest.mark.parametrize("component", ["luke", "luke_ner"])
@pytest.mark.parametrize("file", ["cfg", "model"])
def test_a_file_cut_in_half_is_an_error_that_names_its_folder(nlp, tmp_path, component, file):
    nlp.to_disk(tmp_path)
    path = tmp_path / component / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CheckpointError, match=f"/{component}(/cfg)? cannot be read"):
        spacy.load(tmp_path)
    path.unlink()
    with pytest.raises((CheckpointError, ConfigError), match=f"{component}/{file}"):
        spacy.load(tmp_path)


@pytest.mark.parametrize(
    "name, saved, given",
    [("luke_ner", "two-stage", "probe"), ("luke_relation", "probe", "markers")],
)
def test_a_pipeline_cannot_be_loaded_in_another_mode(nlp, tmp_path, name, saved, given):
    nlp.to_disk(tmp_path)
    with pytest.raises(ConfigError, match=f"{name}.model.mode is '{given}', .* with '{saved}'"):
        spacy.load(tmp_path, config={f"components.{name}.model.mode": given})


def test_the_encoder_of_an_earlier_save_is_removed(bert_dir, tmp_path):
    own, shared = spacy.blank("en"), spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    own.add_pipe("luke_relation", config={"model": {"encoder": encoder}})
    shared.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    shared.add_pipe("luke_relation", config={"model": {"encoder": LISTENER}})
    for nlp in (own, shared):
        nlp.initialize(lambda nlp=nlp: make_examples(nlp))
        nlp.to_disk(tmp_path)
        assert (tmp_path / "luke_relation" / "encoder").exists() == (nlp is own)
    assert (tmp_path / "luke" / "encoder").is_dir()
    loaded = spacy.load(tmp_path)
    assert loaded.to_bytes() == shared.to_bytes()
    own.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    loaded.get_pipe("luke_relation").to_disk(tmp_path / "luke_relation", exclude=["model"])
    assert (tmp_path / "luke_relation" / "encoder").is_dir()
