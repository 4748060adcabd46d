"""One table of NER's rows on all sets, from what ``ner_modes`` found.

    python -m benchmarks.ner_table benchmarks/results/ner.jsonl --train-limit 1000
    python -m benchmarks.ner_table benchmarks/results/ner.jsonl --overview
    python -m benchmarks.ner_table benchmarks/results/ner.jsonl --longer FILE
    python -m benchmarks.ner_table benchmarks/results/ner.jsonl --plot docs/ner.svg

Runs with all training documents, or with the first so many; of a row's settings those that
``benchmarks.chosen`` chooses. The last column is the paired bootstrap over documents. The overview
has a line per set and size, with the test F1 of all rows. The plot shows the same. With runs of
more steps (``--longer``) only their sets, sizes and seeds are shown, and every row has as many
steps as gave it the best dev F1.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from . import results
from .bootstrap import paired_bootstrap
from .chosen import Rows, chosen_runs, counts, mean, with_shared_seeds
from .datasets import DATA_SETS
from .markdown import markdown, spread
from .results import Record
from .rows import ROWS

OURS, BASELINE = "two-stage", "token"
AS_CHEAP = (BASELINE, "ner", "spancat")  # the other rows of about two-stage's cost
# Colour and marker of each row: those of other components are hollow.
LOOKS = {
    "token": ("tab:orange", "o"),
    "ner": ("tab:green", "s"),
    "spancat": ("tab:brown", "^"),
    "full": ("tab:purple", "v"),
    "probe": ("tab:cyan", "P"),
    OURS: ("tab:blue", "D"),
}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser("python -m benchmarks.ner_table", description=__doc__)
    p.add_argument("results", nargs="+", type=Path)
    p.add_argument("--train-limit", type=int, default=0, help="training documents; 0: all")
    p.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    p.add_argument("--overview", action="store_true", help="all sizes, F1 alone")
    p.add_argument("--longer", nargs="+", type=Path, help="runs of more steps, to choose among")
    p.add_argument("--plot", type=Path, help="draw all sizes, and end")
    p.add_argument("--samples", type=int, default=10_000, help="of the bootstrap")
    return p.parse_args(argv)


def lines(data: str, rows: Rows, wanted: Sequence[str], samples: int) -> Iterator[dict[str, Any]]:
    for row in [x for x in wanted if x in rows]:
        runs = rows[row]
        flat = pd.json_normalize(list(runs), max_level=1)
        yield {
            "set": data,
            "row": row,
            "seeds": len(runs),
            "test F1": spread(flat["test.f"]),
            "without bias": spread(flat["test_raw.f"]),
            "test P / R": f"{flat['test.p'].mean():.1f} / {flat['test.r'].mean():.1f}",
            "dev F1": spread(flat["dev.f"]),
            # How many entities are among the spans that a row scores.
            "recall of candidates": (
                "-" if row in ("token", "ner") else f"{flat['recall_test'].mean():.1f}"
            ),
            f"{OURS} is higher by": gain(rows, row, samples),
        }


def gain(rows: Rows, row: str, samples: int) -> str:
    """Of two-stage over another row, of the seeds that both have."""
    theirs, ours = with_shared_seeds(rows.get(row, ()), rows.get(OURS, ()))
    if row == OURS or not ours:
        return "-"
    n_docs = ours[0]["n_docs"]
    return str(paired_bootstrap(counts(theirs, n_docs), counts(ours, n_docs), samples))


def overview(
    found: dict[int, dict[str, Rows]], wanted: Sequence[str], samples: int
) -> Iterator[dict[str, str]]:
    """found: training documents, 0 for all -> data set -> row -> runs."""
    for size in sorted(found, key=lambda x: x or sys.maxsize):
        for data, rows in found[size].items():
            scores = {
                row: spread(run["test"]["f"] for run in rows[row]) if row in rows else ""
                for row in wanted
            }
            first = {"sentences": f"{size:,}" if size else "all", "set": data}
            last = {f"{OURS} - {BASELINE}": gain(rows, BASELINE, samples) if OURS in rows else ""}
            yield {**first, **scores, **last}


def by_length(
    found: dict[int, dict[str, Rows]], wanted: Sequence[str], samples: int
) -> Iterator[dict[str, str]]:
    """Each row's test F1 and steps, and how far two-stage is ahead of token classification and of
    the best of the others.

    The rows that cost more (``full``, ``probe``) are left out, and so are the sets on which one of
    these was not run.
    """
    others = [x for x in AS_CHEAP if x in wanted]
    for size in sorted(found, key=lambda x: x or sys.maxsize):
        for data, rows in found[size].items():
            if not others or not rows.keys() >= {*others, OURS}:
                continue
            line = {"sentences": f"{size:,}" if size else "all", "set": data}
            for row in (*others, OURS):
                steps = " / ".join(f"{x:,}" for x in sorted({run["steps"] for run in rows[row]}))
                line[row] = f"{spread(x['test']['f'] for x in rows[row])} ({steps})"
            line[f"{OURS} - {BASELINE}"] = gain(rows, BASELINE, samples)
            best = max(others, key=lambda x: mean(rows[x], "test"))
            line[f"{OURS} - the best other"] = f"{gain(rows, best, samples)} ({best})"
            yield line


def with_longer(records: Iterable[Record], longer: Sequence[Record]) -> list[Record]:
    """All runs of the sets, sizes, seeds and rows of the longer ones."""
    wanted = {_what(x) for x in longer}
    return [*longer, *(x for x in records if _what(x) in wanted)]


def _what(record: Record) -> tuple[Any, ...]:
    limit = record["settings"].get("train_limit", 0)
    return record["kind"], record["data"], record["row"], record["seed"], limit


def plot(found: dict[int, dict[str, Rows]], wanted: Sequence[str], path: Path) -> None:
    """A panel per size; a set per line; mean and standard deviation over seeds of each row."""
    sizes = sorted(found, key=lambda x: x or sys.maxsize)
    names = [data for data in DATA_SETS if any(data in found[size] for size in sizes)]
    figure = Figure(figsize=(3.4 * len(sizes), 1.6 + 0.4 * len(names)))
    FigureCanvasAgg(figure)  # pyplot would choose a backend for the whole process
    panels = figure.subplots(1, len(sizes), sharex=True, sharey=True, squeeze=False)[0]
    for axes, size in zip(panels, sizes, strict=True):
        for i, row in enumerate(wanted):
            runs = {y: found[size].get(data, {}).get(row) for y, data in enumerate(names)}
            scores = {y: pd.Series([x["test"]["f"] for x in of]) for y, of in runs.items() if of}
            colour, marker = LOOKS[row]
            axes.errorbar(
                [x.mean() for x in scores.values()],
                # Rows above each other, so that equal ones are seen.
                [y + 0.1 * (i - (len(wanted) - 1) / 2) for y in scores],
                xerr=[x.std() if len(x) > 1 else 0.0 for x in scores.values()],
                linestyle="none",
                marker=marker,
                markersize=5,
                color=colour,
                markerfacecolor=colour if row == OURS else "white",
                elinewidth=1,
                label=row,
            )
        axes.set(title=f"{size:,} sentences" if size else "all sentences", xlabel="test F1")
        axes.set_yticks(range(len(names)), names)
        axes.grid(axis="x", alpha=0.3)
        for y in range(len(names) - 1):
            axes.axhline(y + 0.5, color="0.85", linewidth=0.8)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, metadata={"Date": None})


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    by_size: dict[int, list[Record]] = {}
    records = results.read(args.results)
    if args.longer:
        records = with_longer(records, results.read(args.longer))
    for record in records:
        if record["kind"] == "run":
            by_size.setdefault(record["settings"].get("train_limit", 0), []).append(record)
    found: dict[int, dict[str, Rows]] = {}
    for size, records in by_size.items():
        runs = chosen_runs(records)
        found[size] = {data: runs[data] for data in DATA_SETS if data in runs}
    if args.plot and any(found.values()):
        plot(found, args.rows, args.plot)
        return 0
    if args.longer:
        table = list(by_length(found, args.rows, args.samples))
        if not table:
            raise SystemExit("On no set there are longer runs of all these rows.")
    elif args.overview:
        table = list(overview(found, args.rows, args.samples))
    else:
        sets = found.get(args.train_limit, {})
        table = [
            line
            for data, rows in sets.items()
            for line in lines(data, rows, args.rows, args.samples)
        ]
    if not table:
        raise SystemExit(f"There are no runs with --train-limit {args.train_limit}.")
    print(markdown(pd.DataFrame(table)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
