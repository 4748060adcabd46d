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
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from safetensors.torch import load_file
from spacy.tokens import Span

from spacy_luke.checkpoint.names import is_extra_query, plain_query, to_published
from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import ConfigError, StageError
from spacy_luke.model.packing import Entities, LukeInputs, Words
from spacy_luke.pretraining import training
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.masking import Masking
from spacy_luke.pretraining.objective import PretrainingModel
from spacy_luke.pretraining.pretrain import LOG, fresh_heads, read_log
from spacy_luke.vocab.entities import SPECIALS, EntityVocab
from tests.pretraining.run_training import run
from tests.pretraining.world import make_world

SCRIPT = Path(__file__).with_name("run_training.py")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def world(bert_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    make_world(folder, bert_dir, n=80)
    return folder


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


def command(world: Path, encoder: Path, folder: Path, values: dict) -> list[str]:
    return [str(SCRIPT), str(world), str(encoder), str(folder), json.dumps(values)]


def environment() -> dict[str, str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def train_on_two(world: Path, encoder: Path, folder: Path, values: dict) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    result = subprocess.run(
        [*launch, *command(world, encoder, folder, values)],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]


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
    train_on_two(world, bert_dir, tmp_path / "two", values)
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


def test_sharding_needs_processes(world, bert_dir, tmp_path):
    with pytest.raises(ConfigError, match="start it with torchrun"):
        run(world, bert_dir, tmp_path, {"sharded": True})


def killed_and_whole(world, encoder, folder, values, after) -> float:
    """Kill a training, each time a moment after it saved a given step, and let it go on; the
    largest difference of its weights from those of an uninterrupted one."""
    run(world, encoder, folder / "whole", values)
    for step, moment in after:
        process = subprocess.Popen(
            [sys.executable, *command(world, encoder, folder / "killed", values)],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        saved = folder / "killed" / "checkpoints" / f"checkpoint-{step:09d}" / "state.json"
        deadline = time.monotonic() + 120
        while not saved.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moment)
        assert process.poll() is None  # killed at work, not after it
        process.send_signal(signal.SIGKILL)
        process.wait()
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


def test_a_luke_goes_on_with_its_heads_and_with_the_entities_it_knows(
    make_checkpoint, tmp_path, caplog
):
    spacy.util.logger.propagate = True
    encoder = make_checkpoint("luke", "LukeForMaskedLM")
    make_world(tmp_path, encoder)
    after = read_checkpoint(run(tmp_path, encoder, tmp_path / "out", {"phases": [(1, 0.0, False)]}))
    before = read_checkpoint(encoder)
    tables = [x.weights["entity_embeddings.entities.weight"] for x in (before, after)]
    known = [x for x in after.entities.names if x in before.entities.names]
    assert {"Paris", "[MASK]"} < set(known) and tables[1].shape == (10, 16)
    (told,) = (x for x in read_log(tmp_path / "out" / LOG) if x["kind"] == "start")
    kept = len(set(known) - set(SPECIALS))
    assert (told["entities"], told["entities_kept"]) == (6, kept) and kept
    assert "keeps a row" not in caplog.text
    names = {x if x in SPECIALS else f"de:{x}": i for x, i in before.entities.names.items()}
    german = replace(before, entities=EntityVocab(names))
    values = {"phases": [(1, 0.0, False)]}
    run(tmp_path, encoder, tmp_path / "other", values, checkpoint=german)
    assert "No entity of the vocabulary keeps a row" in caplog.text
    for name in set(known) - {"[PAD]"}:
        rows = [t[x.entities.names[name]] for t, x in zip(tables, (before, after))]
        assert torch.equal(*rows)
    assert after.others.keys() == before.others.keys()
    assert torch.equal(after.others["lm_head.bias"], before.others["lm_head.bias"])


def test_plain_attention_is_trained_and_what_follows_is_entity_aware(
    world, make_checkpoint, tmp_path, caplog
):
    """As published: the extra queries start as copies of ``query`` when fine-tuning begins."""
    spacy.util.logger.propagate = True
    encoder = make_checkpoint("luke", "LukeForMaskedLM")
    make_world(tmp_path, encoder)
    start = read_checkpoint(encoder, entity_aware=False)
    values = {"phases": [(2, 1e-2, False)]}
    after = read_checkpoint(run(tmp_path, encoder, tmp_path / "out", values, checkpoint=start))
    assert "start again as copies" in caplog.text
    assert after.config.use_entity_aware_attention and not after.source.filled
    published = to_published(after.weights)
    for name in filter(is_extra_query, published):
        assert torch.equal(published[name], published[plain_query(name)])
    query = "encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(published[query], to_published(start.weights)[query])


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_the_masked_word_head_of_a_plain_encoder_goes_on(make_checkpoint, kind):
    name = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}[kind]
    transformers = pytest.importorskip("transformers")
    directory = make_checkpoint(kind, f"{name}ForMaskedLM")
    theirs = getattr(transformers, f"{name}ForMaskedLM").from_pretrained(directory).eval()
    start = read_checkpoint(directory)
    assert not any(x.startswith("word_head") for x in fresh_heads(start))
    model = PretrainingModel.start(start, "full", 0).eval()
    ids = np.array([start.pieces.cls_id, 7, 9, 11, start.pieces.sep_id])
    nothing = np.zeros(0, dtype=np.int64)
    inputs = LukeInputs(
        Words(ids, np.array([0, 5])),
        Entities(nothing, nothing, nothing, np.zeros(2, dtype=np.int64)),
    )
    with torch.no_grad():
        words = model.luke(inputs).words
        ours = model.word_head(words, model.luke.word_embeddings.words.weight)
        expected = theirs(torch.from_numpy(ids)[None]).logits[0]
    assert (ours - expected).abs().max() < 1e-5


def test_bf16_goes_on_exactly_and_is_near_full_precision(world, bert_dir, tmp_path):
    values = {"phases": [[4, 1e-3, False]], "dropout": 0.0}
    run(world, bert_dir, tmp_path / "no", values)
    values["precision"] = "bf16"
    for name in ("whole", "again"):  # a process has one precision
        script = command(world, bert_dir, tmp_path / name, values)
        subprocess.run([sys.executable, *script], env=environment(), check=True)
        if name == "whole":
            shutil.copytree(tmp_path / "whole", tmp_path / "again")
            shutil.rmtree(tmp_path / "again" / "checkpoints" / "checkpoint-000000004")
            (tmp_path / "again" / "manifest.json").unlink()
    whole, again, full = (weights(tmp_path / x) for x in ("whole", "again", "no"))
    assert differences(whole, again) == 0.0 < differences(whole, full) < 0.05
    assert {x.dtype for x in whole.values()} == {torch.float32}


def test_the_manifest_says_what_a_model_was_made_from(world, bert_dir, tmp_path):
    model = run(world, bert_dir, tmp_path, {"seed": 3, "phases": [(4, 1e-3, False)]})
    manifest = read_manifest(tmp_path, "pretrain")
    assert manifest.settings["seed"] == 3 and manifest.settings["attention"] == "full"
    assert manifest.settings["phases"] == [{"steps": 4, "rate": 1e-3, "entities_only": False}]
    assert manifest.inputs["shards"] == read_manifest(world / "shards", "shards").fingerprint
    assert manifest.counts == {"steps": 4, "sequences": 32}
    assert manifest.paths("model.safetensors") == [model / "model.safetensors"]
    manifest.verify()


def test_what_is_finished_is_not_done_again(world, bert_dir, tmp_path):
    """Not even where its checkpoints have been removed to make room."""
    model = run(world, bert_dir, tmp_path, {})
    log, data = (tmp_path / LOG).read_bytes(), (model / "model.safetensors").read_bytes()
    shutil.rmtree(tmp_path / "checkpoints")
    assert run(world, bert_dir, tmp_path, {}) == model
    assert not (tmp_path / "checkpoints").exists() and (tmp_path / LOG).read_bytes() == log
    (model / "model.safetensors").unlink()
    with pytest.raises(StageError, match="model.safetensors is missing.*run 'pretrain'"):
        run(world, bert_dir, tmp_path, {})
    assert (tmp_path / LOG).read_bytes() == log
    (tmp_path / "manifest.json").unlink()
    run(world, bert_dir, tmp_path, {})
    assert (model / "model.safetensors").read_bytes() == data


def test_what_killed_runs_leave_beside_the_model_goes(world, bert_dir, tmp_path):
    run(world, bert_dir, tmp_path, {})
    before = {x.name for x in tmp_path.iterdir()}
    (tmp_path / ".model" / "model").mkdir(parents=True)
    (tmp_path / ".model" / ".model-abc").mkdir()
    (tmp_path / "model").rename(tmp_path / ".model" / "before")
    (tmp_path / "manifest.json").unlink()
    run(world, bert_dir, tmp_path, {})
    assert {x.name for x in tmp_path.iterdir()} == before
    read_manifest(tmp_path, "pretrain").verify()


def test_the_finished_model_starts_any_component(world, bert_dir, tmp_path):
    model = run(world, bert_dir, tmp_path / "out", {"phases": [(2, 1e-3, False)]})
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(model)}})
    nlp.initialize()
    doc = nlp("Paris is the capital of France.")
    doc.ents = [Span(doc, 0, 1, "LOC", kb_id="Paris")]
    assert np.isfinite(doc.ents[0]._.luke_vector).all()
    assert (tmp_path / "out" / "log.svg").read_text().startswith("<?xml")
