"""Kill preparation and pretraining at random moments, let them go on, and compare what comes out.

    python -m benchmarks.kill_resume --encoder DIR --dump project/corpus/encyclopedia.xml --kills 20

Each half is run once to its end. Then it is started again and again in another folder, killed
(SIGKILL; its main process alone and, every other time, all its workers too) at moments drawn over
the time that the whole took, and at last let finish; where it comes to its end before there were
enough kills, it begins anew. Preparation has to give the same files, byte for byte; pretraining the
same weights. With --copies every dump is read that many times, as parts of one large wiki, so that
a kill finds some parts finished, some under way and some waiting.
"""

import argparse
import bz2
import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from . import results, runtime
from .markdown import table

HALVES = ("preparation", "pretraining")
_DUMP = Path("project/corpus/encyclopedia.xml")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = runtime.parser("kill_resume", __doc__, "build/kill", "kill.jsonl")
    runtime.add_encoder(p)
    p.add_argument("--dump", type=Path, nargs="+", default=[_DUMP], help="exports")
    p.add_argument("--copies", type=int, default=4, help="of every dump")
    p.add_argument("--language", default="", help="of the dumps, where they do not say one")
    p.add_argument("--kills", type=int, default=20, help="of each half")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--engine", default="local", choices=("local", "dask"))
    p.add_argument("--steps", type=int, default=24)
    p.add_argument("--halves", nargs="+", choices=HALVES, default=list(HALVES))
    p.add_argument("--seed", type=int, default=0, help="of the moments")
    return runtime.parsed(p, argv)


def preparation(args: argparse.Namespace, folder: Path) -> list[list[str]]:
    """The commands of the first half."""
    engine = ["--engine", args.engine, "--workers", str(args.workers), "--no-progress"]
    language = ["--lang", args.language] if args.language else []
    shards = ["--entities", f"{folder}/entities", "--encoder", args.encoder, "--max-pieces", "128"]
    return [
        ["articles", *map(str, args.dump), *language, "--output", f"{folder}/articles", *engine],
        ["entities", f"{folder}/articles", "--output", f"{folder}/entities", "--no-progress"],
        ["shards", f"{folder}/articles", "--output", f"{folder}/shards", *shards, *engine],
    ]


def pretraining(args: argparse.Namespace, prepared: Path, folder: Path) -> list[list[str]]:
    """The command of the second half."""
    half = str(args.steps // 2)
    command = ["pretrain", f"{prepared}/shards", "--entities", f"{prepared}/entities"]
    command += ["--encoder", args.encoder, "--output", str(folder), "--entity-steps", half]
    command += ["--steps", half, "--batch-size", "4", "--micro-batch", "4", "--warmup", "0.1"]
    return [[*command, "--save-every", "2", "--log-every", "1", "--evaluate-every", "1000"]]


def repeated(dumps: Sequence[Path], copies: int, folder: Path) -> list[Path]:
    """The dumps, each as often as copies says. The titles of a copy have its number, because pages
    of one title count once."""
    if copies == 1:
        return list(dumps)
    folder.mkdir(parents=True, exist_ok=True)
    kinds: dict[str, Any] = {".bz2": bz2, ".gz": gzip}
    parts = []
    for source in dumps:
        kind = kinds.get(source.suffix)
        data = source.read_bytes()
        xml = kind.decompress(data) if kind else data
        for number in range(copies):
            part = folder / f"{number}-{source.name}"
            end = f" {number}</title>" if number else "</title>"
            copy = xml.replace(b"</title>", end.encode())
            part.write_bytes(kind.compress(copy) if kind else copy)
            parts.append(part)
    return parts


def run(commands: list[list[str]], seconds: float | None = None, workers: bool = True) -> str:
    """Run commands one after the other. seconds: kill them after that time, and with them their
    workers. Returns the command that was killed; empty where all came to their end."""
    end = None if seconds is None else time.monotonic() + seconds
    for command in commands:
        process = subprocess.Popen(
            [sys.executable, "-m", "spacy", "luke", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if end is None else subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # a group of its own, which is killed as a whole
        )
        try:
            _, error = process.communicate(
                timeout=None if end is None else max(end - time.monotonic(), 0.0)
            )
        except subprocess.TimeoutExpired:
            if workers:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
            return command[0]
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {(error or b'').decode()[-2000:]}")
    return ""


def killed(
    commands: list[list[str]],
    folder: Path,
    result: Path,
    same: Callable[[], bool],
    kills: int,
    seconds: float,
    draw: random.Random,
) -> tuple[Counter[str], int, bool]:
    """Start, kill and start again; where the work was done before enough kills, compare it and
    begin anew. Only kills of unfinished work count.

    Returns what the kills hit (the command, and how much it had finished), how often the work was
    done, and whether that was the same every time.
    """
    hits: Counter[str] = Counter()
    n_done, all_same = 0, True
    while hits.total() < kills:
        workers = hits.total() % 2 == 1
        command = run(commands, draw.uniform(0.0, seconds), workers)
        if command and not result.exists():
            who = "all processes" if workers else "main process"
            hit = f"{command}, {len(finished(folder))} finished, {who}"
            hits[hit] += 1
            print(f"kill {hits.total()} of {kills}: {hit}", file=sys.stderr, flush=True)
            continue
        run(commands)
        n_done, all_same = n_done + 1, all_same and same()
        shutil.rmtree(folder)
    run(commands)
    return hits, n_done + 1, all_same and same()


def finished(folder: Path) -> list[Path]:
    """Partitions and checkpoints that are kept."""
    return [path for name in ("part", "state") for path in folder.rglob(f"{name}.json")]


def files(folder: Path) -> dict[str, bytes]:
    """What preparation leaves, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def same_weights(one: Path, other: Path) -> bool:
    a, b = (load_file(x / "model" / "model.safetensors") for x in (one, other))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    args.dump = repeated(args.dump, args.copies, args.work / "dumps")
    draw = random.Random(args.seed)
    rows = []
    for half in args.halves:
        whole, broken = (args.work / half / name for name in ("whole", "killed"))
        for folder in (whole, broken):
            shutil.rmtree(folder, ignore_errors=True)
        if half == "preparation":
            commands = [preparation(args, x) for x in (whole, broken)]
            result = broken / "shards" / "manifest.json"
            same = partial(lambda a, b: files(a) == files(b), whole, broken)
        else:
            prepared = args.work / "preparation" / "whole"
            commands = [pretraining(args, prepared, x) for x in (whole, broken)]
            result = broken / "model" / "model.safetensors"
            same = partial(same_weights, whole, broken)
        start = time.monotonic()
        run(commands[0])
        seconds = time.monotonic() - start
        hits, n_done, is_same = killed(commands[1], broken, result, same, args.kills, seconds, draw)
        record = {"kind": "kill", "half": half, "kills": hits.total(), "same": is_same}
        record |= {"hits": dict(sorted(hits.items())), "done": n_done, "seconds": seconds}
        record |= {"parts": len(args.dump), "engine": args.engine, "workers": args.workers}
        results.append(args.results, record)
        outcome = "identical" if is_same else "**different**"
        hit = "; ".join(f"{name}: {n}" for name, n in sorted(hits.items()))
        rows.append([half, args.engine, str(hits.total()), hit, str(n_done), outcome])
        header = ["half", "engine", "kills", "what they hit", "times done", "outcome"]
        print(table(header, rows), flush=True)
    return 0 if all("identical" in row for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
