"""What a first GPU has to prove, in one call that is meant to take less than ten minutes.

    python -m benchmarks.gpu_acceptance                    # on a GPU
    python -m benchmarks.gpu_acceptance --tiny --emulate   # a rehearsal without one

Each check prints a line, and is in ``acceptance.json`` in ``--work``. A check that fails does not
stop the others; the exit status is then 1. ``--tiny``: small networks and few steps. ``--emulate``:
the device of ``tests/gpu/emulation``; what only a GPU can show is left out.
"""

import sys

if __name__ == "__main__" and "--emulate" in sys.argv:  # before torch is imported
    from tests.gpu.emulation import install

    install()

import argparse
import json
import logging
import os
import shutil
import subprocess
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from thinc.api import Adam

from spacy_luke.checkpoint.read import read_checkpoint

from . import gpu_checks, runtime
from .gpu_checks import CASES, DEVICE, ROOT, Bench, Case, copies

PEAK = 989.0
"""1e12 operations per second of an H100 or H200 in bf16, by its maker."""


def memory(bench: Bench) -> Any:
    """The same batches again and again take no more memory."""
    if not bench.real:
        return "on a GPU only"
    _, pipe, batch = bench.initialized(CASES[0], mixed_precision=True)
    optimizer, seen = Adam(1e-5), []
    for i in range(60):
        pipe.update(batch, sgd=optimizer, drop=0.1)
        docs = copies(batch)
        pipe.set_annotations(docs, pipe.predict(docs))
        if i in (19, 39, 59):
            torch.cuda.synchronize()
            seen.append(torch.cuda.memory_allocated() // 2**20)
    assert seen[2] <= seen[0] + 8, seen
    return {"MiB": seen, "peak MiB": torch.cuda.max_memory_allocated() // 2**20}


def profile(bench: Bench) -> Any:
    """Kernels, waits and the share of time that the GPU is at work, for 32 sentences."""
    if not bench.real:
        return "on a GPU only"
    return {
        f"{case.name}{' bf16' if half else ''}": _profile(bench, case, half)
        for case in CASES
        for half in (False, True)
    }


def _profile(bench: Bench, case: Case, half: bool) -> dict[str, Any]:
    _, pipe, batch = bench.initialized(case, mixed_precision=half)
    docs, optimizer = copies(batch), Adam(1e-5)
    seconds = _seconds(lambda: pipe.predict(docs))
    learning = _seconds(lambda: pipe.update(batch, sgd=optimizer, drop=0.1))
    with _waits() as waits:
        pipe.predict(docs)
    with torch.profiler.profile() as trace:
        pipe.predict(docs)
        torch.cuda.synchronize()
    kernels = [e for e in trace.events() if str(e.device_type).endswith("CUDA")]
    busy = sum(e.self_device_time_total for e in kernels) / 1e6
    ways = ("flash", "cutlassF", "efficient", "cudnn")
    return {
        "ms": round(1e3 * seconds, 2),
        "train ms": round(1e3 * learning, 2),
        "kernels": len(kernels),
        "waits": len(waits),
        "busy": round(busy / seconds, 3),
        "attention": dict(Counter(way for e in kernels for way in ways if way in e.name)),
    }


def _seconds(run: Callable[[], Any]) -> float:
    """Of one call, the mean of ten after three."""
    for _ in range(3):
        run()
    with runtime.Clock() as clock:
        for _ in range(10):
            run()
    return clock.wall / 10


@contextmanager
def _waits() -> Iterator[list]:
    """The warnings of a block about calls that wait for the GPU."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")


def pretraining(bench: Bench) -> dict[str, Any]:
    """A step in bf16, as of RoBERTa base with 500,000 entities: operations per second."""
    from spacy_luke.pretraining.masking import Masking, Sample, Vocabularies, mask_batch
    from spacy_luke.pretraining.objective import PretrainingModel
    from spacy_luke.pretraining.operations import operations
    from spacy_luke.pretraining.optimizer import UncorrectedAdamW, parameter_groups

    config = read_checkpoint(bench.checkpoint()).config
    config = replace(config, use_entity_aware_attention=False)
    if bench.tiny:
        config, n, many = replace(config, entity_vocab_size=30), 60, 4
    else:
        sizes: dict[str, Any] = {
            "vocab_size": 50_265,
            "entity_vocab_size": 500_000,
            "entity_emb_size": 256,
        }
        config, n, many = replace(config, **sizes), 510, 32
    rng = np.random.default_rng(0)

    def sample(i: int) -> Sample:
        at = np.sort(rng.choice(n - 4, 20, replace=False))
        ids = rng.integers(0, config.vocab_size, n)
        entities = rng.integers(1, config.entity_vocab_size, 20)
        return Sample(0, i, ids, np.arange(0, n, 2), entities, at, at + 3)

    ids = Vocabularies(0, 1, 2, config.vocab_size, 0, -1)
    batches = [mask_batch([sample(i) for i in range(many)], Masking(), ids, k) for k in range(3)]
    found = {}
    modes: list[tuple[Any, bool]] = [("full", False), ("full", True), ("probe", False)]
    for mode, again in modes:
        model = PretrainingModel(config, mode).to(DEVICE).train()
        model.luke.set_dropout(0.1)
        model.luke.gradient_checkpointing = again
        optimizer = UncorrectedAdamW(parameter_groups(model.named_parameters(), 0.01), lr=1e-5)
        if bench.real:
            torch.cuda.reset_peak_memory_stats()
        spent = []
        for k in range(2 if bench.tiny else 8):
            with runtime.Clock() as clock:
                with torch.autocast("cuda", torch.bfloat16):
                    outcome = model(batches[k % 3])
                loss = (outcome.word_loss + outcome.entity_loss) / 100
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                assert np.isfinite(loss.item())
            spent.append(clock.wall)
        rate = operations(model, batches[0]) / min(spent) / 1e12
        found[f"{mode}{' checkpointing' if again else ''}"] = {
            "ms": round(1e3 * min(spent), 1),
            "tflops": round(rate, 1),
            "share of peak": round(rate / PEAK, 3),
            "peak GiB": round(torch.cuda.max_memory_allocated() / 2**30, 1),
        }
        del model, optimizer
    return found


TWO_ON_ONE = """
import os, runpy, sys
import torch.distributed as dist
dist.init_process_group("gloo")  # NCCL refuses two processes on one GPU
os.environ["LOCAL_RANK"] = "0"
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def processes(bench: Bench) -> Any:
    """Pretraining in one process, by torchrun with one (NCCL) and with two on this GPU (gloo): the
    same losses. torch ends by a segmentation fault where weights on a GPU are sharded through gloo
    (pytorch/pytorch issue 132471), so two processes with shards need two GPUs."""
    if not bench.real:
        return "on a GPU only"
    from tests.pretraining.world import make_world

    small = Bench(argparse.Namespace(tiny=True, emulate=False, work=bench.work)).checkpoint()
    world = bench.work / "world"
    make_world(world, small)
    run = str(ROOT / "tests" / "pretraining" / "run_training.py")
    script = bench.work / "two_on_one.py"
    script.write_text(TWO_ON_ONE, encoding="utf8")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    one, two = ([*launch, f"--nproc-per-node={n}"] for n in (1, 2))
    ways: dict[str, list[str]] = {
        "one": [sys.executable, run],
        "nccl": [*one, run],
        "nccl sharded": [*one, run],
        "gloo two": [*two, str(script), run],
    }
    losses: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    for name, command in ways.items():
        folder = bench.work / name.replace(" ", "-")
        values = {"dropout": 0.0, "phases": [[2, 1e-2, True], [3, 1e-3, False]], "micro_batch": 2}
        values |= {"sharded": "sharded" in name}
        try:
            _run([*command, str(world), str(small), str(folder), json.dumps(values)])
        except AssertionError as error:
            errors[name] = str(error)
            continue
        log = map(json.loads, (folder / "log.jsonl").open(encoding="utf8"))
        losses[name] = [round(x["word_loss"], 4) for x in log if x["kind"] == "step"]
    equal = all(np.allclose(losses["one"], x, atol=1e-3) for x in losses.values())
    assert equal and not errors, (losses, errors)
    return losses


def pipelines(bench: Bench) -> Any:
    """Every component in every mode, and every shipped config: trained on the GPU, saved, loaded
    on the CPU and back. What ``tests/gpu/test_emulated.py`` runs, with how far answers differ."""
    if not bench.real:
        return "on a GPU only"
    from tests.gpu.emulated import make_checkpoints

    folder = bench.work / "pipelines"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    make_checkpoints(folder)
    printed = _run([sys.executable, "-m", "tests.gpu.run_cases", "--real", str(folder)], 300)
    lines = [line for line in printed.splitlines() if line.startswith('{"case"')]
    records = {record.pop("case"): record for record in map(json.loads, lines)}
    found = {name: record.get("found") for name, record in records.items()}
    errors = {name: record["error"][:1500] for name, record in records.items() if "error" in record}
    assert records and not errors, (errors, found)
    return found


def peer(bench: Bench) -> str:
    """Beside transformers' LUKE, by the benchmark for it."""
    if not bench.real:
        return "on a GPU only"
    options = {"--size": "base", "--gpu-id": "0", "--rounds": "3", "--sentences": "32"}
    options |= {"--work": str(bench.work / "peer"), "--results": str(bench.work / "peer.jsonl")}
    command = [sys.executable, "-m", "benchmarks.peer_speed"]
    return _run([*command, *(x for pair in options.items() for x in pair)])[-2500:]


def _run(command: list[str], seconds: int = 150) -> str:
    """What a command printed. Raises AssertionError with the end of its errors if it failed."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert result.returncode == 0, result.stderr[-1500:]
    return result.stdout


_CHECKS: list[Callable[[Bench], Any]] = [
    gpu_checks.environment,
    gpu_checks.parity,
    gpu_checks.predictions,
    gpu_checks.training,
    gpu_checks.threads,
    memory,
    profile,
    pretraining,
    processes,
    pipelines,
    peer,
]
CHECKS = {check.__name__: check for check in _CHECKS}


def main(argv: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser("benchmarks.gpu_acceptance", description=__doc__)
    p.formatter_class = argparse.RawDescriptionHelpFormatter
    p.add_argument("--work", type=Path, default=Path("build/gpu-acceptance"))
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--emulate", action="store_true")
    p.add_argument("--only", nargs="*", choices=list(CHECKS), default=list(CHECKS))
    args = p.parse_args(argv)
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    logging.getLogger("spacy").setLevel(logging.ERROR)
    torch.manual_seed(0)
    runtime.start(0, torch.get_num_threads())
    bench, results = Bench(args), {}
    for name in args.only:
        since = time.perf_counter()
        try:
            found, state = CHECKS[name](bench), "ok"
        except Exception as error:
            traceback.print_exc()
            found, state = repr(error)[:6000], "FAILED"
        seconds = round(time.perf_counter() - since, 1)
        results[name] = {"state": state, "seconds": seconds, "found": found}
        print(f"{state:6s} {name} {seconds} s: {found}", flush=True)
        text = json.dumps(results, indent=1, default=str)
        (args.work / "acceptance.json").write_text(text, encoding="utf8")
    return int(any(x["state"] != "ok" for x in results.values()))


if __name__ == "__main__":
    sys.exit(main())
