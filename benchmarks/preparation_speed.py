"""Speed and memory of preparing a dump, with one process and with several, in turns.

    python -m benchmarks.preparation_speed --dump FILES... --encoder DIR --workers 1 2

Wall time of the commands as a user runs them, start-up and hashing included; markup is that of the
dumps uncompressed. Memory is the peak of the largest process of a command. With --copies every dump
is read that many times, as parts of one large wiki: excerpts alone are read before a second process
has started.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import srsly

from . import results, runtime
from .kill_resume import preparation, repeated
from .markdown import markdown, median_range


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("preparation_speed", __doc__, "build/preparation", "preparation.jsonl")
    runtime.add_encoder(p)
    p.add_argument("--dump", type=Path, nargs="+", required=True, help="exports of one language")
    p.add_argument("--copies", type=int, default=1, help="of every dump")
    p.add_argument("--language", default="", help="of the dumps, where they do not say one")
    p.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    p.add_argument("--engine", default="local", choices=("local", "dask"))
    p.add_argument("--rounds", type=int, default=3)
    return runtime.parsed(p, argv)


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds and MiB of a command."""
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "spacy", "luke", *command],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    _, status, usage = os.wait4(process.pid, 0)  # its own memory, or that of its largest worker
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed.")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def megabytes(folder: Path) -> dict[str, float]:
    """What the stages read: markup, and text."""
    counts = srsly.read_json(folder / "articles" / "manifest.json")["counts"]
    return {
        "articles": counts["characters of markup"] / 1e6,
        "shards": counts["characters"] / 1e6,
    }


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    parts = repeated(args.dump, args.copies, args.work / "dumps")
    measured: dict[tuple[str, int], list[tuple[float, float]]] = {}
    read: dict[str, float] = {}
    for number in range(args.rounds):
        for workers in args.workers[:: 1 if number % 2 == 0 else -1]:
            folder = args.work / f"workers-{workers}"
            shutil.rmtree(folder, ignore_errors=True)
            settings = argparse.Namespace(**{**vars(args), "workers": workers, "dump": parts})
            for command in preparation(settings, folder):
                measured.setdefault((command[0], workers), []).append(timed(command))
            read = megabytes(folder)
    rows = []
    for (stage, workers), found in measured.items():
        seconds, peaks = (pd.Series(values) for values in zip(*found))
        first = pd.Series([x for x, _ in measured[stage, args.workers[0]]])
        record = {"kind": "preparation", "stage": stage, "engine": args.engine, "workers": workers}
        record |= {"dumps": [x.name for x in args.dump], "copies": args.copies}
        record |= {"seconds": seconds.tolist(), "peak_mib": peaks.tolist()}
        results.append(args.results, {**record, "characters": read.get(stage, 0.0) * 1e6})
        rows.append(
            {
                "stage": stage,
                "processes": workers,
                "seconds": median_range(seconds),
                "M characters/s": f"{read[stage] / seconds.median():.2f}" if stage in read else "-",
                "speed-up": median_range(first / seconds),
                "peak MiB": round(peaks.max()),
            }
        )
    print(markdown(pd.DataFrame(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
