"""An encoder beside its component: files that are read as they are needed, and stored tables."""

import copy
import pickle

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.errors import CheckpointError, ConfigError, VocabError
from spacy_luke.layers.architectures import LukeEncoder_v1
from spacy_luke.layers.encoder import to_checkpoint
from spacy_luke.layers.encoder_files import apart

FORMS = ["trained", "stored", "half"]
WORDS = ["Tokyo", "is", "in", "Japan", "."]


def pipeline(directory, **encoder):
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(directory), **encoder}
    nlp.add_pipe("luke", config={"model": model})
    nlp.initialize()
    return nlp


def module(nlp):
    return nlp.get_pipe("luke").model.shims[0].module


def vectors(nlp) -> np.ndarray:
    doc = Doc(nlp.vocab, words=WORDS)
    doc.ents = [Span(doc, i, i + 1, "LOC", kb_id=WORDS[i]) for i in (0, 3)]
    found = nlp.get_pipe("luke")(doc)._.luke
    return np.concatenate([found.token_vectors, found.entity_vectors])


@pytest.fixture
def saved(luke_dir, tmp_path):
    def make(**encoder):
        nlp = pipeline(luke_dir, **encoder)
        nlp.to_disk(tmp_path / "saved")
        return nlp, tmp_path / "saved"

    return make


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", ["disk", "bytes", "pickle", "copy", "twice"])
def test_a_pipeline_comes_back_with_the_same_vectors(saved, form, way, tmp_path):
    nlp, path = saved(entity_table=form)
    if way == "disk":
        other = spacy.load(path)
    elif way == "twice":  # over the files it reads from
        other = spacy.load(path)
        other.to_disk(path)
        assert np.array_equal(vectors(other), vectors(nlp))
        other = spacy.load(path)
    elif way == "bytes":
        other = spacy.blank("en")
        other.add_pipe("luke", config={"model": nlp.config["components"]["luke"]["model"]})
        other.from_bytes(nlp.to_bytes())
    else:
        other = pickle.loads(pickle.dumps(nlp)) if way == "pickle" else copy.deepcopy(nlp)
    assert np.array_equal(vectors(other), vectors(nlp))
    files = {x.name for x in (path / "luke" / "encoder").iterdir()}
    assert ("entity_rows.npy" in files) == (form != "trained")
    assert (path / "luke" / "model").stat().st_size < 2000


def test_a_stored_table_is_that_of_the_checkpoint_and_half_is_nearly(luke_dir):
    found = {form: vectors(pipeline(luke_dir, entity_table=form)) for form in FORMS}
    assert np.array_equal(found["trained"], found["stored"])
    assert 0 < np.abs(found["trained"] - found["half"]).max() < 1e-2


@pytest.mark.parametrize("before", FORMS)
@pytest.mark.parametrize("after", FORMS)
def test_the_form_may_be_changed_when_a_pipeline_is_loaded(saved, before, after):
    nlp, path = saved(entity_table=before)
    other = spacy.load(path, config={"components.luke.model.entity_table": after})
    close = np.abs(vectors(other) - vectors(nlp)).max()
    assert close < 1e-2 and (close == 0 or after == "half")
    names = {name for name, _ in module(other).network.named_parameters()}
    assert ("entity_embeddings.entities.weight" in names) == (after == "trained")


@pytest.mark.parametrize("form", ["stored", "half"])
def test_stored_rows_are_not_trained_and_everything_else_is(luke_dir, form):
    nlp = pipeline(luke_dir, entity_table=form)
    before = np.array(module(nlp).network.entity_embeddings.table)
    listener = {"@architectures": "spacy-luke.LukeListener.v1"}
    model = {"@architectures": "spacy-luke.EntityScorer.v1", "encoder": listener}
    nlp.add_pipe("luke_entity_typing", config={"model": model}).add_label("A")
    doc = Doc(nlp.vocab, words=WORDS)
    doc.ents = [Span(doc, 0, 1, "LOC")]
    example = Example(doc, doc.copy())
    example.reference.ents[0]._.types = {"A": 1.0}
    optimizer = nlp.initialize(lambda: [example])
    dense = module(nlp).network.entity_embeddings.dense.weight.detach().clone()
    nlp.update([example], sgd=optimizer)
    assert not torch.equal(dense, module(nlp).network.entity_embeddings.dense.weight)
    assert np.array_equal(before, module(nlp).network.entity_embeddings.table)


@pytest.mark.parametrize("form", FORMS)
def test_an_encoder_gives_its_checkpoint_back(luke_dir, form):
    one, other = (
        to_checkpoint(module(pipeline(luke_dir, entity_table=x))) for x in ("trained", form)
    )
    assert one.weights.keys() == other.weights.keys()
    for name, tensor in one.weights.items():
        near = 1e-2 if form == "half" else 0.0
        assert (tensor - other.weights[name]).abs().max() <= near


def test_an_encoder_that_is_read_holds_nothing_it_does_not_use(make_checkpoint, tmp_path):
    """The rows are mapped from their file."""
    pipeline(make_checkpoint("luke"), entity_table="stored").to_disk(tmp_path)
    rows = spacy.load(tmp_path).get_pipe("luke").model.shims[0].module.network
    table = rows.entity_embeddings.table
    assert isinstance(table.base, np.memmap) or isinstance(table.base.base, np.memmap)


def test_a_model_saved_apart_is_not_read_alone(saved):
    _, path = saved()
    other = pipeline_without_weights()
    with pytest.raises(CheckpointError, match="load it with the pipeline"):
        other.model.from_disk(path / "luke" / "model")
    with apart(path / "luke" / "encoder"):
        other.model.from_disk(path / "luke" / "model")


def pipeline_without_weights():
    model = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": "nowhere"}
    return spacy.blank("en").add_pipe("luke", config={"model": model})


@pytest.mark.parametrize(
    "name,error",
    [
        ("encoder.safetensors", CheckpointError),
        ("entity_rows.npy", CheckpointError),
        ("entities/text.npy", VocabError),
    ],
)
@pytest.mark.parametrize("damage", ["truncated", "other"])
def test_damaged_files_are_named(saved, name, error, damage):
    _, path = saved(entity_table="half")
    file = path / "luke" / "encoder" / name
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2] if damage == "truncated" else b"nothing of the kind")
    with pytest.raises(error, match=file.name.split(".")[0]):
        spacy.load(path)


def test_a_missing_encoder_is_named(saved):
    _, path = saved()
    (path / "luke" / "encoder" / "encoder.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"encoder\.safetensors"):
        spacy.load(path)


def test_a_table_of_another_size_is_refused(saved):
    _, path = saved(entity_table="stored")
    np.save(path / "luke" / "encoder" / "entity_rows.npy", np.zeros((3, 16), dtype=np.float32))
    with pytest.raises(CheckpointError, match=r"\[3, 16\]"):
        spacy.load(path)


def test_an_unknown_form_is_named(luke_dir):
    with pytest.raises(ConfigError, match="entity_table"):
        LukeEncoder_v1(str(luke_dir), entity_table="disk")  # type: ignore[arg-type]
