"""spaCy's own tools of inspection take our configs: ``spacy debug model``, ``data``, ``config``."""

import copy
import pickle

import numpy as np
import pytest
import spacy
from spacy.cli import app
from typer.testing import CliRunner

from spacy_luke.layers.task_layer import task_node
from tests.configs.corpus import write_corpus
from tests.configs.test_configs import FOLDER, PIPELINES
from tests.saved.make import documents, examples

SHOW = ["-P0", "-P1", "-P2", "-P3", "-DIM", "-PAR", "-GRAD", "-ATTR"]


@pytest.fixture(scope="module")
def overrides(bert_dir, tmp_path_factory):
    def make(name: str) -> dict[str, str]:
        return write_corpus(name, str(bert_dir), tmp_path_factory.mktemp(name))

    return make


def debug(command, name, values, *arguments) -> str:
    given = [part for key, value in values.items() for part in (f"--{key}", value)]
    path = str(FOLDER / f"{name}.cfg")
    result = CliRunner().invoke(app, ["debug", command, path, *arguments, *given])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return " ".join(result.output.split())


@pytest.mark.parametrize("name", PIPELINES)
def test_every_model_is_shown_and_predicts(name, overrides):
    values = overrides(name)
    components = [x for x in PIPELINES[name] if x not in ("sentencizer", "known_names")]
    for component in components:
        output = debug("model", name, values, component, *SHOW)
        assert "model looks good" in output
        for step in range(4):
            assert f"STEP {step} - " in output
        assert "Initialized the model with the training corpus" in output, component


@pytest.mark.parametrize("name", ["ner", "joint", "qa"])
def test_data_and_config_are_checked(name, overrides):
    values = overrides(name)
    assert "Config validation" in debug("config", name, values)
    output = debug("data", name, values)
    assert "Pipeline can be initialized with data" in output and "Corpus is loadable" in output
    assert "Low number of examples" in output and "1 error" in output


def test_a_query_is_made_by_the_component_that_has_the_model(bert_dir):
    nlp = spacy.blank("xx")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    pipe = nlp.add_pipe("luke_relation", config={"model": {"encoder": encoder}})
    nlp.initialize(lambda: examples(nlp))
    docs = documents(nlp, gold=False)
    query, scores = pipe.predict(docs)
    assert len(query.pairs) and len(scores.rows)
    assert np.array_equal(pipe.model.predict(docs).logits, scores.logits)


def test_what_makes_queries_is_neither_saved_nor_copied(bert_dir):
    nlp = spacy.blank("xx")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    pipe = nlp.add_pipe("luke_relation", config={"model": {"encoder": encoder}})
    maker = task_node(pipe.model).attrs["make_query"]
    assert not maker([]).docs
    for copied in (copy.deepcopy(maker), pickle.loads(pickle.dumps(maker))):
        with pytest.raises(TypeError, match="only a component makes it"):
            copied([])
    assert b"make_query" not in pipe.model.to_bytes()
