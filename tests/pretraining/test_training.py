"""Training: what decides it, what it learns, and that it goes on where it was."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing.connection import wait
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import ConfigError
from spacy_luke.pretraining import training
from spacy_luke.pretraining.pretrain import LOG, read_log
from spacy_luke.pretraining.settings import Masking
from tests.pretraining.run_training import run, start, start_two
from tests.pretraining.world import make_world

SCRIPT = Path(__file__).with_name("run_training.py")
ROOT = Path(__file__).parents[2]


class Interrupted(Exception):
    pass


def stop_at(step: int):
    def hook(record):
        if record["kind"] == "step" and record["step"] == step:
            raise Interrupted

    return hook


def weights(folder: Path) -> dict[str, torch.Tensor]:
    last = sorted((folder / "checkpoints").glob("checkpoint-*"))[-1]
    return load_file(last / "model.safetensors")


def steps(folder: Path) -> list[dict]:
    return [x for x in read_log(folder / LOG) if x["kind"] == "step"]


def differences(a: dict, b: dict) -> float:
    assert a.keys() == b.keys()
    return max(float((a[k] - b[k]).abs().max()) for k in a)


# What decides a training


def test_neither_micro_batches_nor_their_number_change_the_step(world, bert_dir, tmp_path):
    for name, size in (("one", 8), ("many", 3)):
        run(world, bert_dir, tmp_path / name, {"micro_batch": size, "dropout": 0.0})
    assert differences(weights(tmp_path / "one"), weights(tmp_path / "many")) < 1e-5
    pairs = zip(steps(tmp_path / "one"), steps(tmp_path / "many"))
    assert all(abs(a["entity_loss"] - b["entity_loss"]) < 1e-4 for a, b in pairs)


def test_speed_does_not_count_saving_and_evaluation(world, bert_dir, tmp_path, monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(training.time, "perf_counter", lambda: float(next(ticks)))
    values = {"phases": [(6, 1e-3, False)], "log_every": 3, "peak": 0.5}
    run(world, bert_dir, tmp_path / "rarely", {**values, "save_every": 6, "evaluate_every": 6})
    run(world, bert_dir, tmp_path / "often", {**values, "save_every": 1, "evaluate_every": 1})
    rarely, often = (steps(tmp_path / x) for x in ("rarely", "often"))
    assert [x["pieces_per_second"] for x in rarely] == [x["pieces_per_second"] for x in often]
    assert len(rarely) == 2 and rarely[0]["pieces_per_second"] > 0
    assert rarely[0]["tflops"] > 0
    # Both are rounded for the log, each on its own.
    assert rarely[0]["share_of_peak"] == pytest.approx(rarely[0]["tflops"] / 0.5, rel=1e-4)


def test_every_step_is_in_the_log(world, bert_dir, tmp_path):
    values = {"phases": [(2, 1e-3, True), (4, 1e-3, False)], "log_every": 3}
    run(world, bert_dir, tmp_path, values)
    assert [(x["step"], x["phase"]) for x in steps(tmp_path)] == [(2, 0), (3, 1), (6, 1)]


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_training_that_goes_on_ends_where_it_would_have(world, bert_dir, tmp_path, stop):
    values = {"phases": [(3, 1e-2, True), (3, 1e-3, False)], "evaluate_every": 2}
    run(world, bert_dir, tmp_path / "whole", values)
    with pytest.raises(Interrupted):
        run(world, bert_dir, tmp_path / "again", values, hooks=(stop_at(stop),))
    run(world, bert_dir, tmp_path / "again", values)
    assert differences(weights(tmp_path / "whole"), weights(tmp_path / "again")) == 0.0

    def told(name):
        records = read_log(tmp_path / name / LOG)
        timed = ("pieces_per_second", "tflops")
        return [{k: v for k, v in x.items() if k not in timed} for x in records]

    assert told("again") == told("whole")


def test_a_record_also_counts_the_steps_before_an_interruption(world, bert_dir, tmp_path):
    values = {"phases": [(6, 1e-3, False)], "log_every": 3, "save_every": 2}
    run(world, bert_dir, tmp_path / "whole", values)
    with pytest.raises(Interrupted):
        run(world, bert_dir, tmp_path / "again", values, hooks=(stop_at(6),))
    shutil.rmtree(tmp_path / "again" / "checkpoints" / "checkpoint-000000006", ignore_errors=True)
    assert (tmp_path / "again" / "checkpoints" / "checkpoint-000000004").exists()
    run(world, bert_dir, tmp_path / "again", values)
    whole, again = (steps(tmp_path / x)[-1] for x in ("whole", "again"))
    names = ("step", "word_loss", "entity_loss", "word_accuracy", "entity_accuracy")
    assert [whole[x] for x in names] == [again[x] for x in names]


def exit_codes_of_two(*args, **more) -> list[int | None]:
    processes = start_two(*args, **more)
    wait([x.sentinel for x in processes], timeout=300)  # if one fails, the other may wait for it
    for process in processes:
        process.join(timeout=60)
        process.kill()
        process.join()
    return [x.exitcode for x in processes]


def train_on_two(world: Path, encoder: Path, folder: Path, values: dict) -> None:
    assert exit_codes_of_two(world, encoder, folder, values) == [0, 0]


def train_by_torchrun(world: Path, encoder: Path, folder: Path, values: dict) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [*launch, str(SCRIPT), str(world), str(encoder), str(folder), json.dumps(values)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, told = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # also what it has launched
        told = f"it hung: {process.communicate()[1]}"
    assert process.returncode == 0, told[-3000:]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"sharded": True},
        {"sharded": True, "batch_size": 5},  # 3 and 2 sequences, in two passes each
        {
            "sharded": True,
            "attention": "probe",
            "entity_aware": False,
            "gradient_checkpointing": True,
            "clip": 0.1,
        },
    ],
)
def test_two_processes_train_like_one(world, bert_dir, tmp_path, how):
    values = {"dropout": 0.0, "phases": [[2, 1e-2, True], [2, 1e-3, False]], "micro_batch": 2}
    values |= how
    run(world, bert_dir, tmp_path / "one", {**values, "sharded": False})
    train = train_by_torchrun if how == {"sharded": True} else train_on_two
    train(world, bert_dir, tmp_path / "two", values)
    for one, two in zip(steps(tmp_path / "one"), steps(tmp_path / "two"), strict=True):
        for name in ("word_loss", "entity_loss", "word_accuracy", "entity_accuracy"):
            assert abs(one[name] - two[name]) < 1e-4
    assert differences(weights(tmp_path / "one"), weights(tmp_path / "two")) < 1e-4
    one, two = (load_file(tmp_path / x / "model" / "model.safetensors") for x in ("one", "two"))
    assert differences(one, two) < 1e-4


@pytest.mark.parametrize("sharded", [False, True])
def test_processes_whose_passes_have_no_entity_train_along(bert_dir, tmp_path, sharded):
    """Queries of their own for entities have gradients then too: zero."""
    make_world(tmp_path, bert_dir, linked=4)
    start = read_checkpoint(bert_dir, entity_aware=True)
    values = {"dropout": 0.0, "phases": [[4, 1e-3, False]], "batch_size": 2, "micro_batch": 1}
    run(tmp_path, bert_dir, tmp_path / "one", values, checkpoint=start)
    values |= {"sharded": sharded, "entity_aware": True}
    train_on_two(tmp_path, bert_dir, tmp_path / "two", values)
    assert differences(weights(tmp_path / "one"), weights(tmp_path / "two")) < 1e-4


def test_a_sharded_training_goes_on_from_any_other(world, bert_dir, tmp_path):
    """And another from its checkpoint: what is written does not know how many wrote it."""
    values = {"dropout": 0.0, "phases": [[6, 1e-3, False]]}
    run(world, bert_dir, tmp_path / "whole", values)
    with pytest.raises(Interrupted):
        run(world, bert_dir, tmp_path / "mixed", values, hooks=(stop_at(3),))
    parts = tmp_path / "mixed" / "checkpoints"
    train_on_two(world, bert_dir, tmp_path / "mixed", {**values, "sharded": True})
    shutil.rmtree(parts / "checkpoint-000000006")
    (tmp_path / "mixed" / "manifest.json").unlink()
    assert [x.name for x in parts.iterdir()] == ["checkpoint-000000004"]  # a sharded one
    run(world, bert_dir, tmp_path / "mixed", values)
    assert differences(weights(tmp_path / "whole"), weights(tmp_path / "mixed")) < 1e-4
    shutil.rmtree(parts)
    train_on_two(world, bert_dir, tmp_path / "mixed", {**values, "sharded": True})
    assert not parts.exists()  # what is finished is not done again by several, either


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"batch_size": 12}, "batch_size = 12, the main process 8"),
        ({"phases": [[6, 1e-3, False]]}, "phases.0.steps = 6, the main process 4"),
        ({"save_every": 1}, "save_every = 1, the main process 2"),
    ],
)
def test_processes_with_other_settings_are_refused(world, bert_dir, tmp_path, changes, message):
    out, values = tmp_path / "out", {"phases": [[4, 1e-3, False]]}
    other = (world, bert_dir, out, values | changes)
    assert exit_codes_of_two(world, bert_dir, out, values, second=other) == [1, 1]
    for rank in (0, 1):
        assert message in (tmp_path / f"error-{rank}.txt").read_text()
    assert not out.exists()


def test_processes_with_other_shards_are_refused(world, bert_dir, tmp_path):
    make_world(tmp_path / "other", bert_dir, n=60)
    values = {"phases": [[4, 1e-3, False]]}
    args = [(x, bert_dir, tmp_path / "out", values) for x in (world, tmp_path / "other")]
    assert exit_codes_of_two(*args[0], second=args[1]) == [1, 1]
    assert "Process 1 has shards = " in (tmp_path / "error-0.txt").read_text()


def test_processes_that_resume_from_other_steps_are_refused(world, bert_dir, tmp_path):
    """As those that do not share the folder would."""
    out, values = tmp_path / "out", {"phases": [[4, 1e-3, False]]}
    with pytest.raises(Interrupted):
        run(world, bert_dir, out, values, hooks=(stop_at(3),))
    other = (world, bert_dir, tmp_path / "elsewhere", values)
    assert exit_codes_of_two(world, bert_dir, out, values, second=other) == [1, 1]
    message = (tmp_path / "error-0.txt").read_text()
    assert "Process 1 has first step = 0, the main process 2. All processes" in message
    assert not (out / "manifest.json").exists()


def test_sharding_needs_processes(world, bert_dir, tmp_path):
    with pytest.raises(ConfigError, match="start it with torchrun"):
        run(world, bert_dir, tmp_path, {"sharded": True})


def killed_and_whole(world, encoder, folder, values, after) -> float:
    """Kill a training, each time a moment after it saved a given step, and let it go on; the
    largest difference of its weights from those of an uninterrupted one."""
    run(world, encoder, folder / "whole", values)
    for step, moment in after:
        process = start(world, encoder, folder / "killed", values)
        saved = folder / "killed" / "checkpoints" / f"checkpoint-{step:09d}" / "state.json"
        deadline = time.monotonic() + 120
        while not saved.exists() and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moment)
        assert process.is_alive()  # killed at work, not after it
        process.kill()
        process.join()
        assert not (folder / "killed" / "model").exists()
    run(world, encoder, folder / "killed", values)
    return differences(weights(folder / "whole"), weights(folder / "killed"))


def test_a_killed_training_ends_where_it_would_have(world, bert_dir, tmp_path):
    draw = random.Random(0)
    values = {"phases": [[60, 1e-3, False]], "save_every": 3, "keep": 99}
    after = [(step, draw.uniform(0.0, 0.3)) for step in (3, 15)]
    assert killed_and_whole(world, bert_dir, tmp_path, values, after) == 0.0


def test_only_entities_and_fresh_heads_are_trained_at_first(world, bert_dir, tmp_path):
    values = {"phases": [[2, 1e-2, True], [2, 1e-2, False]], "keep": 9, "save_every": 2}
    run(world, bert_dir, tmp_path, values)
    first, second = (
        load_file(tmp_path / "checkpoints" / f"checkpoint-{x:09d}" / "model.safetensors")
        for x in (2, 4)
    )
    changed = {name for name in first if not torch.equal(first[name], second[name])}
    encoder = [x for x in first if x.startswith(("luke.layers.", "luke.word_embeddings."))]
    assert set(encoder) - changed <= {"luke.word_embeddings.types.weight"} and encoder
    again = tmp_path / "entities only"
    run(world, bert_dir, again, {"phases": [[1, 1e-2, True]], "keep": 9})
    before = weights(again)
    assert all(torch.equal(first[x], before[x]) for x in encoder)


def test_masked_entities_are_learned(bert_dir, tmp_path):
    """Every article links to one name only, so what is hidden can be told from what is not."""
    make_world(tmp_path, bert_dir, n=80, faithful=True)
    values = {"phases": [(200, 1e-3, False)], "log_every": 20, "save_every": 200, "dropout": 0.0}
    values |= {"evaluate_every": 200, "batch_size": 16, "micro_batch": 16}
    masking = Masking(words=0.0, entities=0.5)
    run(tmp_path, bert_dir, tmp_path / "out", values | {"masking": masking})
    records = read_log(tmp_path / "out" / LOG)
    (baselines,) = (x for x in records if x["kind"] == "baselines")
    (last,) = (x for x in records if x["kind"] == "evaluation")
    assert baselines["anchor_top_1"] == 1.0 and baselines["frequent_top_1"] < 0.5
    assert baselines["targets"] >= 20 and baselines["seen"] == 1.0
    assert last["entity_top_1"] > 0.8 and last["entity_top_10"] == 1.0
    found = steps(tmp_path / "out")
    assert found[-1]["entity_loss"] < found[0]["entity_loss"] / 2


def test_bf16_goes_on_exactly_and_is_near_full_precision(world, bert_dir, tmp_path):
    values = {"phases": [[4, 1e-3, False]], "dropout": 0.0}
    run(world, bert_dir, tmp_path / "no", values)
    values["precision"] = "bf16"
    for name in ("whole", "again"):  # a process has one precision
        process = start(world, bert_dir, tmp_path / name, values)
        process.join()
        assert process.exitcode == 0
        if name == "whole":
            shutil.copytree(tmp_path / "whole", tmp_path / "again")
            shutil.rmtree(tmp_path / "again" / "checkpoints" / "checkpoint-000000004")
            (tmp_path / "again" / "manifest.json").unlink()
    whole, again, full = (weights(tmp_path / x) for x in ("whole", "again", "no"))
    assert differences(whole, again) == 0.0 < differences(whole, full) < 0.05
    assert {x.dtype for x in whole.values()} == {torch.float32}
