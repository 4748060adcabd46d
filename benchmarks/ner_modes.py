"""F1 of the NER modes and of two baselines on the same encoder, data, steps and seeds.

    python -m benchmarks.ner_modes --encoder DIR --data-sets wnut17 --results results.jsonl

For every row the first seed is trained at each learning rate of the grid, the rate with the
best dev F1 is kept, and the other seeds are trained with it. The last weights count. The bias of
"no entity" is chosen on dev for every run. Finished runs are skipped when started again.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from spacy.language import Language
from thinc.api import Config

from spacy_luke.layers.task_layer import scorer_of

from . import experiment, results, runtime
from .datasets import DATA_SETS, prepare
from .experiment import ComponentExperiment
from .forms import forms
from .rows import COMPONENT, ROWS, Settings, changed, make_config
from .scoring import Scored, choose_bias, gold_entities, pack_entities, prf, score_docs

# What two-stage may ask about at prediction, beside what it was trained with (--kept).
AT_INFERENCE: dict[str, dict[str, float]] = {
    **{
        f"k = {k:g} x words": {"candidates_per_word": k, "filter_threshold": 0.0}
        for k in (0.5, 1.0, 2.0)
    },
    **{f"threshold {t:g}": {"filter_threshold": t} for t in (0.003, 0.01, 0.03)},
}
NEGATIVE_WEIGHTS = (0.5, 0.25)  # tried for stock spancat beside its default of 1.0


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = experiment.parser("ner_modes", __doc__, "build/ner", list(DATA_SETS), ROWS)
    experiment.add_epochs(p, batch_size=16)
    p.add_argument("--max-words", type=int, default=8, help="longest candidate span")
    p.add_argument("--n-sents", type=int, default=1, help="sentences joined into a document")
    p.add_argument("--train-limit", type=int, default=0, help="training documents; 0: all")
    p.add_argument("--forms", action="store_true", help="also test in lower and upper case etc.")
    p.add_argument("--gold-labels", action="store_true", help="also label the gold spans")
    p.add_argument("--kept", action="store_true", help="also test what else two-stage may keep")
    return runtime.parsed(p, argv)


class NerExperiment(ComponentExperiment[Settings]):
    """One row on one data set."""

    def __init__(self, args: argparse.Namespace, data: str, row: str):
        super().__init__(args, data, row)
        self.corpora = prepare(
            data, args.data, args.work, args.n_sents, args.limit, args.train_limit
        )
        self.dev, self.test = self.corpora.docs("dev"), self.corpora.docs("test")
        docs = [*self.corpora.docs("train"), *self.dev, *self.test]
        self.labels = sorted({span.label_ for doc in docs for span in doc.ents})

    def settings(self) -> Settings:
        return Settings(
            **experiment.common(self.args),
            epochs=self.args.epochs or DATA_SETS[self.data].epochs,
            batch_size=self.args.batch_size,
            max_words=self.args.max_words,
            n_sents=self.args.n_sents,
            negative_weight=1.0 if self.row == "spancat" else None,
            train_limit=self.args.train_limit,
        )

    def others(self, best: Settings) -> list[Settings]:
        if self.row != "spancat":
            return []
        return [replace(best, negative_weight=weight) for weight in NEGATIVE_WEIGHTS]

    def config(self, settings: Settings, seed: int) -> Config:
        return make_config(self.row, self.corpora, settings, seed, self.args.gpu_id >= 0)

    def predict(self, nlp: Language, part: str) -> Scored:
        return score_docs(nlp, self.row, self.dev if part == "dev" else self.test)

    def say(self, record: results.Record) -> str:
        return f"{super().say(record)} (without bias {record['test_raw']['f']:.2f})"

    def evaluate(self, dev: Scored, test: Scored) -> results.Record:
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
            "gold": pack_entities(gold_test, self.labels),
            "predicted": pack_entities(predicted, self.labels),
        }

    def inspect(self, nlp: Language, found: results.Record) -> results.Record:
        more: results.Record = {}
        if self.args.kept and self.row == "two-stage":
            more["at_inference"] = self._at_inference(nlp, found["bias"])
        if self.args.gold_labels and self.row != "ner":
            more["gold_labels"] = self._gold_labels(nlp)
        if self.args.forms:
            more["forms"] = {
                form: prf(
                    score_docs(nlp, self.row, docs).entities(found["bias"]), gold_entities(docs)
                )._asdict()
                for form, docs in forms(self.test).items()
            }
        return more

    def _gold_labels(self, nlp: Any) -> list[int]:
        """The number of the label that each gold span of the test data gets, -1 if none: the filter
        drops nothing."""
        settings, changes = None, {"filter_threshold": 0.0, "candidates_per_word": 1000.0}
        if self.row == "two-stage":
            settings = scorer_of(nlp.get_pipe(COMPONENT).model)
        with changed(settings, changes) if settings else nullcontext():
            found = score_docs(nlp, self.row, self.test).labels_of(gold_entities(self.test))
        return [self.labels.index(x) if x else -1 for x in found]

    def _at_inference(self, nlp: Any, bias: float) -> dict[str, Any]:
        """Scores with the same weights and bias when the filter keeps more or fewer, and the
        candidates asked about, a word."""
        settings = scorer_of(nlp.get_pipe(COMPONENT).model)
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


def main(argv: Sequence[str] | None = None) -> int:
    return experiment.run(NerExperiment, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
