"""Type biases: learned from gold links, or given."""

import logging

import numpy as np
import pytest
import spacy

from spacy_luke.errors import ConfigError
from spacy_luke.pipeline.type_bias import TypeChoices
from tests.pipeline.linker_data import TEXTS, make_docs, make_examples, make_linker


def choices(rows):
    """rows: types of candidates, their logits, the number of the right one."""
    found = TypeChoices()
    for types, logits, right in rows:
        found.add(types, np.asarray(logits), np.arange(len(types)) == right)
    return found


def test_biases_make_the_right_candidates_most_probable():
    rows = [(["town", "land"], [1.0, 0.0], 1)] * 20 + [(["town", "river"], [0.0, 0.0], 0)] * 20
    biases = choices(rows).biases()
    assert biases["land"] - biases["town"] > 2 and biases["town"] - biases["river"] > 2


def test_biases_are_where_the_gradient_of_the_likelihood_vanishes():
    rng = np.random.default_rng(0)
    names = np.asarray(["a", "b", "c"])
    rows = []
    for _ in range(200):
        kinds = rng.choice(3, size=4)
        if len(set(kinds)) > 1:
            logits = rng.normal(size=4)
            total = logits + np.asarray([1.5, 0.0, -1.0])[kinds] + rng.gumbel(size=4)
            rows.append((names[kinds].tolist(), logits, int(np.argmax(total))))
    biases = choices(rows).biases()
    gradient = {name: -bias for name, bias in biases.items()}
    for types, logits, right in rows:
        total = logits + [biases[x] for x in types]
        p = np.exp(total - total.max())
        p /= p.sum()
        for i, name in enumerate(types):
            gradient[name] += (i == right) - p[i]
    assert np.abs(list(gradient.values())).max() < 0.5  # values are rounded to 0.01
    assert biases["a"] - biases["b"] == pytest.approx(1.5, abs=0.5)
    assert biases["b"] - biases["c"] == pytest.approx(1.0, abs=0.5)


def test_nothing_is_learned_where_no_types_can_be_told_apart():
    assert choices([]).biases() == {}
    assert choices([(["a", "a"], [0.0, 1.0], 0), (["b"], [0.0], 0)]).biases() == {}
    unknown = TypeChoices()
    unknown.add(["a", "b"], np.zeros(2), np.zeros(2, dtype=bool))  # the right one is none of them
    assert unknown.biases() == {}


def test_types_that_differ_only_in_case_are_one():
    rows = [(["town", "land"], [0.0, 0.0], 0)] * 9 + [(["Land", "town"], [0.0, 0.0], 1)]
    same = [(["town", "Land"], [0.0, 0.0], 0)] * 10
    assert choices(rows).biases() == choices(same).biases()
    assert choices([(["town", "Town"], [0.0, 0.0], 0)]).biases() == {}


def test_the_first_mentions_are_enough(monkeypatch):
    rows = [(["town", "land"], [0.0, 0.0], 1)] * 5
    first = choices(rows).biases()
    monkeypatch.setattr("spacy_luke.pipeline.type_bias._ENOUGH", 5)
    assert choices([*rows, (["town", "land"], [0.0, 0.0], 0)]).biases() == first


def test_initialize_learns_them_and_says_so(bert_dir, tmp_path, caplog):
    spacy.util.logger.propagate = True
    caplog.set_level(logging.INFO, spacy.util.logger.name)
    texts = [x for x in TEXTS if x[1][0][2] == "band"] * 5
    nlp = make_linker(bert_dir, tmp_path / "kb", texts=texts, type_bias=None)
    biases = nlp.get_pipe("luke_linker").type_bias
    assert biases["ORG"] > 0.5 and biases["LOC"] < -0.5
    assert "type biases learned from the data" in caplog.text and "ORG +" in caplog.text
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp").get_pipe("luke_linker")
    assert loaded.type_bias == pytest.approx(biases)  # JSON may change the last bit


def test_what_the_user_gives_is_kept(bert_dir, tmp_path):
    for given in ({}, {"loc": 1.0}):
        nlp = make_linker(bert_dir, tmp_path / f"kb{len(given)}", type_bias=given)
        assert nlp.get_pipe("luke_linker").type_bias == given


def test_a_bias_decides_between_types_and_not_about_nil(bert_dir, tmp_path):
    nlp = make_linker(bert_dir, tmp_path / "kb", type_bias={})
    pipe = nlp.get_pipe("luke_linker")
    before = pipe.predict(make_docs(nlp, TEXTS))[1].logits
    pipe.type_bias = {"loc": -3.0}  # types are compared without case
    after = pipe.predict(make_docs(nlp, TEXTS))[1].logits
    exists = np.isfinite(before)
    change = np.where(exists, after, 0.0) - np.where(exists, before, 0.0)
    assert change[0][:3] == pytest.approx([0.0, -3.0, 0.0], abs=1e-4)  # Tokyo: NIL, city, band
    others = [i for i, (_, mentions) in enumerate(TEXTS) for _ in mentions]
    ada = others.index(2)
    assert change[ada] == pytest.approx(0.0, abs=1e-4)
    with pytest.raises(ConfigError, match="type_bias"):
        pipe.type_bias = {"loc": "high"}
    with pytest.raises(ConfigError, match="'LOC' and 'loc' are the same type"):
        pipe.type_bias = {"loc": 1.0, "ORG": 1.0, "LOC": 2.0}


def test_another_initialisation_learns_from_its_own_data(bert_dir, tmp_path):
    bands, cities = ([x for x in TEXTS if x[1][0][2] == name] * 5 for name in ("band", "city"))
    nlp = make_linker(bert_dir, tmp_path / "kb", texts=bands, type_bias=None)
    pipe = nlp.get_pipe("luke_linker")
    assert pipe.type_bias["ORG"] > 0
    nlp.initialize(lambda: make_examples(nlp, cities))
    assert pipe.type_bias["ORG"] < 0
    pipe.type_bias = {"ORG": 1.0}
    nlp.initialize(lambda: make_examples(nlp, cities))
    assert pipe.type_bias == {"ORG": 1.0}


def test_it_survives_bytes_and_another_pipeline(bert_dir, tmp_path):
    nlp = make_linker(bert_dir, tmp_path / "kb", type_bias=None)
    learned = nlp.get_pipe("luke_linker").type_bias
    other = spacy.blank("en")
    other.add_pipe("luke_linker", source=nlp)
    loaded = nlp.from_config(nlp.config).from_bytes(nlp.to_bytes())
    texts = make_docs(nlp, TEXTS)
    expected = [doc.ents[0]._.candidates for doc in nlp.pipe(texts)]
    for pipeline in (other, loaded):
        assert learned and pipeline.get_pipe("luke_linker").type_bias == learned
        docs = pipeline.pipe(make_docs(pipeline, TEXTS))
        for doc, candidates in zip(docs, expected, strict=True):
            found = doc.ents[0]._.candidates
            assert [x.id for x in found] == [x.id for x in candidates]
            assert [x.score for x in found] == pytest.approx([x.score for x in candidates])


@pytest.mark.parametrize(
    "name", ["", "per:title", "a = b", "https://x.org/y#1", "[x]", "#c", " x "]
)
def test_any_name_of_a_type_is_saved(bert_dir, tmp_path, name):
    """Also those that cannot be keys of a config."""
    nlp = make_linker(bert_dir, tmp_path / "kb")
    nlp.get_pipe("luke_linker").type_bias = {name: 1.5}
    for _ in range(2):
        nlp.to_disk(tmp_path / "nlp")
        nlp = spacy.load(tmp_path / "nlp")
        assert nlp.get_pipe("luke_linker").type_bias == {name: 1.5}
    given = {"components": {"luke_linker": {"type_bias": {"town": 2.0}}}}
    nlp = spacy.load(tmp_path / "nlp", config=given)
    assert nlp.get_pipe("luke_linker").type_bias == {"town": 2.0}
