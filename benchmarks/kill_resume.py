"""Kill preparation and pretraining at random moments, let them go on, and compare what comes out.

    python -m benchmarks.kill_resume --encoder DIR --dump project/corpus/encyclopedia.xml --kills 20

Each half is run once to its end. Then it is started again and again in another folder, killed (SIGKILL,
with all its workers) at moments drawn over the time that the whole took, and at last let finish.
Preparation has to give the same files, byte for byte; pretraining the same weights.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file

from . import results
from .markdown import table

_DUMP = Path("project/corpus/encyclopedia.xml")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m benchmarks.kill_resume", description=__doc__)
    p.add_argument("--encoder", default="project/assets/minilm", help="directory of the encoder")
    p.add_argument("--dump", type=Path, nargs="+", default=[_DUMP], help="exports")
    p.add_argument("--work", type=Path, default=Path("build/kill"), help="folder for files")
    p.add_argument("--results", type=Path, help="default: kill.jsonl in --work")
    p.add_argument("--kills", type=int, default=20, help="of each half")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--engine", default="local", choices=("local", "dask"))
    p.add_argument("--steps", type=int, default=24)
    p.add_argument("--seed", type=int, default=0, help="of the moments")
    args = p.parse_args(argv)
    args.results = args.results or args.work / "kill.jsonl"
    return args


def preparation(args: argparse.Namespace, folder: Path) -> list[list[str]]:
    """The commands of the first half."""
    engine = ["--engine", args.engine, "--workers", str(args.workers), "--no-progress"]
    shards = ["--entities", f"{folder}/entities", "--encoder", args.encoder, "--max-pieces", "128"]
    return [
        ["articles", *map(str, args.dump), "--out", f"{folder}/articles", *engine],
        ["entities", f"{folder}/articles", "--out", f"{folder}/entities", "--no-progress"],
        ["shards", f"{folder}/articles", "--out", f"{folder}/shards", *shards, *engine],
    ]


def pretraining(args: argparse.Namespace, prepared: Path, folder: Path) -> list[list[str]]:
    """The command of the second half."""
    half = str(args.steps // 2)
    command = ["pretrain", f"{prepared}/shards", "--entities", f"{prepared}/entities"]
    command += ["--encoder", args.encoder, "--out", str(folder), "--entity-steps", half]
    command += ["--steps", half, "--batch-size", "4", "--micro-batch", "4", "--warmup", "0.1"]
    return [[*command, "--save-every", "2", "--log-every", "1", "--evaluate-every", "1000"]]


def run(commands: list[list[str]], seconds: float | None = None) -> bool:
    """Run commands one after the other. seconds: kill them after that time, with their workers.
    Returns whether they came to their end."""
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
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {(error or b'').decode()[-2000:]}")
    return True


def killed(commands: list[list[str]], whole: float, kills: int, draw: random.Random) -> int:
    """Start, kill and start again, then let finish. Returns how many kills were in time."""
    done = 0
    for _ in range(kills):
        done += not run(commands, draw.uniform(0.0, whole))
    run(commands)
    return done


def files(folder: Path) -> dict[str, bytes]:
    """What preparation leaves, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    draw = random.Random(args.seed)
    rows = []
    for half in ("preparation", "pretraining"):
        folders = [args.work / half / name for name in ("whole", "killed")]
        prepared = args.work / "preparation" / "whole"
        whole, broken = (
            preparation(args, folder)
            if half == "preparation"
            else pretraining(args, prepared, folder)
            for folder in folders
        )
        start = time.monotonic()
        run(whole)
        seconds = time.monotonic() - start
        done = killed(broken, seconds, args.kills, draw)
        if half == "preparation":
            same = files(folders[0]) == files(folders[1])
        else:
            one, other = map(weights, folders)
            same = all(torch.equal(one[name], other[name]) for name in one)
        record = {"kind": "kill", "half": half, "kills": done, "same": same, "seconds": seconds}
        results.append(args.results, {**record, "engine": args.engine, "workers": args.workers})
        rows.append([half, args.engine, str(done), "identical" if same else "**different**"])
        print(table(["half", "engine", "killed", "outcome"], rows), flush=True)
    return 0 if all("identical" in row for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
