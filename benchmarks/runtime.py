"""What every benchmark sets up: registered names, device, threads, clocks and memory."""

import importlib
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

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
    "spacy_luke.pipeline.luke_entity_typing",
    "spacy_luke.corpora.preset",
    "benchmarks.baselines",
    "benchmarks.marker_baseline",
    "benchmarks.datasets",
    "benchmarks.task_rows",
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
    names: Sequence[str], rounds: int, measure: Callable[[str], Clock]
) -> dict[str, dict[str, list[float]]]:
    """Clock (``process``, ``wall``) -> name -> seconds of each round: warm up, then measure every
    name once a round, starting with another one each time."""
    seconds: dict[str, dict[str, list[float]]] = {
        clock: {name: [] for name in names} for clock in ("process", "wall")
    }
    for name in names:
        measure(name)
    for i in range(rounds):
        turn = i % len(names)
        for name in [*names[turn:], *names[:turn]]:
            clock = measure(name)
            seconds["process"][name].append(clock.process)
            seconds["wall"][name].append(clock.wall)
    return seconds


def reset_peak(gpu_id: int) -> None:
    if gpu_id >= 0:
        torch.cuda.reset_peak_memory_stats()


def resident() -> float:
    """MiB of the process that are in memory now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


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
