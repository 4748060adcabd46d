"""Rows on data sets: choose settings on dev with the first seed, then train the other seeds.

Finished runs are found in the results file and skipped when started again.
"""

import argparse
import dataclasses
import gc
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from spacy.language import Language
from thinc.api import Config

from . import results, runtime
from .datasets import default_folder
from .training import EpochSettings, RunSettings, fit

S = TypeVar("S", bound=RunSettings)


def parser(
    module: str, doc: str | None, work: str, data_sets: Sequence[str], rows: Sequence[str]
) -> argparse.ArgumentParser:
    """The options of every command that trains. work: the folder for files, by default."""
    p = runtime.parser(module, doc, work, "results.jsonl")
    runtime.add_encoder(p)
    runtime.add_device(p)
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--data-sets", nargs="+", choices=data_sets, default=list(data_sets))
    p.add_argument("--rows", nargs="+", choices=rows, default=list(rows))
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    p.add_argument("--learn-rate", nargs="+", type=float, default=[2e-4, 1e-4, 3e-4])
    p.add_argument("--limit", type=int, default=0, help="documents of each file; 0: all")
    p.add_argument("--mixed-precision", action="store_true", help="bf16")
    p.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "JSON"))
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

    def __init__(self, args: argparse.Namespace, data: str, row: str):
        self.args, self.data, self.row = args, data, row

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
        for done in results.of_kind(self.args.results, self.kind):
            if results.run_key(done) == results.run_key(record):
                return done
        before = time.monotonic()
        record.update(self.measure(settings, seed, save))
        record["run_seconds"] = time.monotonic() - before
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


Maker = Callable[[argparse.Namespace, str, str], Experiment]


def run(make: Maker, args: argparse.Namespace) -> int:
    """Run every row on every data set; returns the command's exit status."""
    runtime.start(args.gpu_id, args.threads)
    for data in args.data_sets:
        for row in args.rows:
            make(args, data, row).run()
    return 0
