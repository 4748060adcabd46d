"""Relations between given entities: the modes of ``luke_relation`` and a plain marker classifier.

    python -m benchmarks.relation_modes --encoder DIR --data-sets semeval --results results.jsonl

For every row the first seed is trained at each learning rate of the grid, the rate with the best
dev score is kept, and the other seeds are trained with it. The last weights count. Finished runs
are skipped when started again. ``--speed-docs N`` times prediction instead, without training.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training.initialize import init_nlp
from spacy.util import minibatch
from thinc.api import Config

from spacy_luke.annotations.mentions import spans_of
from spacy_luke.annotations.relations import relation_offsets
from spacy_luke.inputs.pairs import build_relation_candidates

from . import experiment, results, runtime
from .datasets import unanswered
from .experiment import ComponentExperiment
from .relation_speed import measure_speed
from .scoring import PRF, Item, macro_prf, pack_entities, prf
from .task_data import RELATION_SETS, prepare
from .task_rows import LEAST, RELATION, RELATION_TASKS, ROWS, RelationSettings, relation_config

THRESHOLDS = [round(LEAST * i, 2) for i in range(1, 20)]
Scored = list[tuple[Item, float]]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = experiment.parser("relation_modes", __doc__, "build/relation", list(RELATION_SETS), ROWS)
    experiment.add_epochs(p)
    p.add_argument("--pairs", type=int, default=0, help="markers learns from, half related; 0: all")
    p.add_argument("--score-docs", type=int, default=0, help="of dev and of test; 0: all")
    p.add_argument("--speed-docs", type=int, default=0, help="only time prediction of so many")
    p.add_argument("--rounds", type=int, default=3, help="of timing")
    args = runtime.parsed(p, argv)
    if args.score_docs < 0:
        p.error(f"--score-docs is {args.score_docs}; a number from 0 (all)")
    return args


class RelationExperiment(ComponentExperiment[RelationSettings]):
    """One row on one data set. Single relations are judged by directed macro-F1 (the official score
    of SemEval-2010 Task 8), several by micro-F1 at the threshold that is best on dev."""

    kind = "relation"

    def __init__(self, args: argparse.Namespace, data: str, row: str):
        super().__init__(args, data, row)
        self.corpora = prepare(data, RELATION_SETS[data], args.data, args.work, args.limit)
        self.task = RELATION_TASKS[data]
        self.docs = {part: self.corpora.docs(part) for part in ("train", "dev", "test")}
        for part in ("dev", "test"):
            self.docs[part] = self.docs[part][: args.score_docs or None]
        self.test = self.docs["test"]
        self.gold = {part: items(docs, self.key) for part, docs in self.docs.items()}

    def run(self) -> None:
        if self.row == "baseline" and self.task["merge_entities"]:
            print(f"{self.data} baseline: left out, it takes no merged entities.", flush=True)
        else:
            super().run()

    @property
    def key(self) -> Any:
        return self.task["spans_key"]

    def settings(self) -> RelationSettings:
        return RelationSettings(
            **experiment.common(self.args),
            epochs=self.args.epochs or RELATION_SETS[self.data].epochs,
            batch_size=self.args.batch_size or RELATION_SETS[self.data].batch_size,
            pairs=self.args.pairs if self.row == "markers" else 0,
            scored=self.args.score_docs,
        )

    def config(self, settings: RelationSettings, seed: int) -> Config:
        return relation_config(
            self.data, self.row, self.corpora, settings, seed, self.args.gpu_id >= 0
        )

    def predict(self, nlp: Language, part: str) -> Scored:
        pipe: Any = nlp.get_pipe(RELATION)
        pipe.candidates = build_relation_candidates()  # those of training may be a sample
        docs = [unanswered(doc) for doc in self.docs[part]]
        for batch in minibatch(docs, 64 if self.data == "semeval" else 4):
            list(pipe.pipe(batch, batch_size=64))
        return list(zip(items(docs, self.key), scores(docs)))

    def evaluate(self, dev: Scored, test: Scored) -> results.Record:
        several = self.task["multi_label"]
        judge = prf if several else macro_prf

        def at(found: Scored, threshold: float) -> list[Item]:
            return [item for item, score in found if score >= threshold]

        def judged(threshold: float) -> PRF:
            return judge(at(dev, threshold), self.gold["dev"])

        threshold = max(THRESHOLDS, key=lambda x: judged(x).f) if several else 0.0
        predicted, gold = at(test, threshold), self.gold["test"]
        labels = sorted({item[3] for part in self.gold.values() for item in part})
        return {
            "threshold": threshold,
            "dev": judged(threshold)._asdict(),
            "test": judge(predicted, gold)._asdict(),
            "test_micro": prf(predicted, gold)._asdict(),
            "average": "micro" if several else "macro",
            "labels": labels,
            "n_docs": len(self.test),
            "gold": pack_entities(gold, labels),
            "predicted": pack_entities(predicted, labels),
        }

    def inspect(self, nlp: Language, found: results.Record) -> results.Record:
        pipe: Any = nlp.get_pipe(RELATION)
        return {"limits": None if self.settings().pairs else pipe.limits}


def items(docs: Sequence[Doc], spans_key: str | None) -> list[Item]:
    """(document, head, tail, label) of all relations, a side being a span by its number in the
    text: of an entity with several mentions the first, on both sides of an evaluation."""
    found: list[Item] = []
    for i, doc in enumerate(docs):
        spans = spans_of(doc, spans_key)
        places = {(span.start_char, span.end_char): n for n, span in enumerate(spans)}
        for relation in relation_offsets(doc):
            found.append((i, places[relation.head], places[relation.tail], relation.label))
    return found


def scores(docs: Sequence[Doc]) -> list[float]:
    """The probability of every relation, in the order of :func:`items`."""
    return [relation.score for doc in docs for relation in relation_offsets(doc)]


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    if not args.speed_docs:
        return experiment.run(RelationExperiment, args)
    runtime.start(args.gpu_id, args.threads)
    for data in args.data_sets:
        time_rows(args, data)
    return 0


def time_rows(args: argparse.Namespace, data: str) -> None:
    """Time prediction of the first test documents by untrained pipelines, with all pairs."""
    pipelines = {}
    for row in args.rows:
        made = RelationExperiment(args, data, row)
        if row != "baseline" or not made.task["merge_entities"]:
            settings = replace(made.settings(), pairs=0)
            pipelines[row] = init_nlp(made.config(settings, args.seeds[0]), use_gpu=args.gpu_id)
            docs = made.test[: args.speed_docs]
    measure_speed(args, data, pipelines, docs)


if __name__ == "__main__":
    sys.exit(main())
