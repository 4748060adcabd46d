"""Types of given entities: the modes of ``luke_entity_typing`` and a plain marker classifier.

    python -m benchmarks.typing_modes --encoder DIR --data-sets politics --results results.jsonl

CrossNER's gold entities, of which each has exactly one type; micro-F1, which is accuracy where
every entity gets an answer. Rates, seeds and the results file as in ``relation_modes``.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from thinc.api import Config

from spacy_luke.annotations.types import get_types

from . import experiment, results, runtime
from .datasets import unanswered
from .experiment import ComponentExperiment
from .scoring import Entity, pack_entities, prf
from .task_data import TYPING_SETS, prepare
from .task_rows import ROWS, TYPING, typing_config
from .training import EpochSettings


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = experiment.parser("typing_modes", __doc__, "build/typing", list(TYPING_SETS), ROWS)
    experiment.add_epochs(p)
    return runtime.parsed(p, argv)


class TypingExperiment(ComponentExperiment[EpochSettings]):
    """One row on one data set."""

    kind = "typing"

    def __init__(self, args: argparse.Namespace, data: str, row: str):
        super().__init__(args, data, row)
        self.corpora = prepare(data, TYPING_SETS[data], args.data, args.work, args.limit)
        self.docs = {part: self.corpora.docs(part) for part in ("train", "dev", "test")}
        self.test = self.docs["test"]
        self.gold = {part: typed(docs) for part, docs in self.docs.items()}

    def settings(self) -> EpochSettings:
        return EpochSettings(
            **experiment.common(self.args),
            epochs=self.args.epochs or TYPING_SETS[self.data].epochs,
            batch_size=self.args.batch_size or TYPING_SETS[self.data].batch_size,
        )

    def config(self, settings: EpochSettings, seed: int) -> Config:
        return typing_config(self.row, self.corpora, settings, seed, self.args.gpu_id >= 0)

    def predict(self, nlp: Language, part: str) -> list[Entity]:
        pipe: Any = nlp.get_pipe(TYPING)
        docs = [unanswered(doc) for doc in self.docs[part]]
        for batch in minibatch(docs, 64):
            list(pipe.pipe(batch, batch_size=64))
        return typed(docs)

    def evaluate(self, dev: list[Entity], test: list[Entity]) -> results.Record:
        labels = sorted({x.label for part in self.gold.values() for x in part})
        gold = self.gold["test"]
        return {
            "dev": prf(dev, self.gold["dev"])._asdict(),
            "test": prf(test, gold)._asdict(),
            "average": "micro",
            "labels": labels,
            "n_docs": len(self.test),
            "gold": pack_entities(gold, labels),
            "predicted": pack_entities(test, labels),
        }


def typed(docs: Sequence[Doc]) -> list[Entity]:
    """Every entity with its type; one without any is left out."""
    return [
        Entity(i, span.start, span.end, name)
        for i, doc in enumerate(docs)
        for span in doc.ents
        for name in get_types(span) or ()
    ]


def main(argv: Sequence[str] | None = None) -> int:
    return experiment.run(TypingExperiment, parse(argv))


if __name__ == "__main__":
    sys.exit(main())
