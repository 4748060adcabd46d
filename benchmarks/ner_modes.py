"""F1 of the NER modes and of two baselines on the same encoder, data, steps and seeds.

    python -m benchmarks.ner_modes --encoder DIR --data-sets wnut17 --results results.jsonl

For every row the first seed is trained at each learning rate of the grid, the rate with the
best dev F1 is kept, and the other seeds are trained with it. The last weights count. The bias of
"no entity" is chosen on dev for every run. Finished runs are skipped when started again.
"""

import argparse
import dataclasses
import gc
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import results, runtime
from .datasets import DATA_SETS, Corpora, default_folder, prepare
from .rows import COMPONENT, ROWS, Settings, changed, make_config
from .scoring import Scored, choose_bias, gold_entities, prf, score_docs

# What two-stage may ask about at prediction, beside what it was trained with.
AT_INFERENCE: dict[str, dict[str, float]] = {
    **{f"k = {k:g} x words": {"candidates_per_word": k} for k in (0.5, 2.0)},
    **{f"threshold {t:g}": {"filter_threshold": t} for t in (0.003, 0.01, 0.03)},
}
NEGATIVE_WEIGHTS = (0.5,)  # tried for stock spancat beside its default of 1.0


class BudgetSpent(Exception):
    """Another run would not end within ``--budget``."""


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m benchmarks.ner_modes", description=__doc__)
    default_encoder = os.environ.get("SPACY_LUKE_ENCODER", "project/assets/minilm")
    p.add_argument("--encoder", default=default_encoder, help="directory of the encoder")
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the corpora")
    p.add_argument("--work", type=Path, default=Path("build/ner"), help="folder for files")
    p.add_argument("--results", type=Path, help="default: results.jsonl in --work")
    p.add_argument("--data-sets", nargs="+", choices=list(DATA_SETS), default=list(DATA_SETS))
    p.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    p.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    p.add_argument("--learn-rate", nargs="+", type=float, default=[2e-4, 1e-4, 3e-4])
    p.add_argument("--epochs", type=int, default=0, help="default: as the data set says")
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--max-words", type=int, default=8, help="longest candidate span")
    p.add_argument("--n-sents", type=int, default=1, help="sentences joined into a document")
    p.add_argument("--limit", type=int, default=0, help="documents of each file; 0: all")
    p.add_argument("--mixed-precision", action="store_true", help="bf16")
    p.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "JSON"))
    p.add_argument("--gpu-id", type=int, default=-1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--jobs", type=int, default=1, help="rows and data sets at once")
    p.add_argument("--budget", type=float, default=0, help="seconds; no run starts beyond")
    p.add_argument("--save", action="store_true", help="keep the last seed's pipelines in --work")
    args = p.parse_args(argv)
    args.results = args.results or args.work / "results.jsonl"
    return args


class Experiment:
    """One row on one data set: choose the settings on dev, then train every seed."""

    def __init__(self, args: argparse.Namespace, data: str, row: str, started: float):
        self.args, self.data, self.row, self.started = args, data, row, started
        self.corpora: Corpora = prepare(data, args.data, args.work, args.n_sents, args.limit)
        self.dev, self.test = self.corpora.docs("dev"), self.corpora.docs("test")
        runs = [x for x in results.read([args.results]) if x["kind"] == "run"]
        same = [x["run_seconds"] for x in runs if (x["data"], x["row"]) == (data, row)]
        self.slowest = max(same, default=0.0)
        docs = [*self.corpora.docs("train"), *self.dev, *self.test]
        self.labels = sorted({span.label_ for doc in docs for span in doc.ents})

    def run(self) -> None:
        args, seeds = self.args, self.args.seeds
        base = Settings(
            epochs=args.epochs or DATA_SETS[self.data].epochs,
            batch_size=args.batch_size,
            max_words=args.max_words,
            n_sents=args.n_sents,
            limit=args.limit,
            mixed_precision=args.mixed_precision,
            encoder=args.encoder,
            negative_weight=1.0 if self.row == "spancat" else None,
            overrides={name: json.loads(value) for name, value in args.set},
        )
        tried = [dataclasses.replace(base, learn_rate=rate) for rate in args.learn_rate]
        best = tried[0]
        if len(tried) > 1:
            best = self._best(tried)
            if self.row == "spancat":
                more = [dataclasses.replace(best, negative_weight=w) for w in NEGATIVE_WEIGHTS]
                best = self._best([best, *more])
        for seed in seeds:
            self.train(best, seed, save=args.save and seed == seeds[-1])

    def _best(self, tried: list[Settings]) -> Settings:
        """The settings with the best dev F1 of the first seed."""
        scores = [self.train(settings, self.args.seeds[0])["dev"]["f"] for settings in tried]
        return tried[scores.index(max(scores))]

    def train(self, settings: Settings, seed: int, save: bool = False) -> results.Record:
        """The record of a run: read from the results where it is there."""
        record: results.Record = {
            "kind": "run",
            "data": self.data,
            "row": self.row,
            "seed": seed,
            "settings": settings.record(),
        }
        for done in results.read([self.args.results]):
            if done["kind"] == "run" and results.run_key(done) == results.run_key(record):
                return done
        spent = time.monotonic() - self.started
        if self.args.budget and spent + 1.1 * self.slowest > self.args.budget:
            raise BudgetSpent
        before = time.monotonic()
        record.update(self._train(settings, seed, save))
        record["run_seconds"] = time.monotonic() - before
        self.slowest = max(self.slowest, record["run_seconds"])
        gc.collect()  # pipelines are circular, and the next one should not share the memory
        results.append(self.args.results, record)
        print(
            f"{self.data} {self.row} seed {seed} rate {settings.learn_rate}: dev "
            f"{record['dev']['f']:.2f} test {record['test']['f']:.2f} (without bias "
            f"{record['test_raw']['f']:.2f}), {record['train_seconds']:.0f} s",
            flush=True,
        )
        return record

    def _train(self, settings: Settings, seed: int, save: bool) -> dict[str, Any]:
        from spacy.training.initialize import init_nlp
        from spacy.training.loop import train

        gpu = self.args.gpu_id
        config = make_config(self.row, self.corpora, settings, seed, gpu >= 0)
        nlp = init_nlp(config, use_gpu=gpu)
        runtime.reset_peak(gpu)
        log = io.StringIO()
        with runtime.Clock() as clock:
            train(nlp, use_gpu=gpu, stdout=log, stderr=log)
        train_peak = runtime.peak_memory(gpu)
        runtime.reset_peak(gpu)
        dev = score_docs(nlp, self.row, self.dev)
        with runtime.Clock() as predicting:
            test = score_docs(nlp, self.row, self.test)
        found = {
            **self._evaluate(dev, test),
            "train_seconds": clock.wall,
            "train_cpu_seconds": clock.process,
            "steps": settings.steps(self.corpora.n_train),
            "predict_seconds": predicting.wall,
            "n_words": sum(len(doc) for doc in self.test),
            "train_peak_mib": train_peak,
            "predict_peak_mib": runtime.peak_memory(gpu),
            "device": runtime.device_name(gpu),
            "jobs": self.args.jobs,
            "threads": self.args.threads,
        }
        if self.row == "two-stage":
            found["at_inference"] = self._at_inference(nlp, found["bias"])
        if save:
            folder = self.args.work / "models" / f"{self.data}.{self.row}"
            folder.parent.mkdir(parents=True, exist_ok=True)
            nlp.to_disk(folder)
        return found

    def _evaluate(self, dev: Scored, test: Scored) -> dict[str, Any]:
        gold_dev, gold_test = gold_entities(self.dev), gold_entities(self.test)
        bias = choose_bias(dev, gold_dev)
        predicted, raw = test.entities(bias), test.entities(0.0)
        return {
            "bias": bias,
            "dev": prf(dev.entities(bias), gold_dev)._asdict(),
            "dev_raw": prf(dev.entities(0.0), gold_dev)._asdict(),
            "test": prf(predicted, gold_test)._asdict(),
            "test_raw": prf(raw, gold_test)._asdict(),
            "recall_dev": dev.recall(gold_dev),
            "recall_test": test.recall(gold_test),
            "labels": self.labels,
            "n_docs": len(self.test),
            "gold": results.pack_entities(gold_test, self.labels),
            "predicted": results.pack_entities(predicted, self.labels),
        }

    def _at_inference(self, nlp: Any, bias: float) -> dict[str, Any]:
        """Scores with the same weights and bias when the filter keeps more or fewer, and the
        candidates asked about, a word."""
        settings = nlp.get_pipe(COMPONENT).network.attrs["settings"]
        found = {}
        for name, values in AT_INFERENCE.items():
            parts = {}
            with changed(settings, values):
                for part, docs in (("dev", self.dev), ("test", self.test)):
                    gold, scored = gold_entities(docs), score_docs(nlp, self.row, docs)
                    parts[part] = prf(scored.entities(bias), gold)._asdict()
                    parts[part]["recall"] = scored.recall(gold)
                    parts[part]["asked"] = len(scored.logits) / scored.offsets[-1].item()
            found[name] = parts
        return found


def run_here(args: argparse.Namespace, started: float) -> bool:
    """Run everything in this process. Returns False where the budget ended it."""
    runtime.start(args.gpu_id, args.threads)
    for data in args.data_sets:
        for row in args.rows:
            try:
                Experiment(args, data, row, started).run()
            except BudgetSpent:
                print(f"{data} {row}: the budget is spent; start again to go on.", flush=True)
                return False
    return True


def run_jobs(args: argparse.Namespace, argv: Sequence[str]) -> bool:
    """One process a row and data set, ``--jobs`` at once, the slow rows first."""
    order = ("full", "spancat", "probe", "two-stage", "token")
    pairs = [(data, row) for row in order if row in args.rows for data in args.data_sets]
    begun = time.monotonic()

    def start(pair: tuple[str, str]) -> int:
        command = [sys.executable, "-m", "benchmarks.ner_modes", *argv]
        command += ["--data-sets", pair[0], "--rows", pair[1]]
        if args.budget:
            left = args.budget - (time.monotonic() - begun)
            if left <= 0:
                print(f"{pair[0]} {pair[1]}: the budget is spent.", flush=True)
                return 1
            command += ["--budget", str(left)]
        environment = {**os.environ, "SPACY_LUKE_BENCHMARK_CHILD": "1"}
        return subprocess.run(command, env=environment, check=False).returncode

    with ThreadPoolExecutor(args.jobs) as pool:
        return not any(pool.map(start, pairs))


def main(argv: Sequence[str] | None = None) -> int:
    started = time.monotonic()
    argv = list(sys.argv[1:] if argv is None else argv)
    args = parse(argv)
    if args.jobs > 1 and "SPACY_LUKE_BENCHMARK_CHILD" not in os.environ:
        return 0 if run_jobs(args, argv) else 1
    return 0 if run_here(args, started) else 1


if __name__ == "__main__":
    sys.exit(main())
