"""What all components with a classifier share: their classes are those that their model learned."""

import json

import pytest
import spacy

from spacy_luke.errors import ConfigError
from spacy_luke.layers.task_layer import head_of
from tests.saved.make import WITHOUT, documents, load
from tests.saved.test_saved import FOLDER

SAVED = {
    "luke_ner": "ner_two_stage",
    "luke_relation": "relation_probe",
    "luke_entity_typing": "typing_markers",
}


def change(path, name, **settings):
    """Write other settings into the files of a saved component."""
    file = path / name / "cfg"
    cfg = {**json.loads(file.read_text("utf8")), **settings}
    file.write_text(json.dumps(cfg), encoding="utf8")


@pytest.fixture(params=SAVED)
def saved(request, tmp_path):
    """The name of a component and where it was saved by this revision."""
    load(FOLDER / SAVED[request.param]).to_disk(tmp_path, exclude=WITHOUT)
    return request.param, tmp_path


def test_a_pipeline_whose_settings_and_model_disagree_is_refused_when_it_is_loaded(saved):
    name, path = saved
    labels = json.loads((path / name / "cfg").read_text("utf8"))["labels"]
    for others in (labels[:-1], [*labels, "OTHER"], [*labels[1:], labels[0]], ["OTHER"] * 2):
        change(path, name, labels=others)
        with pytest.raises(ConfigError, match=f"{name} has learned other classes"):
            load(path)
    change(path, name, labels=labels)
    load(path)


def test_a_pipeline_without_names_of_classes_is_refused_if_their_number_differs(tmp_path):
    for name, folder in SAVED.items():
        nlp = load(FOLDER / folder)
        assert head_of(nlp.get_pipe(name).model).classes is not None  # adopted
        head_of(nlp.get_pipe(name).model).classes = None
        nlp.to_disk(tmp_path / name, exclude=WITHOUT)
        change(tmp_path / name, name, labels=["OTHER"])
        with pytest.raises(ConfigError, match="other classes"):
            load(tmp_path / name)


def test_bytes_are_checked_too(saved):
    name, path = saved
    nlp = load(path)
    pipe = nlp.get_pipe(name)
    data = pipe.to_bytes()
    pipe.from_bytes(data)
    pipe.cfg["labels"].append("OTHER")
    with pytest.raises(ConfigError, match="other classes"):
        pipe.from_bytes(pipe.to_bytes())
    pipe.from_bytes(pipe.to_bytes(), exclude=["cfg"])
    with pytest.raises(ConfigError, match="other classes"):
        pipe.predict(documents(nlp, gold=False))


def test_labels_that_are_added_are_saved_with_their_names(saved, tmp_path):
    name, path = saved
    nlp = load(path)
    pipe = nlp.get_pipe(name)
    pipe.add_label("NEW")
    nlp.to_disk(tmp_path / "grown", exclude=WITHOUT)
    loaded = spacy.load(tmp_path / "grown", exclude=WITHOUT).get_pipe(name)
    assert loaded.labels == pipe.labels
    assert head_of(loaded.model).classes == pipe._classes()
