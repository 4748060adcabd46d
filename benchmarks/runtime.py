"""What every benchmark sets up: registered names, device, threads, clocks and memory."""

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import spacy
import torch
from thinc.api import set_gpu_allocator

# Imported for the names they register, so that a checkout works without being installed.
_REGISTERING = (
    "spacy_luke.layers.architectures",
    "spacy_luke.layers.span_scorer",
    "spacy_luke.inputs.suggester",
    "spacy_luke.layers.pair_scorer",
    "spacy_luke.layers.entity_scorer",
    "spacy_luke.inputs.pairs",
    "spacy_luke.pipeline.luke",
    "spacy_luke.pipeline.luke_ner",
    "spacy_luke.pipeline.luke_relation",
    "spacy_luke.layers.candidate_scorer",
    "spacy_luke.pipeline.luke_entity_typing",
    "spacy_luke.pipeline.luke_linker",
    "spacy_luke.layers.answer_scorer",
    "spacy_luke.pipeline.luke_qa",
    "spacy_luke.layers.cloze_scorer",
    "spacy_luke.pipeline.luke_cloze",
    "spacy_luke.metrics.cloze",
    "spacy_luke.pipeline.known_names",
    "spacy_luke.metrics.questions",
    "spacy_luke.corpora.questions",
    "spacy_luke.kb.registered",
    "spacy_luke.metrics.links",
    "spacy_luke.corpora.preset",
    "spacy_luke.corpora.contexts",
    "spacy_luke.corpora.case",
    "spacy_luke.corpora.joined",
    "spacy_luke.pipeline.training_plan",
    "spacy_luke.pipeline.tuned_saving",
    "spacy_luke.metrics.ner",
    "benchmarks.baselines",
    "benchmarks.marker_baseline",
    "benchmarks.datasets",
    "benchmarks.task_rows",
    "benchmarks.word_cloze",
)


def start(gpu_id: int, threads: int) -> None:
    """Register names and choose the device. gpu_id: -1 for the CPU."""
    torch.set_num_threads(threads)
    if gpu_id >= 0:
        spacy.require_gpu(gpu_id)
        set_gpu_allocator("pytorch")
    for name in _REGISTERING:
        importlib.import_module(name)


def device_name(gpu_id: int) -> str:
    return torch.cuda.get_device_name(gpu_id) if gpu_id >= 0 else f"CPU ({platform.machine()})"


def synchronize() -> None:
    """Wait for the GPU, so that a clock read next counts its work."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


class Clock:
    """Wall and process seconds of a ``with`` block, the GPU's work included in wall."""

    def __enter__(self) -> "Clock":
        synchronize()
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        synchronize()
        self.wall = time.perf_counter() - self._start[0]
        self.process = time.process_time() - self._start[1]


def interleave(
    names: Sequence[str],
    rounds: int,
    measure: Callable[[str], Clock],
    gpu_id: int,
    warm_up: bool = True,
) -> list[dict[str, Any]]:
    """Measure every name once a round, starting with another one each time, after a round that does
    not count. Of each clock (``process``, ``wall``), what a record says: seconds of each round by
    name, and whether it is the one that counts on this device."""
    names = list(names)
    seconds: dict[str, dict[str, list[float]]] = {
        clock: {name: [] for name in names} for clock in ("process", "wall")
    }
    for i in range(-1 if warm_up else 0, rounds):
        turn = i % len(names)
        for name in [*names[turn:], *names[:turn]]:
            clock = measure(name)
            if i >= 0:
                seconds["process"][name].append(clock.process)
                seconds["wall"][name].append(clock.wall)
    counts = "wall" if gpu_id >= 0 else "process"
    return [
        {"clock": clock, "gates": clock == counts, "rounds": rounds, "seconds": found}
        for clock, found in seconds.items()
    ]


def in_fresh_process(module: str, argv: Sequence[str], **environment: str) -> Any:
    """What a benchmark prints as JSON in its last line, run in a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *argv]
    done = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout.strip().split("\n")[-1])


def parser(module: str, doc: str | None, work: str, file: str) -> argparse.ArgumentParser:
    """The options of every command. work: the folder for files; file: of results in it."""
    p = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=doc)
    p.add_argument("--work", type=Path, default=Path(work), help="folder for files")
    p.add_argument("--results", type=Path, help=f"default: {file} in --work")
    p.set_defaults(results_name=file)
    return p


def add_device(p: argparse.ArgumentParser) -> None:
    p.add_argument("--gpu-id", type=int, default=-1)
    p.add_argument("--threads", type=int, default=1)


def add_encoder(p: argparse.ArgumentParser) -> None:
    default = os.environ.get("SPACY_LUKE_ENCODER", "project/assets/minilm")
    p.add_argument("--encoder", default=default, help="directory of the encoder")


def parsed(p: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    args = p.parse_args(argv)
    args.results = args.results or args.work / args.results_name
    return args


def reset_peak(gpu_id: int) -> None:
    if gpu_id >= 0:
        torch.cuda.reset_peak_memory_stats()


def resident() -> float:
    """MiB of the process that are in memory now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def resident_trimmed() -> float:
    """:func:`resident` after the allocator gave free memory back to the system, where it can."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    return resident()


def peak_memory(gpu_id: int) -> float:
    """MiB: on a GPU the most allocated since ``reset_peak``, on the CPU the high-water mark of
    the whole process."""
    if gpu_id >= 0:
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status")
    if status.exists():  # unlike getrusage, it does not start from the parent process's peak
        line = next(x for x in status.read_text().split("\n") if x.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
