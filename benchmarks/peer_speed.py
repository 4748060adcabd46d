"""Our network and inputs beside those of ``transformers``, interleaved in one process.

    python -m benchmarks.peer_speed --size base --rounds 3 --memory --results peer.jsonl

Both read the same directory of random weights, which ``transformers`` made. Where both compute
the same function their answers are compared before anything is timed, and the benchmark stops if
they differ by more than ``TOLERANCE``. Every round runs each side once, in turning order; figures
are medians of the ratios within a round.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from . import results, runtime
from .datasets import default_folder
from .peer_cases import CASES, OURS, THEIRS, Bench
from .peer_data import SIZES

TOLERANCE = 1e-4
MEMORY_CASES = ("equal", "mixed")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("peer_speed", __doc__, "build/peer", "peer.jsonl")
    runtime.add_device(p)
    p.add_argument("--size", choices=list(SIZES), default="small")
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--vocab", type=Path, help="RoBERTa's vocab.json and merges.txt; else learned")
    p.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    p.add_argument("--sentences", type=int, default=16)
    p.add_argument("--words", type=int, default=20, help="of sentences of equal length")
    p.add_argument("--max-words", type=int, default=8, help="of the spans asked about")
    p.add_argument("--peer-batch", type=int, default=8, help="sequences they pad together")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--memory", action="store_true", help="also memory, a fresh process a side")
    p.add_argument("--memory-of", nargs=2, metavar=("CASE", "SIDE"), help=argparse.SUPPRESS)
    args = runtime.parsed(p, argv)
    beside = args.data / "roberta-vocab"
    args.vocab = args.vocab or (beside if beside.is_dir() else None)
    args.device = f"cuda:{args.gpu_id}" if args.gpu_id >= 0 else "cpu"
    args.checkpoint = args.work / args.size
    return args


def about(bench: Bench, case: str) -> dict[str, Any]:
    """What every record says of its circumstances."""
    args = bench.args
    return {
        "case": case,
        "data": bench.data,
        "size": args.size,
        "max_words": args.max_words,
        "peer_batch": args.peer_batch,
        "threads": args.threads,
        "device": runtime.device_name(args.gpu_id),
        "torch": torch.__version__,
        "transformers": version("transformers"),
    }


def measure(bench: Bench, case: str) -> None:
    """Compare, time, and append a record for each clock."""
    args = bench.args
    comparison = CASES[case](bench)
    found = comparison.difference
    if found is not None and not found <= TOLERANCE:
        raise SystemExit(f"{args.size} {case}: the two sides differ by {found:g}.")

    def timed(name: str) -> runtime.Clock:
        side = comparison.sides[name]
        made = side.prepare()
        with torch.inference_mode(not comparison.trains), runtime.Clock() as clock:
            side.run(made)
        return clock

    record = {
        "kind": "peer",
        **about(bench, case),
        "n_docs": len(comparison.docs),
        "n_words": sum(map(len, comparison.docs)),
        "n_spans": sum(map(len, comparison.spans)),
        "same_function": found is not None,
        "difference": found,
    }
    for seconds in runtime.interleave(
        list(comparison.sides), args.rounds, timed, args.gpu_id, comparison.warm_up
    ):
        results.append(args.results, {**record, **seconds})
    print(f"{args.size} {case}: done", flush=True)


def measure_memory(bench: Bench, case: str, side: str) -> float:
    """MiB by which one forward of ``--peer-batch`` sentences (of ``mixed`` lengths, the longest)
    raises the memory of a process that holds the model; meant for a process of its own."""
    docs, spans = bench.ask(case)
    order = sorted(range(len(docs)), key=lambda i: len(docs[i]))[-bench.args.peer_batch :]
    docs, spans = [docs[i] for i in order], [spans[i] for i in order]
    with torch.inference_mode():
        if side == OURS:
            packed = bench.ours.inputs(docs, spans)
            bench.ours.logits(bench.ours.inputs(docs[:1], [spans[0][:1]]))  # reads all weights
            before = reset_memory(bench.args.gpu_id)
            bench.ours.logits(packed)
        else:
            (padded,) = bench.peer.batches(docs, spans, len(docs))
            (short,) = bench.peer.batches(docs[:1], [spans[0][:1]], 1)
            bench.peer.logits(short)
            before = reset_memory(bench.args.gpu_id)
            bench.peer.logits(padded)
    return runtime.peak_memory(bench.args.gpu_id) - before


def reset_memory(gpu_id: int) -> float:
    """Forget the peak so far, where the system allows it; MiB in use now."""
    runtime.reset_peak(gpu_id)
    if gpu_id >= 0:
        return torch.cuda.memory_allocated() / 2**20
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the high-water mark starts again
    return runtime.resident()


def memory_record(bench: Bench, case: str, argv: Sequence[str]) -> dict[str, Any]:
    """Each side in a fresh process."""
    # Large tensors go back to the system when they are freed, so that use is seen as it is.
    environment = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    grown = {}
    for side in (OURS, THEIRS):
        options = [*argv, "--memory-of", case, side]
        grown[side] = [runtime.in_fresh_process("peer_speed", options, **environment)]
    return {"kind": "peer-memory", **about(bench, case), "grown_mib": grown}


def main(argv: Sequence[str] | None = None) -> int:
    argv = list(sys.argv[1:] if argv is None else argv)
    args = parse(argv)
    os.environ.setdefault("RAYON_NUM_THREADS", str(args.threads))  # of the Rust tokenizers
    runtime.start(args.gpu_id, args.threads)
    bench = Bench(args)
    if args.memory_of:
        print(json.dumps(measure_memory(bench, *args.memory_of)))
        return 0
    for case in args.cases:
        measure(bench, case)
    for case in MEMORY_CASES if args.memory else ():
        results.append(args.results, memory_record(bench, case, argv))
        print(f"{args.size} memory, {case}: done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
