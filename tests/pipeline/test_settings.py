"""Settings of components: attributes, validated wherever they are set from, and saved once."""

import copy
import json

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_luke.errors import ConfigError
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune
from tests.pipeline.conftest import ANNOTATED, LISTENER, entities, make_examples, make_ner, trained

# component -> a setting, another value of it, and a value that it cannot have.
SETTINGS = {
    "luke": ("unknown_entity", "[UNK]", "[PAD]"),
    "luke_ner": ("threshold", 0.3, 7),
    "luke_relation": ("symmetric", ["knows"], ["knows", 3]),
    "luke_entity_typing": ("threshold", 0.25, -1.0),
    "luke_linker": ("nil_bias", -2.5, "much"),
    "luke_qa": ("top_k", 4, 0),
    "luke_cloze": ("threshold", 0.7, float("nan")),
    "known_names": ("match", "exact", "fuzzy"),
}


@pytest.fixture(params=SETTINGS)
def untrained(request):
    """A blank pipeline with a component, its name, and its row above."""
    nlp = spacy.blank("xx")
    nlp.add_pipe(request.param)
    return nlp, request.param, SETTINGS[request.param]


def test_a_setting_is_an_attribute(untrained):
    nlp, name, (key, value, _) = untrained
    pipe = nlp.get_pipe(name)
    assert getattr(pipe, key) == nlp.config["components"][name][key] != value
    setattr(pipe, key, value)
    assert getattr(pipe, key) == pipe.cfg[key] == value
    assert key in dir(pipe)


def test_a_value_that_a_setting_cannot_have_is_an_error_that_names_it(untrained):
    nlp, name, (key, value, wrong) = untrained
    pipe = nlp.get_pipe(name)
    setattr(pipe, key, value)
    for change in (
        lambda: setattr(pipe, key, wrong),
        lambda: pipe.cfg.update({key: wrong}),
        lambda: setattr(pipe, "cfg", {**pipe.cfg, key: wrong}),
    ):
        with pytest.raises(ConfigError, match=rf"{name}\.{key} is "):
            change()
    assert getattr(pipe, key) == value
    with pytest.raises(ValueError, match=key):
        spacy.blank("xx").add_pipe(name, config={key: wrong})


def test_a_misspelt_setting_is_an_error(untrained):
    nlp, name, (key, value, _) = untrained
    pipe, misspelt = nlp.get_pipe(name), key[:-1]
    for change in (
        lambda: setattr(pipe, misspelt, value),
        lambda: pipe.cfg.update({misspelt: value}),
        lambda: pipe.cfg.__setitem__(misspelt, value),
    ):
        with pytest.raises(ConfigError, match=f"{name} has no setting '{misspelt}'; .*{key}"):
            change()
    assert not hasattr(pipe, misspelt) and misspelt not in pipe.cfg
    with pytest.raises(ValueError, match=misspelt):
        spacy.blank("xx").add_pipe(name, config={misspelt: value})


def test_errors_name_the_component_as_this_pipeline_does(untrained):
    nlp, name, (key, _, wrong) = untrained
    pipe = nlp.get_pipe(name)
    spacy.blank("xx").add_pipe(name, name="other", source=nlp)
    with pytest.raises(ConfigError, match=f"other.{key} is "):
        setattr(pipe, key, wrong)


def test_copies_have_settings_of_their_own(untrained):
    nlp, name, (key, value, wrong) = untrained
    before = getattr(nlp.get_pipe(name), key)
    copied = copy.deepcopy(nlp.get_pipe(name))
    setattr(copied, key, value)
    assert getattr(copied, key) == value and getattr(nlp.get_pipe(name), key) == before
    with pytest.raises(ConfigError):
        setattr(copied, key, wrong)


def test_lists_and_dictionaries_cannot_be_changed_where_they_are_not_validated():
    pipe = spacy.blank("xx").add_pipe("luke_relation")
    for change in (
        lambda: pipe.thresholds.update(knows=7),
        lambda: pipe.thresholds.__setitem__("knows", 7),
        lambda: pipe.thresholds.setdefault("knows", 7),
        lambda: pipe.symmetric.append(3),
        lambda: pipe.cfg["symmetric"].extend([3]),
    ):
        with pytest.raises(ConfigError, match="cannot be changed in place"):
            change()
    with pytest.raises(ConfigError, match="cannot be changed in place"):
        pipe.thresholds |= {"knows": 7}
    with pytest.raises(ConfigError, match="cannot be changed in place"):
        pipe.symmetric += ["knows"]
    assert pipe.thresholds == {} and pipe.symmetric == []
    pipe.thresholds = {**pipe.thresholds, "knows": 0.5}
    pipe.symmetric = [*pipe.symmetric, "knows"]
    assert pipe.thresholds == {"knows": 0.5} and pipe.symmetric == ["knows"]


@pytest.fixture(scope="module")
def model(bert_dir, tmp_path_factory):
    """A directory with a trained ``luke_ner``, and one with its gold documents."""
    path = tmp_path_factory.mktemp("settings")
    nlp = make_ner(bert_dir)
    examples = trained(nlp)
    nlp.to_disk(path / "model")
    DocBin(docs=[eg.reference for eg in examples] * 12).to_disk(path / "dev.spacy")
    return path


def saved_settings(path, name="luke_ner"):
    """What is in ``config.cfg``, and what is in the component's own file."""
    config = spacy.util.load_config(path / "config.cfg")["components"][name]
    return config, json.loads((path / name / "cfg").read_text("utf8"))


def found(nlp):
    return [entities(nlp(Doc(nlp.vocab, words=text.split(" ")))) for text, _ in ANNOTATED]


GOLD = [spans for _, spans in ANNOTATED]
NOTHING = [[] for _ in ANNOTATED]


def test_a_setting_changed_by_code_works_at_once_and_is_saved_once(model, tmp_path):
    nlp = spacy.load(model / "model")
    pipe = nlp.get_pipe("luke_ner")
    assert found(nlp) == GOLD
    pipe.threshold = 1.0
    assert found(nlp) == NOTHING
    pipe.threshold, pipe.nil_bias = 0.3, 0.5
    nlp.to_disk(tmp_path)
    config, own = saved_settings(tmp_path)
    assert config["threshold"] == pytest.approx(0.3) and config["nil_bias"] == 0.5
    assert own.keys() == {"labels", "thresholds", "calibration"}
    loaded = spacy.load(tmp_path).get_pipe("luke_ner")
    assert loaded.cfg == {**pipe.cfg, "threshold": pytest.approx(0.3)}


@pytest.mark.parametrize(
    "override",
    [
        {"components": {"luke_ner": {"threshold": 1.0}}},
        {"components.luke_ner.threshold": 1.0},
    ],
)
def test_an_override_at_loading_counts_more_than_what_was_saved(model, tmp_path, override):
    nlp = spacy.load(model / "model")
    nlp.get_pipe("luke_ner").threshold = 0.2
    nlp.to_disk(tmp_path / "model")
    nlp = spacy.load(tmp_path / "model", config=override)
    assert nlp.get_pipe("luke_ner").threshold == 1.0 and found(nlp) == NOTHING
    nlp.to_disk(tmp_path / "again")
    assert spacy.load(tmp_path / "again").get_pipe("luke_ner").threshold == 1.0


def test_a_wrong_override_at_loading_is_an_error(model):
    with pytest.raises(ConfigError, match=r"luke_ner\.threshold is 7"):
        spacy.load(model / "model", config={"components.luke_ner.threshold": 7})
    with pytest.raises(ValueError, match="treshold"):
        spacy.load(model / "model", config={"components": {"luke_ner": {"treshold": 0.3}}})


def test_find_threshold_finds_the_setting_that_the_component_has(model, capsys):
    from spacy.cli.find_threshold import find_threshold

    path = str(model / "model")
    best, score, scores = find_threshold(
        path, model / "dev.spacy", "luke_ner", "threshold", "ents_f", n_trials=3
    )
    assert score == 1.0 == scores[best] and scores[1.0] == 0.0 and len(scores) == 3
    nlp = spacy.load(path, config={"components.luke_ner.threshold": float(best)})
    assert found(nlp) == GOLD


def test_what_tuning_chooses_are_the_attributes_and_is_saved_once(model, tmp_path):
    nlp = spacy.load(model / "model")
    pipe = nlp.get_pipe("luke_ner")
    pipe.nil_bias = -20.0
    assert found(nlp) == NOTHING
    (tuned,) = tune(nlp, make_examples(nlp) * 12, Goal())
    assert pipe.nil_bias == tuned.settings["nil_bias"] > -20.0 and found(nlp) == GOLD
    assert pipe.threshold == tuned.thresholds.threshold
    nlp.to_disk(tmp_path)
    config, own = saved_settings(tmp_path)
    assert config["nil_bias"] == pipe.nil_bias and "nil_bias" not in own
    assert config["threshold"] == pytest.approx(pipe.threshold) and "threshold" not in own


def test_a_component_saved_without_its_pipeline_keeps_its_settings(model, tmp_path):
    pipe = spacy.load(model / "model").get_pipe("luke_ner")
    pipe.threshold = 0.25
    pipe.to_disk(tmp_path / "alone")
    for restore in (
        lambda other: other.from_disk(tmp_path / "alone"),
        lambda other: other.from_bytes(pipe.to_bytes()),
    ):
        other = spacy.load(model / "model").get_pipe("luke_ner")
        restore(other)
        assert other.threshold == 0.25 and other.labels == pipe.labels


def test_a_component_from_another_pipeline_keeps_its_settings_when_it_is_saved(model, tmp_path):
    source = spacy.load(model / "model")
    source.get_pipe("luke_ner").threshold = 0.25
    nlp = spacy.blank("xx")
    nlp.add_pipe("luke_ner", name="names", source=source)
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("names").threshold == 0.25


def test_settings_in_the_files_of_an_earlier_version_are_read_and_then_saved_once(model, tmp_path):
    spacy.load(model / "model").to_disk(tmp_path / "old")
    file = tmp_path / "old" / "luke_ner" / "cfg"
    old = {"threshold": 0.75, "nil_bias": 1.5, "overwrite": False}
    file.write_text(json.dumps({**json.loads(file.read_text("utf8")), **old}), encoding="utf8")
    nlp = spacy.load(tmp_path / "old", config={"components.luke_ner.nil_bias": 1.0})
    pipe = nlp.get_pipe("luke_ner")
    assert (pipe.threshold, pipe.nil_bias, pipe.overwrite) == (0.75, 1.0, False)
    nlp.to_disk(tmp_path / "new")
    config, own = saved_settings(tmp_path / "new")
    assert not old.keys() & own.keys()
    assert (config["threshold"], config["nil_bias"], config["overwrite"]) == (0.75, 1.0, False)


def test_two_components_write_two_groups_and_one_if_told_so(bert_dir, tmp_path):
    nlp = make_ner(bert_dir)
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}}, first=True)
    model = {"encoder": LISTENER}
    nlp.add_pipe("luke_ner", name="other", config={"model": model, "overwrite": False})
    nlp.initialize(lambda: make_examples(nlp))
    nlp.get_pipe("other").nil_bias = 30.0  # something in every sentence
    nlp.get_pipe("luke_ner").nil_bias = -30.0
    doc = nlp("Ada was born in London .")
    assert len(doc.spans["luke_ner"]) == 0 < len(doc.spans["other"])
    assert doc.spans["other"].name == "other" and len(doc.ents) == len(doc.spans["other"])
    scores = nlp.get_pipe("other").score([Example(doc, doc.copy())])
    assert scores["ents_f"] == 1.0 and sum(n for _, n, *_ in scores["ents_reliability"]) > 0
    nlp.to_disk(tmp_path)
    assert list(spacy.load(tmp_path)("Ada").spans) == ["luke_ner", "other"]
    nlp.get_pipe("luke_ner").spans_key = "other"
    assert list(nlp("Ada was born in London .").spans) == ["other"]


def test_components_sourced_from_two_trained_pipelines_write_two_groups(model):
    nlp = spacy.blank("xx")
    nlp.add_pipe("luke_ner", source=spacy.load(model / "model"))
    nlp.add_pipe("luke_ner", name="other", source=spacy.load(model / "model"))
    assert list(nlp("Ada was born in London .").spans) == ["luke_ner", "other"]


def test_two_lists_of_names_write_two_groups():
    nlp = spacy.blank("xx")
    nlp.add_pipe("known_names").set_names([{"name": "Ada", "label": "PERSON"}])
    nlp.add_pipe("known_names", name="towns").set_names([{"name": "Paris", "label": "GPE"}])
    doc = nlp("Ada in Paris")
    assert {key: [x.text for x in group] for key, group in doc.spans.items()} == {
        "known_names": ["Ada"],
        "towns": ["Paris"],
    }
