"""Do a row's errors come from spans or from their labels?

    python -m benchmarks.found_labels benchmarks/results/ner.jsonl --rows token two-stage

Reads what ``ner_modes`` found: F1 of spans without their labels; which of the right spans have the
right label; and the same on the spans that the first row, too, found with the same seed, because
a row that finds more spans finds the harder ones.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from . import results
from .chosen import Rows, chosen_runs
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


def frame(data: str, rows: Rows, wanted: Sequence[str]) -> pd.DataFrame:
    first = rows.get(wanted[0], [])
    return pd.DataFrame(
        {
            "set": data,
            "row": row,
            "seeds": len(rows[row]),
            "test F1": spread([run["test"]["f"] for run in rows[row]]),
            "span F1": spread([span_f1(run) for run in rows[row]]),
            "right labels": spread([_percent(run) for run in rows[row]]),
            f"gain over {wanted[0]}": "-" if row == wanted[0] else gain_over(first, rows[row]),
        }
        for row in wanted
        if row in rows
    )


def _percent(run: Record) -> float:
    right = right_labels(run, found_right(run))
    return 100 * statistics.fmean(right) if right else 0.0


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    records = results.read(args.results)
    chosen = sorted(chosen_runs(records).items())
    found = [frame(data, rows, args.rows) for data, rows in chosen]
    print(markdown(pd.concat(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
