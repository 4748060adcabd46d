"""Rows on data sets: choose settings on dev with the first seed, then train the other seeds.

Finished runs are found in the results file and skipped when started again.
"""

import argparse
import dataclasses
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from spacy.language import Language
from thinc.api import Config

from . import results, runtime
from .datasets import default_folder
from .training import EpochSettings, RunSettings, fit

CHILD = "SPACY_LUKE_BENCHMARK_CHILD"
S = TypeVar("S", bound=RunSettings)


class BudgetSpent(Exception):
    """Another run would not end within ``--budget``."""


def parser(
    module: str, doc: str | None, work: str, data_sets: Sequence[str], rows: Sequence[str]
) -> argparse.ArgumentParser:
    """The options of every command that trains. work: the folder for files, by default."""
    p = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=doc)
    default_encoder = os.environ.get("SPACY_LUKE_ENCODER", "project/assets/minilm")
    p.add_argument("--encoder", default=default_encoder, help="directory of the encoder")
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--work", type=Path, default=Path(work), help="folder for files")
    p.add_argument("--results", type=Path, help="default: results.jsonl in --work")
    p.add_argument("--data-sets", nargs="+", choices=data_sets, default=list(data_sets))
    p.add_argument("--rows", nargs="+", choices=rows, default=list(rows))
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    p.add_argument("--learn-rate", nargs="+", type=float, default=[2e-4, 1e-4, 3e-4])
    p.add_argument("--limit", type=int, default=0, help="documents of each file; 0: all")
    p.add_argument("--mixed-precision", action="store_true", help="bf16")
    p.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "JSON"))
    p.add_argument("--gpu-id", type=int, default=-1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--jobs", type=int, default=1, help="rows and data sets at once")
    p.add_argument("--budget", type=float, default=0, help="seconds; no run starts beyond")
    p.add_argument("--save", action="store_true", help="keep the last seed's pipelines in --work")
    return p


def add_epochs(p: argparse.ArgumentParser, batch_size: int = 0) -> None:
    """batch_size: the default; 0 where the data set says it."""
    p.add_argument("--epochs", type=int, default=0, help="default: as the data set says")
    p.add_argument("--batch-size", type=int, default=batch_size, help="documents")


def common(args: argparse.Namespace) -> dict[str, Any]:
    """The settings that every run has, by name."""
    overrides = {name: json.loads(value) for name, value in args.set}
    names = ("limit", "mixed_precision", "encoder")
    return {**{name: getattr(args, name) for name in names}, "overrides": overrides}


class Experiment(Generic[S]):
    """One row on one data set. A subclass says what is tried, trained and scored.

    kind: of its records, which have scores under ``dev`` and ``test``, ``f`` among them.
    """

    kind: ClassVar[str] = "run"

    def __init__(self, args: argparse.Namespace, data: str, row: str, started: float):
        self.args, self.data, self.row, self.started = args, data, row, started
        runs = [x for x in results.read([args.results]) if x["kind"] == self.kind]
        same = [x["run_seconds"] for x in runs if (x["data"], x["row"]) == (data, row)]
        self.slowest = max(same, default=0.0)

    # What a subclass says

    def settings(self) -> S:
        """All settings but the rate."""
        raise NotImplementedError

    def others(self, best: S) -> list[S]:
        """What else is tried at the best rate."""
        return []

    def measure(self, settings: S, seed: int, save: bool) -> results.Record:
        """Train and score: what goes into the record beside its identity."""
        raise NotImplementedError

    def say(self, record: results.Record) -> str:
        return f"dev {record['dev']['f']:.2f} test {record['test']['f']:.2f}"

    # Runs

    def run(self) -> None:
        args = self.args
        tried = [dataclasses.replace(self.settings(), learn_rate=x) for x in args.learn_rate]
        best = tried[0]
        if len(tried) > 1:
            best = self._best(tried)
            others = self.others(best)
            if others:
                best = self._best([best, *others])
        for seed in args.seeds:
            self.train(best, seed, save=args.save and seed == args.seeds[-1])

    def _best(self, tried: list[S]) -> S:
        """The settings with the best dev F1 of the first seed."""
        scores = [self.train(settings, self.args.seeds[0])["dev"]["f"] for settings in tried]
        return tried[scores.index(max(scores))]

    def train(self, settings: S, seed: int, save: bool = False) -> results.Record:
        """The record of a run: read from the results where it is there."""
        record: results.Record = {
            "kind": self.kind,
            "data": self.data,
            "row": self.row,
            "seed": seed,
            "settings": settings.record(),
        }
        for done in results.read([self.args.results]):
            if done["kind"] == self.kind and results.run_key(done) == results.run_key(record):
                return done
        spent = time.monotonic() - self.started
        if self.args.budget and spent + 1.1 * self.slowest > self.args.budget:
            raise BudgetSpent
        before = time.monotonic()
        record.update(self.measure(settings, seed, save))
        record["run_seconds"] = time.monotonic() - before
        self.slowest = max(self.slowest, record["run_seconds"])
        gc.collect()  # pipelines are circular, and the next one should not share the memory
        results.append(self.args.results, record)
        print(
            f"{self.data} {self.row} seed {seed} rate {settings.learn_rate}: {self.say(record)}, "
            f"{record['train_seconds']:.0f} s",
            flush=True,
        )
        return record

    def device(self) -> results.Record:
        """What a record says of the machine's part in its seconds."""
        return {
            "device": runtime.device_name(self.args.gpu_id),
            "jobs": self.args.jobs,
            "threads": self.args.threads,
        }


E = TypeVar("E", bound=EpochSettings)


class ComponentExperiment(Experiment[E]):
    """One component, trained by epochs and scored on dev and test.

    A subclass also sets ``corpora``, and ``test``, its documents.
    """

    corpora: Any
    test: Sequence[Any]

    def config(self, settings: E, seed: int) -> Config:
        raise NotImplementedError

    def predict(self, nlp: Language, part: str) -> Any:
        """What the pipeline says of ``dev`` or ``test``, for :meth:`evaluate`."""
        raise NotImplementedError

    def evaluate(self, dev: Any, test: Any) -> results.Record:
        raise NotImplementedError

    def inspect(self, nlp: Language, found: results.Record) -> results.Record:
        """What else the record says of the trained pipeline."""
        return {}

    def measure(self, settings: E, seed: int, save: bool) -> results.Record:
        gpu = self.args.gpu_id
        nlp, trained = fit(self.config(settings, seed), gpu)
        runtime.reset_peak(gpu)
        dev = self.predict(nlp, "dev")
        with runtime.Clock() as predicting:
            test = self.predict(nlp, "test")
        found = {
            **self.evaluate(dev, test),
            **trained,
            "steps": settings.steps(self.corpora.n_train),
            "predict_seconds": predicting.wall,
            "predict_cpu_seconds": predicting.process,
            "n_words": sum(len(doc) for doc in self.test),
            "predict_peak_mib": runtime.peak_memory(gpu),
            **self.device(),
        }
        found.update(self.inspect(nlp, found))
        if save:
            folder = self.args.work / "models" / f"{self.data}.{self.row}"
            folder.parent.mkdir(parents=True, exist_ok=True)
            nlp.to_disk(folder)
        return found


Maker = Callable[[argparse.Namespace, str, str, float], Experiment]


def run_here(make: Maker, args: argparse.Namespace, started: float) -> bool:
    """Run everything in this process. Returns False where the budget ended it."""
    runtime.start(args.gpu_id, args.threads)
    for data in args.data_sets:
        for row in args.rows:
            try:
                make(args, data, row, started).run()
            except BudgetSpent:
                print(f"{data} {row}: the budget is spent; start again to go on.", flush=True)
                return False
    return True


def run_jobs(
    module: str, args: argparse.Namespace, argv: Sequence[str], order: Sequence[str]
) -> bool:
    """One process a row and data set, ``--jobs`` at once, in the order of the rows given."""
    pairs = [(data, row) for row in order if row in args.rows for data in args.data_sets]
    begun = time.monotonic()

    def start(pair: tuple[str, str]) -> int:
        command = [sys.executable, "-m", f"benchmarks.{module}", *argv]
        command += ["--data-sets", pair[0], "--rows", pair[1]]
        if args.budget:
            left = args.budget - (time.monotonic() - begun)
            if left <= 0:
                print(f"{pair[0]} {pair[1]}: the budget is spent.", flush=True)
                return 1
            command += ["--budget", str(left)]
        environment = {**os.environ, CHILD: "1"}
        return subprocess.run(command, env=environment, check=False).returncode

    with ThreadPoolExecutor(args.jobs) as pool:
        return not any(pool.map(start, pairs))


def run(
    make: Maker, module: str, args: argparse.Namespace, argv: Sequence[str], order: Sequence[str]
) -> int:
    """Run a command's experiments; returns its exit status. order: slow rows first."""
    started = time.monotonic()
    if args.jobs > 1 and CHILD not in os.environ:
        return 0 if run_jobs(module, args, argv, order) else 1
    return 0 if run_here(make, args, started) else 1
