"""Tuning of trained components: what is chosen, what it does, and what it leaves alone."""

import random
import re
import threading
from copy import deepcopy
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Corpus, Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config, registry
from thinc.api import Adam, fix_random_seed

from spacy_luke.calibration import LEAST_ANSWERS
from spacy_luke.errors import ConfigError, CorpusError
from spacy_luke.layers.task_layer import encoder_below, head_of, scorer_of
from spacy_luke.pipeline import tuned_saving, tuning
from spacy_luke.pipeline.filter_tuning import open_filter
from spacy_luke.pipeline.nil_bias import Score, choose, choose_bias
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.trial import Trial
from spacy_luke.pipeline.tuning import tunable, tune
from tests.pipeline.conftest import ANNOTATED, fit, make_examples, make_ner

CONFIGS = Path(__file__).parents[2] / "configs"


def bare(examples):
    return [Example(eg.reference.copy(), eg.reference) for eg in examples]


@pytest.fixture(scope="module")
def saved(bert_dir, tmp_path_factory):
    """A directory with a trained pipeline whose own bias hides every entity."""
    path = tmp_path_factory.mktemp("tune") / "model"
    nlp = make_ner(bert_dir, nil_bias=-20.0)
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    nlp.to_disk(path)
    return path


@pytest.fixture
def nlp(saved):
    return spacy.load(saved)


def many(nlp, n: int = 12):
    return [eg for _ in range(n) for eg in make_examples(nlp)]


def test_a_tuned_pipeline_has_the_best_f_and_keeps_its_settings_when_saved(nlp, tmp_path):
    assert nlp.evaluate(make_examples(nlp))["ents_r"] == 0.0
    (tuned,) = tune(nlp, many(nlp), Goal())
    assert tuned.before.r == 0.0 and tuned.after.f == 1.0
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert loaded.evaluate(make_examples(loaded))["ents_f"] == 1.0
    cfg, again = nlp.get_pipe("luke_ner").cfg, loaded.get_pipe("luke_ner").cfg
    for name, value in cfg["calibration"].items():
        assert again["calibration"][name] == pytest.approx(value)  # JSON may change the last bit
    assert again["thresholds"] == cfg["thresholds"] == {}
    assert again["threshold"] == pytest.approx(cfg["threshold"])
    config = loaded.config["components"]["luke_ner"]
    assert config["nil_bias"] == cfg["nil_bias"] > -20.0
    scorer = scorer_of(loaded.get_pipe("luke_ner").model)
    assert scorer.candidates_per_word == tuned.filter.candidates_per_word
    assert config["model"]["filter_threshold"] == tuned.filter.filter_threshold
    text = [[span.text for span in doc.ents] for doc in nlp.pipe(["Ada was born in London ."])]
    assert text == [[span.text for span in loaded("Ada was born in London .").ents]]
    copy = loaded.from_bytes(nlp.to_bytes())
    assert copy.get_pipe("luke_ner").calibration.keys() == cfg["calibration"].keys()


def test_the_cheapest_filter_without_loss_is_chosen_and_decodes_as_predicted_with_it(nlp):
    pipe = nlp.get_pipe("luke_ner")
    pipe.nil_bias = 0.0

    def asked() -> float:
        trial = Trial(nlp, "luke_ner", many(nlp, 2))
        n_words = sum(len(doc) for batch in trial.batches for doc in batch)
        return sum(len(scores.rows) for _, scores in trial.predictions) / n_words

    scorer_of(pipe.model).filter_threshold = 0.0
    before = asked()
    (tuned,) = tune(nlp, many(nlp, 2), Goal())
    assert asked() == pytest.approx(tuned.filter.asked)
    assert tuned.filter.asked < 0.5 * before and tuned.after.f == 1.0


@pytest.mark.parametrize("goal", [Goal(), Goal(recall=0.9)])
def test_settings_of_the_filter_are_tried_as_predictions_with_them_would_be(nlp, goal):
    """Texts of one, of several sentences and of several windows, one of them empty."""
    encoder = encoder_below(nlp.get_pipe("luke_ner").model)
    encoder.attrs["settings"].window, encoder.attrs["settings"].overlap = 16, 4
    texts = ["Ada was born in London . ", "", "Grace works at IBM . " * 9, "Japan"]
    examples = [eg for eg in make_examples(nlp) for _ in range(2)]
    examples += [Example(nlp.make_doc(x), nlp.make_doc(x)) for x in texts]
    trial = Trial(nlp, "luke_ner", examples)
    opened = open_filter(trial, goal)
    assert opened.tried == ([0.5, 1.0, 2.0] if goal.recall else [0.5, 1.0])
    assert any(len(x.windows) > len(x.docs) for x in opened.placed)
    scorer = scorer_of(trial.pipe.model)
    numbers = set()
    for setting in product(opened.tried, (0.0, 0.01, 0.2)):
        tried = opened.passing(setting)
        assert (scorer.candidates_per_word, scorer.filter_threshold) == opened.before
        scorer.candidates_per_word, scorer.filter_threshold = setting
        used = trial.predict()
        scorer.candidates_per_word, scorer.filter_threshold = opened.before
        for (_, a), (_, b) in zip(tried, used, strict=True):
            assert a.rows.tolist() == b.rows.tolist()
            np.testing.assert_allclose(a.logits, b.logits, atol=1e-4)
        numbers.add(sum(len(scores.rows) for _, scores in tried))
    assert len(numbers) > len(opened.tried)


def test_a_cheaper_filter_is_not_what_training_goes_on_with(nlp, tmp_path):
    pipe = nlp.get_pipe("luke_ner")
    pipe.nil_bias = 0.0
    (tuned,) = tune(nlp, many(nlp, 2), Goal())
    assert tuned.filter.candidates_per_word == 0.5
    nlp.to_disk(tmp_path)
    for scorer in (
        scorer_of(pipe.model),
        scorer_of(spacy.load(tmp_path).get_pipe("luke_ner").model),
    ):
        assert (scorer.candidates_per_word, scorer.train_candidates_per_word) == (0.5, 1.0)
    list(tune(nlp, many(nlp, 2), Goal()))
    assert scorer_of(pipe.model).train_candidates_per_word == 1.0


def test_a_component_without_any_right_answer_is_skipped_and_keeps_its_settings(nlp, caplog):
    """All thresholds have the same F then; that of the lowest would write everything."""
    wrong = {"PER": "LOC", "LOC": "ORG", "ORG": "PER"}
    examples = many(nlp, 7)
    for eg in examples:
        eg.reference.ents = [
            Span(eg.reference, x.start, x.end, wrong[x.label_]) for x in eg.reference.ents
        ]
    pipe = nlp.get_pipe("luke_ner")
    before, scorer = dict(pipe.cfg), dict(vars(scorer_of(pipe.model)))
    with pytest.raises(CorpusError, match="or no right answer"):
        list(tune(nlp, examples, Goal()))
    assert "luke_ner: no answer on the development data is right. Its settings are" in caplog.text
    with pytest.raises(CorpusError, match="luke_ner: no answer on the development data is right"):
        list(tune(nlp, examples, Goal(), ["luke_ner"]))
    assert pipe.cfg == before and vars(scorer_of(pipe.model)) == scorer


@pytest.mark.parametrize("n_times,few", [(6, True), (7, False)])
def test_little_development_data_is_warned_of(nlp, caplog, n_times, few):
    examples = many(nlp, n_times)
    n_gold = sum(len(eg.reference.ents) for eg in examples)
    assert n_gold == 8 * n_times and (n_gold < LEAST_ANSWERS) == few
    list(tune(nlp, examples, Goal()))
    message = f"luke_ner: the development data has only {n_gold} annotated answers"
    assert (message in caplog.text) == few
    caplog.clear()
    list(tune(nlp, examples, Goal()))  # nothing changes
    assert message not in caplog.text


def test_a_filter_that_is_chosen_on_little_data_is_warned_of(nlp, caplog):
    examples = many(nlp, 2)
    list(tune(nlp, examples, Goal()))
    scorer = scorer_of(nlp.get_pipe("luke_ner").model)
    caplog.clear()
    list(tune(nlp, examples, Goal()))  # nothing changes
    assert "annotated answers" not in caplog.text
    chosen, scorer.filter_threshold = scorer.filter_threshold, 0.05
    list(tune(nlp, examples, Goal()))
    assert scorer.filter_threshold == chosen != 0.05
    assert "annotated answers" in caplog.text


def test_the_error_to_expect_is_that_of_answers_that_are_written(nlp, monkeypatch):
    """Held-out scores of which those below the threshold are exact, and the others far off."""

    def held_out(labels, probabilities, right, least=0.0):
        return np.where(np.asarray(right), 0.9, 0.0)

    monkeypatch.setattr(tuning, "held_out_scores", held_out)
    nlp.get_pipe("luke_ner").nil_bias = 0.0
    (tuned,) = tune(nlp, many(nlp), Goal(precision=0.5))
    assert 0.0 < tuned.thresholds.threshold < 0.9
    assert tuned.held_out_error == pytest.approx(0.1)


def test_a_bias_beyond_the_usual_ones_is_found(nlp):
    head = head_of(nlp.get_pipe("luke_ner").model).head.classifier
    head.bias.data[-1] += 30.0  # finds nothing any more
    (tuned,) = tune(nlp, many(nlp), Goal())
    assert 20.0 <= tuned.settings["nil_bias"] <= 40.0 and tuned.after.f == 1.0


class Margins:
    """Answers that are given if their margin and the bias are above 0. margins: (n,); right: (n,)
    whether each answer is. n_gold: right answers, given or not."""

    name = "margins"

    def __init__(self, margins, right, n_gold):
        self.margins, self.right, self.n_gold = np.array(margins), np.array(right), n_gold
        self.bias, self.n_tried = 0.0, 0

    def set(self, nil_bias):
        self.bias, self.n_tried = nil_bias, self.n_tried + 1

    def answers(self):
        return self

    def prf(self):
        given = self.margins + self.bias > 0
        p = self.right[given].mean() if given.any() else 0.0
        r = self.right[given].sum() / self.n_gold
        return p, r, 2 * p * r / max(p + r, 1e-9)


@pytest.mark.parametrize(
    ("margins", "right", "n_gold", "recall", "low", "high", "most_tried"),
    [
        # From 2.5 on F is 0.4, which is that of the last bias of the first range, too; then 0.86.
        ([-2.4, -4.1, -4.1, -5.1, -5.1], [1, 1, 1, 0, 0], 4, None, 4.25, 5.0, 50),
        # What is far on either side does not change: the bias stays small, and is found soon.
        ([99] * 50 + [-2] * 10, [1] * 40 + [0] * 10 + [1] * 10, 60, None, 2.25, 3.0, 50),
        ([99] * 50 + [1] * 10, [1] * 40 + [0] * 20, 50, None, -3.0, -1.0, 50),
        ([99] * 50, [1] * 40 + [0] * 10, 50, None, 0.0, 0.0, 30),
        ([99] * 50, [1] * 40 + [0] * 10, 50, 0.9, 0.0, 0.0, 30),  # no bias reaches the recall
        ([-1, -7.1, -7.1, -7.2], [1, 1, 1, 0], 4, 0.75, 7.25, 12.0, 200),
    ],
)
def test_a_range_is_left_where_it_pays(margins, right, n_gold, recall, low, high, most_tried):
    trial = Margins(margins, right, n_gold)
    choose_bias(trial, Goal(recall=recall))
    assert low <= trial.bias <= high and trial.n_tried <= most_tried


def test_trials_change_nothing_in_documents_or_settings_that_later_ones_see(nlp):
    cfg = nlp.get_pipe("luke_ner").cfg
    cfg.update(overwrite=False, nil_bias=0.0)
    trial = Trial(nlp, "luke_ner", make_examples(nlp))
    first = trial.answers()
    trial.set(nil_bias=-50.0)
    assert not trial.answers().found
    trial.set(nil_bias=0.0)
    again = trial.answers()
    assert [x.label for x in again.found] == [x.label for x in first.found] != []
    assert not any(doc.ents for batch in trial.batches for doc in batch)


def test_answers_are_those_that_the_scorer_counts(nlp):
    nlp.get_pipe("luke_ner").nil_bias = 1.0
    scores = nlp.evaluate(make_examples(nlp))
    p, r, f = Trial(nlp, "luke_ner", make_examples(nlp)).answers().prf()
    assert (p, r, f) == tuple(scores[f"ents_{x}"] for x in "prf")
    assert scores["ents_calibration_error"] is not None
    assert sum(n for _, n, *_ in scores["ents_reliability"]) == 8


def test_nested_mode_is_tuned_on_its_spans(bert_dir):
    nlp = make_ner(bert_dir, nested=True, mode="full")
    examples = make_examples(nlp)
    for eg in examples:
        eg.reference.spans["luke_ner"] = list(eg.reference.ents)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    (tuned,) = tune(nlp, examples, Goal())
    assert tuned.after.f == 1.0 and tuned.filter is None


def test_a_goal_that_cannot_be_reached_is_an_error_and_changes_nothing(nlp):
    examples = many(nlp)
    for eg in examples:
        eg.reference.set_ents([spacy.tokens.Span(eg.reference, 0, 1, label="LOC")])
    pipe = nlp.get_pipe("luke_ner")
    before, config = dict(pipe.cfg), nlp.config.to_str()
    scorer = dict(vars(scorer_of(pipe.model)))
    with pytest.raises(
        ConfigError, match="precision 0.99 cannot be reached .*; 0.[0-9]+ can"
    ) as err:
        list(tune(nlp, examples, Goal(precision=0.99)))
    assert dict(pipe.cfg) == before
    possible = float(re.search(r"; (0.[0-9]+) can", str(err.value))[1])
    assert list(tune(deepcopy(nlp), examples, Goal(precision=possible)))
    assert dict(pipe.cfg) == before and nlp.config.to_str() == config
    assert vars(scorer_of(pipe.model)) == scorer


def test_no_annotation_and_unknown_components_are_errors(nlp):
    docs = [nlp.make_doc("Nothing here.")]
    with pytest.raises(CorpusError, match="no annotation"):
        list(tune(nlp, [Example(x, x.copy()) for x in docs], Goal()))
    with pytest.raises(CorpusError, match="luke_ner: the development data has no annotation"):
        list(tune(nlp, [Example(x, x.copy()) for x in docs], Goal(), ["luke_ner"]))
    nlp.add_pipe("sentencizer", first=True)
    assert tunable(nlp) == ["luke_ner"]
    with pytest.raises(ConfigError, match="sentencizer"):
        tunable(nlp, ["sentencizer"])
    with pytest.raises(ConfigError, match="No component can be tuned: sentencizer"):
        nlp.remove_pipe("luke_ner")
        tunable(nlp)


def with_dev(nlp, tmp_path):
    path = tmp_path / "dev.spacy"
    DocBin(docs=[eg.reference for eg in many(nlp)]).to_disk(path)
    reader = {"@readers": "spacy.Corpus.v1", "path": str(path), "gold_preproc": False}
    nlp.config["corpora"] = {"dev": reader}


def test_the_callback_tunes_a_copy_that_training_saves(nlp, tmp_path):
    with_dev(nlp, tmp_path)
    nlp.meta["performance"] = {"ents_f": 0.1}
    before, scorer = dict(nlp.get_pipe("luke_ner").cfg), scorer_of(nlp.get_pipe("luke_ner").model)
    settings = dict(vars(scorer))
    saved = registry.callbacks.get("spacy-luke.tune.v1")()(nlp)
    assert saved is not nlp and saved.vocab is nlp.vocab
    assert saved.evaluate(make_examples(saved))["ents_f"] == 1.0
    assert saved.get_pipe("luke_ner").calibration is not None
    assert saved.meta["performance"]["ents_f"] == 1.0  # the tuned pipeline's
    assert nlp.meta["performance"] == {"ents_f": 0.1}
    assert dict(nlp.get_pipe("luke_ner").cfg) == before and vars(scorer) == settings
    saved.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    assert loaded.evaluate(make_examples(loaded))["ents_f"] == 1.0


@pytest.mark.parametrize("is_last", [True, False])
def test_the_callback_saves_the_scores_of_the_tuned_pipeline(nlp, tmp_path, is_last):
    """The component's own answers give them if no other runs after it; the filter is not chosen."""
    with_dev(nlp, tmp_path)
    if not is_last:
        nlp.add_pipe("sentencizer")
    nlp.config["training"]["score_weights"] = {"ents_f": 1.0, "ents_per_type": 0.0}
    nlp.get_pipe("luke_ner").nil_bias = -20.0  # finds nothing
    saved = registry.callbacks.get("spacy-luke.tune.v1")()(nlp)
    scores = saved.evaluate(many(saved))
    shown = saved.meta["performance"]
    assert shown == {x: scores[x] for x in shown} and shown["ents_f"] == 1.0
    assert set(shown["ents_per_type"]) == {"LOC", "ORG", "PER"}
    names = ("candidates_per_word", "filter_threshold", "train_candidates_per_word")
    one, other = (scorer_of(x.get_pipe("luke_ner").model) for x in (nlp, saved))
    assert all(getattr(one, x) == getattr(other, x) for x in names)


def test_spacy_train_saves_what_the_callback_tuned(bert_dir, tmp_path):
    """By a shipped config, with its optimizer, whose schedule cannot be copied."""
    docs = [eg.reference for eg in many(spacy.blank("en"))]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    overrides = {f"paths.{name}": str(tmp_path / "docs.spacy") for name in ("train", "dev")}
    overrides |= {"paths.encoder": str(bert_dir), "training.max_steps": 40}
    overrides |= {"training.eval_frequency": 20, "training.logger.progress_bar": False}
    overrides["training.optimizer.learn_rate"] = 5e-3
    found = {}
    for tuned in (True, False):
        if not tuned:
            overrides["training.before_to_disk"] = None
        nlp = init_nlp(load_config(CONFIGS / "ner.cfg", overrides=overrides))
        assert nlp._optimizer is not None
        out = tmp_path / str(tuned)
        out.mkdir()
        train(nlp, out)
        assert nlp._optimizer is not None
        found[tuned] = spacy.load(out / "model-last")
        assert (found[tuned].get_pipe("luke_ner").calibration is not None) == tuned
    trained, saved = found[False], found[True]
    examples = list(Corpus(tmp_path / "docs.spacy")(trained))
    list(tune(trained, examples, Goal(), of_filter=False))
    one, other = (x.get_pipe("luke_ner").cfg for x in (trained, saved))
    assert [one[x] for x in ("nil_bias", "threshold")] == [
        pytest.approx(other[x]) for x in ("nil_bias", "threshold")
    ]
    for name in ("slopes", "shifts"):
        assert one["calibration"][name] == pytest.approx(other["calibration"][name])
    assert spacy.load(tmp_path / "True" / "model-best").get_pipe("luke_ner").calibration is not None
    assert saved.meta["performance"]["ents_f"] == pytest.approx(saved.evaluate(examples)["ents_f"])


class Locked:
    """A component that cannot be copied."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, doc):
        with self.lock:
            return doc


def test_a_component_that_cannot_be_copied_is_saved_with_what_is_tuned(nlp, tmp_path, caplog):
    Language.component("locked", func=Locked())
    with_dev(nlp, tmp_path)
    nlp.add_pipe("locked")
    saved = registry.callbacks.get("spacy-luke.tune.v1")()(nlp)
    assert saved.get_pipe("luke_ner").calibration is not None and not caplog.text
    assert nlp.get_pipe("luke_ner").calibration is None
    assert saved.get_pipe("locked") is nlp.get_pipe("locked")


def test_an_error_while_tuning_is_no_reason_to_lose_what_was_trained(nlp, tmp_path, caplog):
    with_dev(nlp, tmp_path)
    weights = head_of(nlp.get_pipe("luke_ner").model).head.classifier.weight
    weights.data.fill_(float("nan"))
    assert registry.callbacks.get("spacy-luke.tune.v1")()(nlp) is nlp
    assert "The saved pipeline is not tuned. ModelError: " in caplog.text


def test_the_callback_draws_no_random_numbers_of_the_training(nlp, tmp_path):
    with_dev(nlp, tmp_path)
    augmenter = {"@augmenters": "spacy.lower_case.v1", "level": 0.5}
    nlp.config["corpora"]["dev"]["augmenter"] = augmenter
    callback = registry.callbacks.get("spacy-luke.tune.v1")()
    random.seed(0)
    expected = random.random()
    random.seed(0)
    callback(nlp)
    assert random.random() == expected


PLACES = {"Ada": "/per", "Babbage": "/per", "Tokyo": "/loc", "London": "/loc", "Meiji": "/org"}


def typed(nlp):
    """Texts with two entities of one type each, and a relation by the type of the second."""
    found = []
    for one, two in product(PLACES, PLACES):
        docs = [Doc(nlp.vocab, words=[one, "was", "in", two, "."]) for _ in range(2)]
        for doc in docs:
            doc.set_ents([Span(doc, i, i + 1, "X") for i in (0, 3)], default="outside")
        for ent in docs[1].ents:
            ent._.types = {PLACES[ent.text]: 1.0}
        docs[1]._.relations = [(*docs[1].ents, PLACES[two].strip("/"))]
        found.append(Example(*docs))
    return found


@pytest.mark.parametrize(
    ("factory", "config", "score"),
    [
        ("luke_entity_typing", {}, "types_micro_f"),
        ("luke_relation", {"multi_label": True}, "rels_f"),
    ],
)
def test_a_component_without_errors_stays_so(bert_dir, factory, config, score):
    """Answers that are nearly impossible were not seen when the threshold was chosen."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    nlp.add_pipe(factory, config={"model": {"encoder": encoder}, **config})
    nlp.initialize(lambda: typed(nlp))
    optimizer = Adam(5e-3, use_averages=False)
    for _ in range(40):
        nlp.update(typed(nlp), sgd=optimizer, drop=0.0)
    assert nlp.evaluate(typed(nlp))[score] == 1.0
    pipe = nlp.get_pipe(factory)
    for copies in (1, 4):  # too few to calibrate, and enough
        for goal in (Goal(), Goal(precision=0.9), Goal(recall=0.9, each_label=True)):
            (tuned,) = tune(nlp, typed(nlp) * copies, goal)
            after = tuned.after
            assert after.f == pytest.approx(nlp.evaluate(typed(nlp))[score])
            assert after.r >= 0.9 and after.p >= 0.9 and (after.f == 1.0 or goal != Goal())
    assert pipe.calibration is not None


def test_what_the_callback_cannot_tune_is_logged_and_saved_as_it_is(nlp, tmp_path, caplog):
    with_dev(nlp, tmp_path)
    head_of(nlp.get_pipe("luke_ner").model).head.classifier.weight.data.zero_()  # knows nothing
    head_of(nlp.get_pipe("luke_ner").model).head.classifier.bias.data.zero_()
    saved = registry.callbacks.get("spacy-luke.tune.v1")(precision=0.99)(nlp)
    assert "is not tuned" in caplog.text and "precision 0.99 cannot be reached" in caplog.text
    assert dict(saved.get_pipe("luke_ner").cfg) == dict(nlp.get_pipe("luke_ner").cfg)


def test_a_callback_that_may_tune_nothing_says_so(nlp, tmp_path, caplog):
    with_dev(nlp, tmp_path)
    nlp.config["training"]["frozen_components"] = ["luke_ner"]
    saved = registry.callbacks.get("spacy-luke.tune.v1")()(nlp)
    assert "is not tuned: all that could be is frozen" in caplog.text
    assert saved.get_pipe("luke_ner").calibration is None


def write_dev(nlp, path, label=str):
    """label: the label of an entity -> that of the development data."""
    docs = [eg.reference for eg in many(nlp)]
    for i, doc in enumerate(docs):
        doc.set_ents([Span(doc, x.start, x.end, label(x.label_, i)) for x in doc.ents])
    DocBin(docs=docs).to_disk(path)


def test_of_several_saved_pipelines_it_is_said_what_is_not_as_before(nlp, tmp_path, caplog):
    """Not other numbers alone; so the last that was said holds for what was saved last."""
    with_dev(nlp, tmp_path)
    callback = registry.callbacks.get("spacy-luke.tune.v1")(precision=0.8)

    def said(label):
        write_dev(nlp, tmp_path / "dev.spacy", label)
        caplog.clear()
        callback(nlp)
        return caplog.text

    def wrong(label, i):
        return ["PER", "ORG", "LOC"][i % 3]

    unreached = "is not tuned. luke_ner: precision 0.8 cannot be reached"
    assert unreached in said(wrong)
    assert not said(lambda label, i: wrong(label, i) if i > 9 else label)  # other numbers
    gone = "What was warned of before does not hold for the pipeline that is saved now."
    text = said(lambda label, i: label)
    assert gone in text and unreached not in text
    assert not said(lambda label, i: label)
    assert unreached in said(wrong)
    text = said(lambda label, i: "OTHER")
    assert "this holds instead of what was warned of before:" in text
    assert "labels that no component has" in text and unreached not in text


def test_what_cannot_be_saved_as_tuned_is_not_said_to_be(nlp, tmp_path, caplog, monkeypatch):
    with_dev(nlp, tmp_path)
    callback = registry.callbacks.get("spacy-luke.tune.v1")()

    def fail(*args, **kwargs):
        raise RuntimeError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(tuned_saving, "refresh", fail)
        assert callback(nlp) is nlp
        assert "The saved pipeline is not tuned. RuntimeError: no room" in caplog.text
        caplog.clear()
        assert callback(nlp) is nlp and not caplog.text
    assert callback(nlp).get_pipe("luke_ner").calibration is not None
    assert "What was warned of before does not hold" in caplog.text


def test_labels_that_are_never_written_are_named_while_training(bert_dir, tmp_path, caplog):
    """Those that cannot reach the precision, and those without annotation; also labels that only
    differ by a number."""
    names = {"PER": "P17", "LOC": "P131", "ORG": "P27"}
    data = [(text, [(a, b, names[x]) for a, b, x in spans]) for text, spans in ANNOTATED]
    nlp = make_ner(bert_dir)
    examples = make_examples(nlp, data)
    nlp.initialize(lambda: examples)
    fit(nlp, examples, 60)
    with_dev(nlp, tmp_path)
    callback = registry.callbacks.get("spacy-luke.tune.v1")(precision=0.8, each_label=True)

    def never(half, absent):
        def label(gold, i):
            name = names[gold]
            return "P17" if name == absent or (name == half and i % 2) else name

        write_dev(nlp, tmp_path / "dev.spacy", label)
        caplog.clear()
        thresholds = callback(nlp).get_pipe("luke_ner").thresholds
        return {x for x, y in thresholds.items() if y is None}

    for half, absent in (("P131", "P27"), ("P27", "P131")):
        assert never(half, absent) == {half, absent}
        assert f"cannot be reached for the labels {half} (" in caplog.text
        assert f"no annotation with the labels {absent}." in caplog.text


def test_one_that_always_answers_is_calibrated_whatever_is_wanted(bert_dir, tmp_path, caplog):
    """Unless it is named: then that is a mistake."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    nlp.add_pipe("luke_entity_typing", config={"model": {"encoder": encoder}, "multi_label": False})
    nlp.initialize(lambda: typed(nlp))
    path = tmp_path / "dev.spacy"
    docs = [eg.reference for eg in typed(nlp) * 2]
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    reader = {"@readers": "spacy-luke.PresetEntsCorpus.v1", "path": str(path)}
    nlp.config["corpora"] = {"dev": reader}
    saved = registry.callbacks.get("spacy-luke.tune.v1")(precision=0.9)(nlp)
    assert saved.get_pipe("luke_entity_typing").calibration is not None
    assert "writes exactly one type per span: it is only calibrated" in caplog.text
    named = registry.callbacks.get("spacy-luke.tune.v1")(
        components=["luke_entity_typing"], precision=0.9
    )
    assert named(nlp).get_pipe("luke_entity_typing").calibration is None
    assert "no precision or recall can be chosen" in caplog.text


def test_the_callback_does_not_choose_on_a_few_answers(nlp, tmp_path, caplog):
    with_dev(nlp, tmp_path)
    nlp.config["corpora"]["dev"]["limit"] = 10
    nlp.get_pipe("luke_ner").nil_bias = 0.125
    saved = registry.callbacks.get("spacy-luke.tune.v1")()(nlp)
    assert "only 16 annotated answers to tune on, of 50 that are needed." in caplog.text
    cfg = saved.get_pipe("luke_ner").cfg
    assert cfg["nil_bias"] == 0.125 and cfg["threshold"] == 0.0 and cfg["calibration"] is None


def test_the_callback_reads_the_development_data_of_the_training(nlp, tmp_path):
    with_dev(nlp, tmp_path)
    nlp.config["corpora"] = {"held_out": nlp.config["corpora"]["dev"]}
    nlp.config["training"]["dev_corpus"] = "corpora.held_out"
    saved = registry.callbacks.get("spacy-luke.tune.v1")()(nlp)
    assert saved.get_pipe("luke_ner").calibration is not None


def test_a_pipeline_without_anything_to_tune_is_saved_as_it_is(nlp, tmp_path, caplog):
    with_dev(nlp, tmp_path)
    nlp.replace_pipe("luke_ner", "ner")
    assert registry.callbacks.get("spacy-luke.tune.v1")()(nlp) is nlp
    assert "The saved pipeline is not tuned: nothing can be." in caplog.text


def test_one_that_cannot_be_tuned_does_not_keep_the_callback_from_the_next(
    bert_dir, tmp_path, caplog
):
    fix_random_seed(0)
    nlp = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    for factory in ("luke_relation", "luke_entity_typing"):
        nlp.add_pipe(factory, config={"model": {"encoder": encoder}})
    nlp.initialize(lambda: typed(nlp))
    path = tmp_path / "dev.spacy"
    docs = [eg.reference for eg in typed(nlp) * 2]
    for doc in docs:
        doc._.relations = []
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    reader = {"@readers": "spacy-luke.PresetEntsCorpus.v1", "path": str(path)}
    nlp.config["corpora"] = {"dev": reader}
    saved = registry.callbacks.get("spacy-luke.tune.v1")()(nlp)
    assert "luke_relation: the development data has no annotation to tune on" in caplog.text
    assert saved.get_pipe("luke_entity_typing").calibration is not None


def test_recall_is_of_what_the_component_could_find(nlp):
    """Gold entities of other labels, and those that another component has found, are not."""
    examples = many(nlp)
    for eg in examples:
        gold = eg.reference
        gold.set_ents([x for x in gold.ents if x.label_ != "PER"], default="unmodified")
        known = [spacy.tokens.Span(gold, x.start, x.end, label="OTHER") for x in gold.ents[:1]]
        gold.set_ents([*known, *gold.ents[1:]])
    trial = Trial(nlp, "luke_ner", examples)
    assert set(trial.answers().n_gold) == {"LOC"}
    ruler = nlp.add_pipe("entity_ruler", before="luke_ner")
    ruler.add_patterns([{"label": "LOC", "pattern": "Tokyo"}])
    nlp.get_pipe("luke_ner").cfg.update(overwrite=False, nil_bias=0.0)
    n_gold = Trial(nlp, "luke_ner", many(nlp, 1)).answers().n_gold
    assert n_gold["LOC"] == 5  # of 6, one of which is found by the ruler


def test_with_a_threshold_for_every_label_the_common_one_stays(nlp):
    """A new training by the saved config begins with it."""
    nlp.get_pipe("luke_ner").threshold = 0.25
    list(tune(nlp, many(nlp), Goal(precision=0.9, each_label=True)))
    cfg = nlp.get_pipe("luke_ner").cfg
    assert cfg["threshold"] == 0.25 and set(cfg["thresholds"]) == {"LOC", "ORG", "PER"}


def test_labels_whose_thresholds_are_chosen_on_few_answers_are_named(nlp, caplog):
    goal = Goal(recall=0.5, each_label=True)
    (tuned,) = tune(nlp, many(nlp), goal)
    found = tuned.after.by_label
    assert {x: y.n_gold for x, y in found.items()} == {"LOC": 72, "ORG": 12, "PER": 12}
    assert all(y.r >= 0.5 and y.f > 0 for y in found.values())
    assert "on fewer than 50 annotated answers may not keep what is wanted" in caplog.text
    assert "on other data: PER (12), ORG (12)." in caplog.text
    caplog.clear()
    list(tune(nlp, many(nlp), Goal(recall=0.5)))
    assert "on fewer than 50" not in caplog.text


def test_gold_labels_that_no_component_has_are_named(nlp, caplog):
    examples = many(nlp)
    n_per = 0
    for eg in examples:
        ents = eg.reference.ents
        n_per += sum(x.label_ == "PER" for x in ents)
        renamed = {"PER": "PERSON"}
        eg.reference.set_ents(
            [Span(eg.reference, x.start, x.end, renamed.get(x.label_, x.label_)) for x in ents]
        )
    list(tune(nlp, examples, Goal()))
    assert f"{n_per} annotations with labels that no component has: PERSON." in caplog.text
    caplog.clear()
    nlp.add_pipe("entity_ruler", first=True).add_patterns([{"label": "PERSON", "pattern": "x y"}])
    list(tune(nlp, (eg for eg in examples), Goal()))
    assert "no component has" not in caplog.text
    nlp.remove_pipe("entity_ruler")
    nlp.add_pipe("textcat").add_label("PERSON")  # no entity
    trial = Trial(nlp, "luke_ner", examples)
    trial.answers()
    assert trial.unknown_gold() == {"PERSON": n_per}
    nlp.remove_pipe("textcat")
    for eg in examples:
        eg.reference.set_ents([Span(eg.reference, 0, 1, "THING")])
    with pytest.raises(CorpusError, match="no annotation to tune on, but for .* THING"):
        list(tune(nlp, examples, Goal(), ["luke_ner"]))


def test_what_is_frozen_may_be_a_variable(nlp, tmp_path, caplog):
    with_dev(nlp, tmp_path)
    nlp.config["vars"] = {"frozen": ["luke_ner"]}
    nlp.config["training"]["frozen_components"] = "${vars.frozen}"
    saved = registry.callbacks.get("spacy-luke.tune.v1")()(nlp)
    assert "all that could be is frozen" in caplog.text
    assert saved.get_pipe("luke_ner").calibration is None


def test_training_again_forgets_what_was_tuned_and_thresholds_name_labels(nlp):
    list(tune(nlp, many(nlp), Goal(recall=0.5, each_label=True)))
    cfg = nlp.get_pipe("luke_ner").cfg
    assert set(cfg["thresholds"]) == {"LOC", "ORG", "PER"}
    cfg["thresholds"] = {"GPE": 0.5}
    with pytest.raises(ConfigError, match="GPE"):
        nlp("Ada was born in London .")
    with pytest.raises(ConfigError, match="thresholds"):
        cfg["thresholds"] = {"LOC": 1.5}
    for changed in ({"slope": 0.0}, {"slopes": {"LOC": -1.0}}, {"least": 5.0}):
        with pytest.raises(ConfigError, match="calibration"):
            cfg["calibration"] = {**cfg["calibration"], **changed}
    nlp.initialize(lambda: make_examples(nlp))
    assert cfg["thresholds"] == {} and cfg["calibration"] is None


def test_other_weights_have_no_old_calibration(nlp, saved, caplog):
    nlp.get_pipe("luke_ner").threshold = 0.25
    list(tune(nlp, many(nlp), Goal()))
    cfg = nlp.get_pipe("luke_ner").cfg
    list(tune(nlp, many(nlp), Goal(precision=0.5)))  # again: the first is what was trained with
    assert cfg["calibration"]["before"] == 0.25 and cfg["threshold"] != 0.25
    nlp.update(make_examples(nlp), sgd=False)  # no step
    wrong = make_examples(nlp)[:1]
    wrong[0].reference.ents = [Span(wrong[0].reference, 0, 1, "UNHEARD")]
    with pytest.raises(ConfigError):
        nlp.update(wrong, sgd=nlp.create_optimizer())
    assert cfg["calibration"] is not None
    nlp.update(make_examples(nlp), sgd=nlp.create_optimizer())
    assert cfg["calibration"] is None and "Tune again after training" in caplog.text
    assert cfg["threshold"] == 0.25  # the other was one of calibrated scores
    list(tune(nlp, many(nlp), Goal()))
    nlp.from_disk(saved)  # was saved before tuning
    assert nlp.get_pipe("luke_ner").calibration is None


@pytest.mark.parametrize(
    ("f_by_bias", "best"),
    [
        ({-1: 0.5, 0: 0.6, 1: 0.7}, 1),
        ({-1: 0.7, 0: 0.7, 1: 0.7, 2: 0.1}, 0),
        ({0: 0.1, 1: 0.7, 2: 0.7, 3: 0.7, 4: 0.7}, 2),  # of two middles that nearer to 0
        ({-4: 0.7, -3: 0.7, -2: 0.7, -1: 0.7, 0: 0.1}, -2),
        ({-2: 0.7, -1: 0.1, 1: 0.7}, 1),  # of two peaks that nearer to 0
        ({-1: 0.7, 0: 0.1, 1: 0.7, 2: 0.7, 3: 0.7}, 2),  # the wider one
        ({-1: 0.0, 0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, 0),  # nothing to choose by
    ],
)
def test_the_middle_of_the_widest_best_stretch_is_chosen(f_by_bias, best):
    scores = [Score(bias, 0.0, f) for bias, f in f_by_bias.items()]
    assert choose(scores).bias == best
