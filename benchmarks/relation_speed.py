"""Seconds a document of the ways to ask about pairs, interleaved in one process.

The network's part alone is timed, from documents to scores: weights are fresh, so what would be
written is arbitrary.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from . import results, runtime
from .datasets import unanswered
from .task_rows import RELATION


def measure_speed(
    args: argparse.Namespace, data: str, pipelines: dict[str, Language], docs: Sequence[Doc]
) -> None:
    """Append a record for each clock. Documents are asked about four at a time."""
    given = [unanswered(doc) for doc in docs]

    def predict(row: str) -> runtime.Clock:
        pipe: Any = pipelines[row].get_pipe(RELATION)
        with runtime.Clock() as clock:
            for batch in minibatch(given, 4):
                pipe.predict(batch)
        return clock

    some: Any = next(iter(pipelines.values())).get_pipe(RELATION)
    n_pairs = len(some.predict(given)[0].pairs)
    about = {
        "kind": "relation-speed",
        "data": data,
        "n_docs": len(given),
        "n_pairs": n_pairs,
        "n_words": sum(len(doc) for doc in given),
        "threads": args.threads,
        "mixed_precision": args.mixed_precision,
        "device": runtime.device_name(args.gpu_id),
    }
    for found in runtime.interleave(list(pipelines), args.rounds, predict, args.gpu_id):
        results.append(args.results, {**about, **found})
    print(f"{data} speed: done", flush=True)
