"""The names and the order of a published classifier's classes, there and back."""

import json
import shutil

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc

from spacy_luke.errors import CheckpointError, ConfigError
from spacy_luke.layers.task_layer import head_of
from spacy_luke.pipeline.published import export_component, import_checkpoint
from tests.pipeline.published_data import DOC, LABELS, NER, PAIRS, TYPES, same, tensors

pytest.importorskip("transformers")


def test_a_negative_class_of_another_name_is_known_by_its_place(published, tmp_path):
    labels = ["O", "LOC", "PER", "ORG", "MISC"]
    names = {"id2label": dict(enumerate(labels)), "label2id": {x: i for i, x in enumerate(labels)}}
    directory = tmp_path / "other"
    shutil.copytree(published(NER), directory)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, **names}))
    nlp = import_checkpoint(str(directory), "en")
    component = nlp.get_pipe("luke_ner")
    assert component.labels == ("LOC", "MISC", "ORG", "PER")
    # As with the name that most have, of which the first test is.
    usual = import_checkpoint(str(published(NER)), "en").get_pipe("luke_ner")
    doc = Doc(nlp.vocab, words=DOC[NER][0].split(" "))
    ours, theirs = (x.predict([doc])[1].logits for x in (component, usual))
    assert np.array_equal(ours[:, -1], theirs[:, -1])
    export_component(nlp, tmp_path / "out")
    same(tensors(directory), tensors(tmp_path / "out"))
    after = json.loads((tmp_path / "out" / "config.json").read_text())
    assert list(after["id2label"].values()) == labels
    assert after["label2id"] == names["label2id"]
    component.add_label("DATE")
    export_component(nlp, tmp_path / "more")
    after = json.loads((tmp_path / "more" / "config.json").read_text())
    assert list(after["id2label"].values()) == [*labels, "DATE"]
    component.add_label(
        "O"
    )  # a label like any other, so that the negative class needs its own name
    export_component(nlp, tmp_path / "clash")
    after = json.loads((tmp_path / "clash" / "config.json").read_text())
    assert list(after["id2label"].values()) == ["NIL", *labels[1:], "DATE", "O"]


@pytest.mark.parametrize(
    "labels,says",
    [
        (["LOC", "PER", "ORG", "MISC", "O"], "'O' after 'LOC'"),
        (["NIL", "PER", "ORG", "PER", "MISC"], "names a class twice"),
    ],
)
def test_classes_that_cannot_be_told_apart_are_refused(published, tmp_path, labels, says):
    directory = tmp_path / "other"
    shutil.copytree(published(NER), directory)
    config = json.loads((directory / "config.json").read_text())
    config |= {"id2label": dict(enumerate(labels)), "label2id": {}}
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=says):
        import_checkpoint(str(directory), "en")


def test_a_pair_classifier_must_say_which_class_is_none(make_checkpoint):
    labels = {"id2label": {0: "Other", 1: "a"}, "label2id": {"Other": 0, "a": 1}, "num_labels": 2}
    path = make_checkpoint("luke", PAIRS, **labels)
    with pytest.raises(ConfigError, match=r"no class 'no_relation'.*id2label"):
        import_checkpoint(str(path))


def test_two_classes_without_names_have_those_of_transformers(make_checkpoint):
    nlp = import_checkpoint(str(make_checkpoint("luke", TYPES)))
    assert nlp.get_pipe("luke_entity_typing").labels == ("LABEL_0", "LABEL_1")


def test_a_new_classifier_has_no_entity_first(luke_dir, tmp_path):
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(luke_dir)}
    model = {"@architectures": "spacy-luke.SpanScorer.v1", "mode": "full", "encoder": encoder}
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_ner", config={"model": {**model, "label_weight": None}}).add_label("PER")
    nlp.initialize()
    export_component(nlp, tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["id2label"] == {"0": "NIL", "1": "PER"}


def test_two_components_may_take_the_same_published_classifier(published):
    nlp = import_checkpoint(str(published(NER)), "en")
    luke = spacy.blank("en")
    model = nlp.get_pipe_config("luke_ner")["model"]
    luke.add_pipe("luke", config={"model": model["encoder"]})
    listener = {"@architectures": "spacy-luke.LukeListener.v1"}
    for name in ("one", "two"):
        scorer = {"@architectures": "spacy-luke.SpanScorer.v1", "encoder": listener}
        own = {**scorer, "mode": "full", "label_weight": None}
        luke.add_pipe("luke_ner", name=name, config={"model": own})
    luke.initialize()
    weights = [head_of(luke.get_pipe(x).model).classifier.weight for x in ("one", "two")]
    assert torch.equal(*weights) and luke.get_pipe("two").labels == luke.get_pipe("one").labels


def test_a_trained_component_is_exported_with_its_new_labels(published, tmp_path):
    nlp = import_checkpoint(str(published(TYPES)))
    nlp.get_pipe("luke_entity_typing").add_label("artefact")
    assert export_component(nlp, tmp_path / "out") == TYPES
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert list(config["id2label"].values()) == [*LABELS[TYPES], "artefact"]
    assert len(tensors(tmp_path / "out")["classifier.weight"]) == 4
    again = import_checkpoint(str(tmp_path / "out"))
    assert set(again.get_pipe("luke_entity_typing").labels) == {*LABELS[TYPES], "artefact"}
