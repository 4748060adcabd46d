"""What a training cannot work with is refused, and what goes wrong leaves what was there."""

import math
import shutil
from dataclasses import replace

import pytest
import spacy
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from spacy_luke.checkpoint import write
from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import CheckpointError, ConfigError, StageError, TrainingError
from spacy_luke.pretraining import checkpoints, training
from spacy_luke.pretraining.pretrain import LOG, read_log
from spacy_luke.pretraining.settings import Masking, ModelSettings, Phase, TrainingSettings
from spacy_luke.pretraining.stage_lock import lock
from tests.pretraining.articles import article
from tests.pretraining.run_training import run
from tests.pretraining.world import make_world


def test_a_checkpoint_that_was_being_removed_goes_with_the_next(tmp_path, monkeypatch):
    """Half of one would never go: of what has no state nobody knows."""

    def save(step: int) -> None:
        tensors = {"x": torch.ones(3)}
        checkpoints.save_checkpoint(tmp_path, step, [], tensors, {}, {}, keep=1)

    save(1)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed_after_the_state)
        with pytest.raises(KeyboardInterrupt):
            save(2)
    assert checkpoints.load_latest(tmp_path, {}).step == 2
    save(3)
    assert [x.name for x in tmp_path.iterdir()] == ["checkpoint-000000003"]


def killed_after_the_state(folder, ignore_errors=False):
    if (folder / "state.json").exists():
        (folder / "state.json").unlink()
        raise KeyboardInterrupt


def test_what_cannot_be_gone_on_from_is_refused(world, bert_dir, tmp_path):
    run(world, bert_dir, tmp_path, {})
    with pytest.raises(ConfigError, match=r"settings.seed = 0, this run has 1"):
        run(world, bert_dir, tmp_path, {"seed": 1})
    with pytest.raises(ConfigError, match=r"settings.phases.0.steps = 4, this run has 5"):
        run(world, bert_dir, tmp_path, {"phases": [(5, 1e-3, False)]})
    with pytest.raises(ConfigError, match=r"settings.evaluate_sequences = 2000, .* has 9"):
        run(world, bert_dir, tmp_path, {}, evaluate_sequences=9)
    two = {"phases": [(2, 1e-3, True), (2, 1e-3, False)]}
    run(world, bert_dir, tmp_path / "two", two)
    with pytest.raises(ConfigError, match=r"phases.1.steps = 2, this run has None"):
        run(world, bert_dir, tmp_path / "two", {"phases": two["phases"][:1]})
    shutil.rmtree(tmp_path / "two" / "checkpoints")
    with pytest.raises(ConfigError, match=r"settings.seed = 0, this run has 7"):
        run(world, bert_dir, tmp_path / "two", {**two, "seed": 7})
    start = read_checkpoint(bert_dir)
    weights = {name: x + 1 for name, x in start.weights.items()}
    with pytest.raises(ConfigError, match=r"was started with start = "):
        run(world, bert_dir, tmp_path, {}, checkpoint=replace(start, weights=weights))
    make_world(tmp_path / "other", bert_dir, n=40)
    with pytest.raises(ConfigError, match=r"was started with shards = "):
        run(tmp_path / "other", bert_dir, tmp_path, {})
    last = sorted((tmp_path / "checkpoints").glob("checkpoint-*"))[-1]
    data = (last / "model.safetensors").read_bytes()
    (last / "model.safetensors").write_bytes(data[:-10])
    with pytest.raises(CheckpointError, match="model.safetensors is damaged"):
        run(world, bert_dir, tmp_path, {})
    (last / "state.json").write_text('{"identity": {}, "step": 2}', "utf8")
    with pytest.raises(CheckpointError, match="state.json is damaged: it has no sha256. Remove"):
        run(world, bert_dir, tmp_path, {})
    (last / "state.json").write_bytes(b"")
    with pytest.raises(StageError, match="state.json is damaged"):
        run(world, bert_dir, tmp_path, {})


@pytest.mark.parametrize("name", ["model/thesis.txt", "log.jsonl", "log.svg"])
def test_a_folder_of_something_else_is_refused_and_kept(world, bert_dir, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine", encoding="utf8")
    with pytest.raises(ConfigError, match="is not empty and was not made by"):
        run(world, bert_dir, tmp_path, {})
    assert (tmp_path / name).read_text("utf8") == "mine"
    with pytest.raises(ConfigError, match=r"stage = 'shards', this run has 'pretrain'"):
        run(world, bert_dir, world / "shards", {})


def test_shards_of_another_tokenizer_are_refused(world, roberta_dir, tmp_path):
    with pytest.raises(ConfigError, match="made with another tokenizer than that of"):
        run(world, roberta_dir, tmp_path, {})


@pytest.mark.parametrize(
    "error", [OSError("[Errno 28] No space left"), RuntimeError("unexpected pos")]
)
def test_a_full_disk_leaves_the_checkpoint_before(world, bert_dir, tmp_path, monkeypatch, error):
    run(world, bert_dir, tmp_path, {"phases": [(2, 1e-3, False)]})
    before = sorted(x.name for x in (tmp_path / "checkpoints").iterdir())
    (
        tmp_path / "checkpoints" / ".checkpoint-000000009.0a1b2c3d"
    ).mkdir()  # of a run that was killed

    def fail(*args):
        raise error

    monkeypatch.setattr(checkpoints.torch, "save", fail)
    with pytest.raises(StageError, match="checkpoint-000000003 cannot be written.*the disk full"):
        checkpoints.save_checkpoint(
            tmp_path / "checkpoints", 3, [], {"x": torch.ones(1)}, {}, {}, 2
        )
    assert sorted(x.name for x in (tmp_path / "checkpoints").iterdir()) == before


def test_two_trainings_in_a_folder_are_refused(world, bert_dir, tmp_path):
    with lock(tmp_path), pytest.raises(StageError, match="Another run is using"):
        run(world, bert_dir, tmp_path, {})


@pytest.mark.parametrize("unknown", [True, False])
def test_a_vocabulary_that_covers_nothing_is_told(bert_dir, tmp_path, caplog, unknown):
    spacy.util.logger.propagate = True
    make_world(tmp_path / "covered", bert_dir)
    run(tmp_path / "covered", bert_dir, tmp_path / "out", {})
    assert "no entity is trained" not in caplog.text
    other = [article(i, f"P{i}", "Far from Mars", [("Mars", f"P{i - 1}")]) for i in range(20)]
    make_world(tmp_path / "other", bert_dir, vocabulary_of=(other, []))
    values = {"masking": Masking(unknown=unknown)}
    model = run(tmp_path / "other", bert_dir, tmp_path / "model", values)
    assert "other/shards has no link to an entity of the vocabulary" in caplog.text
    found = [x for x in read_log(tmp_path / "model" / LOG) if x["kind"] in ("step", "evaluation")]
    assert found and all("word_loss" in x and "entity_loss" not in x for x in found)
    assert all(x.isfinite().all() for x in load_file(model / "model.safetensors").values())


def test_a_damaged_shard_is_named(bert_dir, tmp_path):
    _, _, shards = make_world(tmp_path, bert_dir)
    path = shards.paths("train.parquet")[1]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(StageError, match="part-00001/train.parquet is damaged"):
        run(tmp_path, bert_dir, tmp_path / "out", {})


def test_sequences_have_to_fit_the_encoder(bert_dir, tmp_path):
    make_world(tmp_path, bert_dir, max_pieces=500)
    with pytest.raises(ConfigError, match="Make shards with --max-pieces 130"):
        run(tmp_path, bert_dir, tmp_path / "out", {})


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ConfigError, match="at least one phase"):
        TrainingSettings(phases=())
    with pytest.raises(ConfigError, match="precision is 'fp8'"):
        TrainingSettings(phases=(Phase(1, 0.1),), precision="fp8")
    with pytest.raises(ConfigError, match="batch_size is 0"):
        TrainingSettings(phases=(Phase(1, 0.1),), batch_size=0)
    for name, value in (("peak", math.nan), ("clip", -1.0), ("decay", -0.1)):
        with pytest.raises(ConfigError, match=f"^{name} is {value}"):
            TrainingSettings(phases=(Phase(1, 0.1),), **{name: value})
    with pytest.raises(ConfigError, match="there is nothing to predict"):
        Masking(words=0.0, entities=0.0)
    with pytest.raises(ConfigError, match="A phase has -1 steps"):
        Phase(-1, 0.1)
    for name, value in (("dropout", 1.0), ("attention_dropout", -0.1), ("seed", -1)):
        with pytest.raises(ConfigError, match=f"^{name} is {value}"):
            TrainingSettings(phases=(Phase(1, 0.1),), **{name: value})
    for warmup in (-1, math.inf, math.nan):
        with pytest.raises(ConfigError, match=f"warmup is {warmup}"):
            TrainingSettings(phases=(Phase(1, 0.1),), warmup=warmup)
    with pytest.raises(ConfigError, match="rate of a phase is nan"):
        Phase(1, math.nan)
    with pytest.raises(ConfigError, match="entity_size is -3"):
        ModelSettings(entity_size=-3)


def test_a_warm_up_longer_than_its_phase_is_told(world, bert_dir, tmp_path, caplog):
    spacy.util.logger.propagate = True
    run(world, bert_dir, tmp_path, {"phases": [(2, 1e-3, False)], "warmup": 8})
    assert "8 steps is longer than a phase of 2: its rate reaches 0.00025 instead" in caplog.text


def test_words_that_attend_to_no_entity_do_not_train_queries_for_them(world, bert_dir, tmp_path):
    with pytest.raises(ConfigError, match="is entity-aware. In probe attention"):
        run(world, bert_dir, tmp_path, {"attention": "probe", "entity_aware": True})


def kept(folder):
    """Steps of the checkpoints; all that they hold is finite."""
    found = sorted(folder.glob("checkpoints/checkpoint-*"))
    for path in found:
        assert all(x.isfinite().all() for x in load_file(path / "model.safetensors").values())
    return [int(path.name.removeprefix("checkpoint-")) for path in found]


def test_a_loss_that_is_no_number_stops_the_training(world, bert_dir, tmp_path):
    values = {"phases": [(2, 1e-3, True), (4, 1e30, False)], "warmup": 0, "log_every": 10}
    message = "The loss of step 4 is not finite.*the checkpoint of step 3"
    with pytest.raises(TrainingError, match=message):
        run(world, bert_dir, tmp_path, {**values, "save_every": 1, "keep": 9})
    assert kept(tmp_path) == [1, 2, 3]


def test_weights_that_are_no_numbers_are_not_saved(world, bert_dir, tmp_path, monkeypatch):
    class Broken(training.UncorrectedAdamW):
        def step(self, closure=None):
            super().step(closure)
            if self.param_groups[0]["n_steps"] == 3:
                self.param_groups[0]["params"][0].data.fill_(math.nan)

    monkeypatch.setattr(training, "UncorrectedAdamW", Broken)
    message = "After step 3 weights are not finite.*the checkpoint of step 2"
    with pytest.raises(TrainingError, match=message):
        run(world, bert_dir, tmp_path, {"save_every": 1, "keep": 9})
    assert kept(tmp_path) == [1, 2]


def test_a_model_that_cannot_be_written_leaves_the_one_before(
    world, bert_dir, tmp_path, monkeypatch
):
    model = run(world, bert_dir, tmp_path, {})
    before = (model / "model.safetensors").read_bytes()
    (tmp_path / "manifest.json").unlink()  # killed right before it was finished

    def fail(*args):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(write, "save_file", fail)
    with pytest.raises(CheckpointError, match="cannot be written: .* Is the disk full"):
        run(world, bert_dir, tmp_path, {})
    assert (model / "model.safetensors").read_bytes() == before
