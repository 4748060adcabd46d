"""What all components with a classifier share: their classes are those that their model learned."""

import json

import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.training import Example

from spacy_luke.errors import ConfigError, ModelError
from spacy_luke.layers.task_layer import encoder_of, head_of
from tests.pipeline.relation_data import make_examples, make_pipeline
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
    pipe.cfg["labels"] = [*pipe.labels, "OTHER"]
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


def threshold_of(path, name, **overrides):
    config = {f"components.{name}.{key}": value for key, value in overrides.items()}
    return spacy.load(path, exclude=WITHOUT, config=config).get_pipe(name).threshold


# Of which some change in JSON: 0.3 is read as 0.30000000000000004.
THRESHOLDS = [0.0, 0.3, 0.57]


@pytest.mark.parametrize("configured", THRESHOLDS)
def test_a_setting_overridden_at_loading_counts_more_than_a_saved_one(saved, tmp_path, configured):
    name, path = saved
    nlp = spacy.load(path, exclude=WITHOUT, config={f"components.{name}.threshold": configured})
    assert nlp.get_pipe(name).threshold == pytest.approx(configured)
    nlp.get_pipe(name).threshold = 0.7
    changed = tmp_path / "changed"
    nlp.to_disk(changed, exclude=WITHOUT)
    assert threshold_of(changed, name) == pytest.approx(0.7)
    for override in (*THRESHOLDS, 0.7):
        assert threshold_of(changed, name, threshold=override) == pytest.approx(override)
        loaded = spacy.load(
            changed, exclude=WITHOUT, config={f"components.{name}.threshold": override}
        )
        loaded.to_disk(tmp_path / "again", exclude=WITHOUT)
        assert threshold_of(tmp_path / "again", name) == pytest.approx(override)


def test_settings_of_a_pipeline_saved_by_an_older_revision_can_be_overridden():
    folder = FOLDER / SAVED["luke_ner"]
    bias = json.loads((folder / "luke_ner" / "cfg").read_text("utf8"))["nil_bias"]
    assert load(folder).get_pipe("luke_ner").nil_bias == bias != 1.0
    nlp = spacy.load(folder, exclude=WITHOUT, config={"components.luke_ner.nil_bias": 1.0})
    assert nlp.get_pipe("luke_ner").nil_bias == 1.0


@pytest.mark.parametrize("part", ["encoder", "head", "filter"])
def test_damaged_weights_give_no_answers(saved, part):
    name, path = saved
    nlp = load(path)
    model = nlp.get_pipe(name).model
    head = head_of(model)
    parts = {"encoder": encoder_of(model).network, "head": head}
    parts |= dict(head.named_children())
    if part not in parts:
        pytest.skip("only luke_ner has a filter")
    list(nlp.pipe(documents(nlp)))
    with torch.no_grad():
        for parameter in parts[part].parameters():
            parameter.fill_(float("nan"))
    with pytest.raises(ModelError, match=f"{name}: scores are not numbers"):
        list(nlp.pipe(documents(nlp)))


def test_what_is_tuned_is_forgotten_also_if_the_threshold_is_a_default(bert_dir, caplog):
    nlp = make_pipeline("luke_relation", bert_dir, "probe")
    nlp.initialize(lambda: make_examples(nlp))
    pipe = nlp.get_pipe("luke_relation")
    pipe.thresholds = {pipe.labels[0]: 0.9}
    nlp.initialize(lambda: make_examples(nlp))
    assert "threshold is None, as before tuning. Tune again after training" in caplog.text
    assert pipe.thresholds == {}


def test_find_threshold_uses_the_thresholds_that_it_shows(saved, tmp_path, monkeypatch):
    from spacy.cli.find_threshold import find_threshold
    from spacy.tokens import DocBin

    name, path = saved
    nlp = load(path)
    nlp.get_pipe(name).threshold = 1.0
    nlp.tokenizer = spacy.blank("en").tokenizer
    nlp.to_disk(tmp_path / "whole")
    DocBin(docs=documents(nlp, gold=True), store_user_data=True).to_disk(tmp_path / "dev.spacy")
    used = []
    real = type(nlp).evaluate

    def evaluate(self, *args, **kwargs):
        used.append(self.get_pipe(name).threshold)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(type(nlp), "evaluate", evaluate)
    score = {"luke_ner": "ents_f", "luke_relation": "rels_f"}.get(name, "types_micro_f")
    find_threshold(
        str(tmp_path / "whole"), tmp_path / "dev.spacy", name, "threshold", score, n_trials=3
    )
    assert used == [0.0, 0.5, 1.0]


def test_bytes_keep_settings_in_a_pipeline_made_with_others(saved):
    name, path = saved
    nlp = load(path)
    nlp.get_pipe(name).threshold = 0.3
    other = load(path).from_bytes(nlp.to_bytes(exclude=WITHOUT), exclude=WITHOUT)
    assert other.get_pipe(name).threshold == pytest.approx(0.3)


def test_a_new_pipeline_keeps_settings_that_it_was_made_with(saved, caplog):
    """As an override does; the log names both."""
    name, path = saved
    config = spacy.util.load_config(
        path / "config.cfg", overrides={f"components.{name}.threshold": 0.4}
    )
    nlp = spacy.util.load_model_from_config(config)
    caplog.clear()
    nlp.from_disk(path, exclude=WITHOUT)
    assert nlp.get_pipe(name).threshold == pytest.approx(0.4)
    assert f"{name}.threshold is 0.4" in caplog.text and "was saved with" in caplog.text


def test_a_pipeline_that_goes_back_to_what_was_saved_has_its_settings(saved, tmp_path, caplog):
    """As in a loop that trains and tunes, and takes the best in the end."""
    name, path = saved
    nlp = spacy.load(path, exclude=WITHOUT, config={f"components.{name}.threshold": 0.4})
    pipe = nlp.get_pipe(name)
    pipe.threshold = 0.3
    before = dict(pipe.cfg)
    nlp.to_disk(tmp_path / "best", exclude=WITHOUT)
    pipe.threshold = 0.9
    caplog.clear()
    nlp.from_disk(tmp_path / "best", exclude=WITHOUT)
    assert pipe.cfg == {**before, "threshold": pytest.approx(0.3)} and not caplog.text
    nlp.to_disk(tmp_path / "again", exclude=WITHOUT)
    assert threshold_of(tmp_path / "again", name) == pytest.approx(0.3)
    pipe.threshold = 0.9
    pipe.from_disk(tmp_path / "best" / name, exclude=["cfg", "vocab"])
    assert pipe.threshold == 0.9


def test_settings_are_validated_from_everywhere(saved):
    name, path = saved
    pipe = load(path).get_pipe(name)
    with pytest.raises(ConfigError, match=f"{name}.threshold is 7"):
        pipe.threshold = 7
    with pytest.raises(ConfigError, match="no setting 'treshold'"):
        pipe.cfg["treshold"] = 0.5
    with pytest.raises(ConfigError, match=f"{name}.threshold is 7"):
        threshold_of(path, name, threshold=7)
    change(path, name, threshold=-1.0)
    with pytest.raises(ConfigError, match=f"{name}.threshold is -1"):
        load(path)


def test_a_setting_that_says_which_classes_there_are_cannot_be_overridden(tmp_path):
    load(FOLDER / SAVED["luke_relation"]).to_disk(tmp_path, exclude=WITHOUT)
    order = spacy.load(tmp_path, exclude=WITHOUT).get_pipe("luke_relation").pair_order
    other = {"both": "text", "text": "both"}[order]
    with pytest.raises(ConfigError, match="has learned other classes"):
        spacy.load(tmp_path, exclude=WITHOUT, config={"components.luke_relation.pair_order": other})


def test_documents_without_gold_annotation_are_not_scored_in_silence(saved, caplog):
    """spaCy's training would show 0.00 and choose a best model all the same."""
    name, path = saved
    nlp = load(path)
    gold = documents(nlp, gold=True)
    nlp.evaluate([Example(doc.copy(), doc) for doc in gold])
    assert "no gold annotation" not in caplog.text
    empty = [Doc(doc.vocab, words=[token.text for token in doc]) for doc in gold]
    for _ in range(2):
        nlp.evaluate([Example(doc.copy(), other) for doc, other in zip(gold, empty)])
        assert caplog.text.count(f"{name}: the documents have no gold annotation") == 1
