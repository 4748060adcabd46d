"""One table of NER's rows on all sets, from what ``ner_modes`` found.

    python -m benchmarks.ner_table benchmarks/results/ner.jsonl --train-limit 1000

Runs with all training documents, or with the first so many; of a row's settings those that
``benchmarks.chosen`` chooses. The last column is the paired bootstrap over documents.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from . import results
from .bootstrap import paired_bootstrap
from .chosen import Rows, chosen_runs, counts
from .datasets import DATA_SETS
from .markdown import markdown, spread
from .rows import ROWS

OURS = "two-stage"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser("python -m benchmarks.ner_table", description=__doc__)
    p.add_argument("results", nargs="+", type=Path)
    p.add_argument("--train-limit", type=int, default=0, help="training documents; 0: all")
    p.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    p.add_argument("--samples", type=int, default=10_000, help="of the bootstrap")
    return p.parse_args(argv)


def lines(data: str, rows: Rows, wanted: Sequence[str], samples: int) -> Iterator[dict[str, Any]]:
    for row in [x for x in wanted if x in rows]:
        runs, gain = rows[row], "-"
        n_docs = runs[0]["n_docs"]
        if row != OURS and len(runs) == len(rows.get(OURS, ())):
            pair = (counts(runs, n_docs), counts(rows[OURS], n_docs))
            gain = str(paired_bootstrap(*pair, samples))
        flat = pd.json_normalize(list(runs), max_level=1)
        yield {
            "set": data,
            "row": row,
            "seeds": len(runs),
            "test F1": spread(flat["test.f"]),
            "without bias": spread(flat["test_raw.f"]),
            "test P / R": f"{flat['test.p'].mean():.1f} / {flat['test.r'].mean():.1f}",
            "dev F1": spread(flat["dev.f"]),
            "train CPU s": f"{flat['train_cpu_seconds'].mean():,.0f}",
            f"{OURS} is higher by": gain,
        }


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    records = results.read(args.results)
    kept = [
        x
        for x in records
        if x["kind"] == "run" and x["settings"].get("train_limit", 0) == args.train_limit
    ]
    found = chosen_runs(kept)
    table = [
        line
        for data in DATA_SETS
        if data in found
        for line in lines(data, found[data], args.rows, args.samples)
    ]
    print(markdown(pd.DataFrame(table)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
