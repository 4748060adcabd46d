"""The steps of a training follow the size of its corpus; what a config sets stays."""

from itertools import count

import catalogue
import pytest
import spacy
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.util import registry
from thinc.api import Config

from spacy_luke.errors import ConfigError, CorpusError
from spacy_luke.pipeline.training_plan import frequency, make_plan_training

CONFIG = """
[nlp]
lang = "en"
pipeline = []

[corpora]

[corpora.train]
@readers = "spacy.Corpus.v1"
path = "{path}"

[corpora.dev]
@readers = "spacy.Corpus.v1"
path = "{path}"

[training]
seed = 0
gpu_allocator = null
max_steps = 0
max_epochs = 0
eval_frequency = 0

[training.batcher]
@batchers = "spacy.batch_by_sequence.v1"
size = 4

[training.optimizer]
@optimizers = "Adam.v1"

[training.optimizer.learn_rate]
@schedules = "warmup_linear.v1"
warmup_steps = 0
total_steps = 0
initial_rate = 0.001

[initialize]

[initialize.after_init]
@callbacks = "spacy-luke.plan_training.v1"
words = 1000
epochs = 3
"""


@pytest.fixture
def planned(tmp_path, capsys):
    """Initialise with a corpus of ``n_docs`` documents of 5 words, 4 per batch; return
    ``[training]`` and what was printed."""

    def plan(n_docs: int, changes: dict | None = None, n_words: int = 5):
        vocab = spacy.blank("en").vocab
        docs = [Doc(vocab, words=["word"] * n_words) for _ in range(n_docs)]
        DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
        text = CONFIG.format(path=(tmp_path / "train.spacy").as_posix())
        config = Config().from_str(text, interpolate=False, overrides=changes or {})
        nlp = init_nlp(config)
        return nlp.config["training"], " ".join(capsys.readouterr().out.split())

    return plan


def chosen(training) -> tuple[int, int, int, int]:
    schedule = training["optimizer"]["learn_rate"]
    names = schedule["total_steps"], schedule["warmup_steps"]
    return training["max_steps"], *names, training["eval_frequency"]


def test_a_small_corpus_is_seen_until_there_were_enough_words(planned):
    training, printed = planned(10)  # 50 words and 3 batches per epoch: 20 epochs
    assert chosen(training) == (64, 64, 6, 8)
    assert "10 documents of 50 words are 3 batches per epoch" in printed
    assert "64 steps, 21 epochs (at least 1,000 words and 3 epochs)" in printed
    assert "max_steps = 64, total_steps = 64, warmup_steps = 6, eval_frequency = 8" in printed


def test_a_large_corpus_is_seen_a_few_times(planned):
    training, _ = planned(400)  # 2,000 words and 100 batches per epoch
    assert chosen(training) == (304, 304, 30, 38)


def test_what_the_config_sets_stays(planned):
    training, _ = planned(10, {"training.max_steps": 7, "training.eval_frequency": 5})
    assert chosen(training) == (7, 7, 1, 5)
    schedule = {
        "training.optimizer.learn_rate.total_steps": 100,
        "training.optimizer.learn_rate.warmup_steps": 3,
    }
    training, _ = planned(10, schedule)
    assert chosen(training) == (100, 100, 3, 10)
    everything = {**schedule, "training.max_epochs": 2, "training.eval_frequency": 5}
    training, printed = planned(10, everything)
    assert chosen(training) == (0, 100, 3, 5)
    assert "the config sets all steps; words and epochs change nothing" in printed
    everything |= {"training.max_steps": 600, "training.eval_frequency": 5000}
    assert "⚠" not in planned(10, everything)[1]  # epochs decide, which were not counted
    _, printed = planned(400, {**schedule, "training.max_steps": 100, "training.eval_frequency": 9})
    assert "the config sets all steps" in printed and "⚠" not in printed


def test_batches_that_are_drawn_are_counted_in_the_mean(planned):
    """Passes of 1, 3, 1, 3, ... batches: 40 steps for 20 passes, not 20 or 60."""
    passes = count()

    @registry.batchers("drawn.v1")
    def make_drawn():
        def drawn(examples):
            examples = list(examples)
            return [examples] if next(passes) % 2 == 0 else [examples[i::3] for i in range(3)]

        return drawn

    try:
        training, printed = planned(10, {"training.batcher": {"@batchers": "drawn.v1"}})
    finally:
        catalogue.REGISTRY.pop(("spacy", "batchers", "drawn.v1"))
    assert training["max_steps"] == 40 and "are 2 batches per epoch" in printed


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        ({"initialize.after_init.words": 1200}, 6),
        ({"initialize.after_init.words": 500}, 3),
        ({"initialize.after_init.words": 700}, 3.5),
        ({"training.max_epochs": 4}, 4),
        ({"training.max_epochs": 1000, "training.max_steps": 54}, 4),
        ({"training.max_steps": 54}, 4),
        ({"training.max_epochs": 3, "training.max_steps": 900}, 3),
    ],
)
def test_batches_that_grow_are_counted_to_the_end(planned, changes, passes):
    """The schedule of spaCy's default config goes on from one pass to the next."""
    size = {"@schedules": "compounding.v1", "start": 10, "stop": 100, "compound": 1.02}
    batcher = {"@batchers": "spacy.batch_by_words.v1", "size": size, "tolerance": 0.2}
    nested = {**batcher, "discard_oversize": False}
    outer = {"@batchers": "spacy-luke.vary_case.v1", "lower": 0.2, "upper": 0.1}
    changes = {**changes, "training.batcher": {**outer, "batcher": nested}}
    training, printed = planned(40, changes)
    batches = registry.resolve({"batcher": training["batcher"]["batcher"]})["batcher"]
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=["word"] * 5)] * 40
    seen = [len(list(batches(docs))) for _ in range(6)]
    assert seen[0] > 1.5 * seen[-1]
    steps = training["optimizer"]["learn_rate"]["total_steps"]
    whole = int(passes)
    expected = sum(seen[:whole]) + (passes - whole) * seen[whole] if whole < 6 else sum(seen)
    assert expected <= steps < expected + 8, printed  # rounded to evaluations
    shown = float(printed.split(" steps, ")[1].split(" epochs")[0])
    assert passes - 0.1 <= shown < passes + 1


def test_a_tiny_corpus_is_not_seen_forever(planned):
    training, printed = planned(1, {"initialize.after_init.words": 350_000})
    assert training["max_steps"] == 1000 and "at most 1,000 epochs for 350,000 words" in printed


def test_what_cannot_work_is_warned_of(planned):
    enough = {"initialize.after_init.words": 10_000}
    _, printed = planned(10, enough)
    assert "⚠" not in printed
    _, printed = planned(10, {**enough, "training.eval_frequency": 5000})
    assert "eval_frequency is 5000, and the last step 600: only the untrained" in printed
    _, printed = planned(10, {**enough, "training.optimizer.learn_rate.warmup_steps": 600})
    assert "warmup_steps is 600, and the training has 600 steps" in printed
    _, printed = planned(10, {**enough, "training.optimizer.learn_rate.total_steps": 500})
    assert "⚠" not in printed  # the training has as many steps
    schedule = {"training.optimizer.learn_rate.total_steps": 500, "training.max_steps": 600}
    _, printed = planned(10, {**enough, **schedule})
    assert "total_steps of the learning rate is 500, and the training has 600 steps" in printed
    _, printed = planned(10, {**enough, **schedule, "training.eval_frequency": 5000})
    assert "total_steps of" in printed and "eval_frequency is 5000" in printed  # all is set
    schedule |= {"training.optimizer.learn_rate.total_steps": 2000}
    _, printed = planned(10, {**enough, **schedule})
    assert (
        "is 2000, and the training has 600 steps: it ends while the rate is still high" in printed
    )
    assert "⚠" not in planned(10, {**enough, **schedule, "training.max_steps": 1700})[1]
    _, printed = planned(10, {**enough, **schedule, "training.max_steps": 1500})
    assert "it ends while the rate is still high" in printed
    _, printed = planned(10, {**enough, "training.eval_frequency": 5000, "training.patience": 900})
    assert "patience is" not in printed  # the training is shorter
    _, printed = planned(10, {**enough, "training.patience": 74})
    assert "patience is 74, and eval_frequency 75: the training ends at step 74, before" in printed
    assert "⚠" not in planned(10, {**enough, "training.patience": 75})[1]
    _, printed = planned(1, {"initialize.after_init.words": 100}, n_words=5000)
    assert "3 steps teach little; smaller batches make more." in printed
    _, printed = planned(10, {**enough, "training.max_steps": 5})
    assert "5 steps teach little; set max_steps higher." in printed
    for name in ("max_steps", "eval_frequency"):
        with pytest.raises(ConfigError, match=f"{name} is -1; it must be at least 0"):
            planned(10, {f"training.{name}": -1})


def test_settings_may_be_variables(planned):
    changes = {"initialize.after_init.words": 150}
    variable = "${initialize.after_init.words}"
    training, _ = planned(10, {**changes, "training.max_steps": variable})
    assert chosen(training) == (variable, 150, 15, 15)
    training, _ = planned(10, {**changes, "training.max_epochs": variable})
    assert chosen(training)[1:3] == (450, 45) and training["max_epochs"] == variable
    warmup = {"training.optimizer.learn_rate.warmup_steps": variable, "training.max_steps": 120}
    _, printed = planned(10, {**changes, **warmup})
    assert "warmup_steps is 150, and the training has 120 steps" in printed


def test_epochs_that_are_set_decide(planned):
    training, printed = planned(10, {"training.max_epochs": 2})
    assert chosen(training) == (0, 6, 1, 1)
    assert training["max_epochs"] == 2
    assert "max_epochs is 2" in printed


def test_epochs_that_end_sooner_than_max_steps_decide(planned):
    training, printed = planned(10, {"training.max_epochs": 2, "training.max_steps": 1000})
    assert training["optimizer"]["learn_rate"]["total_steps"] == 6
    assert "max_epochs is 2" in printed
    training, _ = planned(10, {"training.max_epochs": 50, "training.max_steps": 20})
    assert training["optimizer"]["learn_rate"]["total_steps"] == 20


@pytest.mark.parametrize("last", [*range(1, 40), 100, 801, 2001, 4001, 9973])
def test_the_last_evaluation_is_near_the_end(last):
    every = frequency(last, 8)
    assert every >= 1 and last % every <= max(2, last // 100)
    assert 4 <= last // every <= 17 or last < 16


def test_a_corpus_that_cannot_be_read_names_the_plan(planned, tmp_path):
    nlp = spacy.blank("en")
    nlp.config["corpora"]["train"]["path"] = str(tmp_path / "absent.spacy")
    nlp.config["training"]["max_steps"] = 0
    with pytest.raises(ConfigError, match="plan_training: the training corpus .* to null"):
        make_plan_training()(nlp)


def test_a_constant_rate_needs_no_schedule(planned):
    training, _ = planned(10, {"training.optimizer.learn_rate": 0.001})
    assert (training["max_steps"], training["eval_frequency"]) == (64, 8)


def test_a_streamed_corpus_needs_max_steps(planned):
    with pytest.raises(ConfigError, match="streamed.*Set max_steps"):
        planned(10, {"training.max_epochs": -1})
    training, _ = planned(10, {"training.max_epochs": -1, "training.max_steps": 40})
    assert chosen(training) == (40, 40, 4, 5)


def test_a_corpus_without_words_is_an_error(planned):
    with pytest.raises(CorpusError, match="no words"):
        planned(3, n_words=0)


def test_the_plan_is_what_training_reads(planned):
    training, _ = planned(10)
    settings = registry.resolve(training, schema=ConfigSchemaTraining)
    assert settings["max_steps"] == 64
    rates = []
    for _ in range(65):
        settings["optimizer"].step_schedules()
        rates.append(settings["optimizer"].learn_rate)
    assert max(rates) == pytest.approx(0.001) and rates.index(max(rates)) in (5, 6)
    assert rates[-1] == 0.0 and rates[-3] > 0.0


@pytest.mark.parametrize(
    "settings,message",
    [
        ({"words": 0, "epochs": 0}, "words is 0 and epochs is 0"),
        ({"words": -1}, "words is -1"),
        ({"warmup": 1.5}, "warmup is 1.5"),
        ({"evaluations": 0}, "evaluations is 0"),
    ],
)
def test_settings_that_cannot_work(settings, message):
    with pytest.raises(ConfigError, match=message):
        make_plan_training(**settings)
