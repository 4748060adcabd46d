"""Do a row's errors come from spans or from their labels?

    python -m benchmarks.found_labels benchmarks/results/ner.jsonl --rows token two-stage
    python -m benchmarks.found_labels benchmarks/results/ner.jsonl --gold-labels

Reads what ``ner_modes`` found: F1 of spans without their labels; which of the right spans have the
right label; and the same on the spans that the first row, too, found with the same seed, because
a row that finds more spans finds the harder ones. But a row finds the spans of whose labels it is
sure, so the first row is at an advantage there. ``--gold-labels`` compares the labels of all gold
spans, in the runs of ``ner_modes --gold-labels``.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from . import results
from .chosen import Rows, chosen_runs, with_shared_seeds
from .differences import gain
from .markdown import markdown, spread
from .results import Record
from .rows import ROWS

Spans = dict[tuple[int, int, int], int]
"""Document, first token, end -> number of the label."""


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser("python -m benchmarks.found_labels", description=__doc__)
    p.add_argument("results", nargs="+", type=Path)
    p.add_argument("--rows", nargs="+", choices=list(ROWS), default=["token", "two-stage"])
    p.add_argument("--gold-labels", action="store_true", help="compare labels of all gold spans")
    return p.parse_args(argv)


def spans_of(run: Record, part: str) -> Spans:
    return {(doc, start, end): label for doc, start, end, label in run[part]}


def span_f1(run: Record) -> float:
    found, gold = spans_of(run, "predicted"), spans_of(run, "gold")
    return 200 * len(found.keys() & gold.keys()) / max(len(found) + len(gold), 1)


def right_labels(run: Record, spans: Sequence[tuple[int, int, int]]) -> list[bool]:
    """Of spans that the run found, and that are gold."""
    found, gold = spans_of(run, "predicted"), spans_of(run, "gold")
    return [found[x] == gold[x] for x in spans]


def found_right(run: Record) -> list[tuple[int, int, int]]:
    return sorted(spans_of(run, "predicted").keys() & spans_of(run, "gold").keys())


def gain_over(first: Sequence[Record], runs: Sequence[Record]) -> str:
    """Right labels of the spans that both have found with the same seed."""
    others = {run["seed"]: run for run in first}
    ours, theirs, docs = [], [], []
    for run in runs:
        if run["seed"] in others:
            other = others[run["seed"]]
            both = sorted(set(found_right(run)) & set(found_right(other)))
            ours.append(right_labels(run, both))
            theirs.append(right_labels(other, both))
            docs.append([doc for doc, _, _ in both])
    return gain(ours, theirs, docs, scale=100.0) if any(map(len, docs)) else "-"


def of_found(rows: Rows, row: str, first: str) -> dict[str, str]:
    """Spans that a row found, and their labels."""
    runs = rows[row]
    return {
        "span F1": spread([span_f1(run) for run in runs]),
        "right labels": spread([_percent(right_labels(run, found_right(run))) for run in runs]),
        f"gain over {first}": "-" if row == first else gain_over(rows.get(first, []), runs),
    }


def of_gold(rows: Rows, row: str, first: str) -> dict[str, str]:
    """Labels of all gold spans."""
    theirs, ours = with_shared_seeds(rows.get(first, []), rows[row])
    docs = [[doc for doc, *_ in run["gold"]] for run in ours]
    told, others = ([right_told(run) for run in runs] for runs in (ours, theirs))
    return {
        "labels of gold spans": spread([_percent(right_told(run)) for run in rows[row]]),
        f"gain over {first}": "-"
        if row == first or not ours
        else gain(told, others, docs, scale=100.0),
    }


def right_told(run: Record) -> list[bool]:
    """Of all gold spans, whether they get the right label."""
    return [x == label for x, (*_, label) in zip(run["gold_labels"], run["gold"], strict=True)]


def _percent(right: Sequence[bool]) -> float:
    return 100 * statistics.fmean(right) if right else 0.0


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    first, compared = args.rows[0], of_gold if args.gold_labels else of_found
    records = results.read(args.results)
    if args.gold_labels:
        records = [x for x in records if "gold_labels" in x]
    table = [
        {
            "set": data,
            "row": row,
            "seeds": len(rows[row]),
            "test F1": spread([run["test"]["f"] for run in rows[row]]),
            **compared(rows, row, first),
        }
        for data, rows in sorted(chosen_runs(records).items())
        for row in args.rows
        if row in rows
    ]
    if not table:
        raise SystemExit("There are no such runs (--gold-labels needs those of ner_modes with it).")
    print(markdown(pd.DataFrame(table)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
