"""The same rows trained from several encoders, to Markdown.

    python -m benchmarks.encoder_tables --row two-stage --row probe \\
        --of "as it comes" a.jsonl b.jsonl --of "pretrained" c.jsonl --against "as it comes"

Of every encoder the runs that count are those of the other tables; data sets and rows that not all
encoders have, and runs that differ in more than the encoder, are left out with a word.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from . import results
from .bootstrap import paired_bootstrap
from .chosen import HOW, chosen_runs, counts
from .markdown import spread, table
from .results import Record

TASKS = {"run": "NER", "relation": "relations", "typing": "types"}
FREE = ("encoder", "overrides")
Column = tuple[str, str, str]
"""(task, data set, row)."""
Runs = dict[Column, list[Record]]


def runs_of(records: Sequence[Record], beside: Sequence[Record] = ()) -> Runs:
    """The runs that count, one a seed, of every data set and row. beside: records of the others."""
    return {
        (task, data, row): runs
        for kind, task in TASKS.items()
        for data, rows in chosen_runs(records, kind, beside).items()
        for row, runs in rows.items()
    }


def comparable(by_name: dict[str, Runs], rows: Sequence[str]) -> tuple[dict[str, Runs], list[str]]:
    """Of every encoder the runs that all have with the same settings and seed; and why others are
    left out."""
    found = dict.fromkeys(column for runs in by_name.values() for column in runs)
    shared: dict[str, Runs] = {name: {} for name in by_name}
    left_out = []
    for column in [x for x in found if x[2] in rows]:
        title = " ".join(column)
        if any(column not in runs for runs in by_name.values()):
            left_out.append(f"{title}: not run with every encoder")
            continue
        seeds = [{run["seed"] for run in runs[column]} for runs in by_name.values()]
        common = set.intersection(*seeds)
        if len({_terms(runs[column]) for runs in by_name.values()}) > 1 or not common:
            left_out.append(f"{title}: other settings or seeds")
            continue
        for name, runs in by_name.items():
            shared[name][column] = [run for run in runs[column] if run["seed"] in common]
    return shared, left_out


def _terms(runs: Sequence[Record]) -> str:
    """What has to be the same: steps, and all settings but the encoder's."""
    settings = {k: v for k, v in runs[0]["settings"].items() if k not in FREE}
    return repr((sorted(settings.items()), runs[0]["steps"]))


def render(by_name: dict[str, Runs], rows: Sequence[str], against: str, n_samples: int) -> str:
    """A line per data set and row: test F1 of every encoder, and how much others are better."""
    shared, left_out = comparable(by_name, rows)
    others = [name for name in by_name if name != against]
    body = [
        [
            " ".join(column),
            str(len(shared[against][column])),
            *(spread(run["test"]["f"] for run in runs[column]) for runs in shared.values()),
            *(_difference(shared[against], shared[x], column, n_samples) for x in others),
        ]
        for column in shared[against]
    ]
    header = ["test F1", "seeds", *by_name, *(f"{name} - {against}" for name in others)]
    out = [table(header, body), "", f"Differences: paired bootstrap over documents, {HOW}."]
    if left_out:
        out += ["", f"Left out: {'; '.join(left_out)}."]
    return "\n".join(out)


def _difference(base: Runs, other: Runs, column: Column, n_samples: int) -> str:
    n_docs = base[column][0]["n_docs"]
    a, b = (counts(runs[column], n_docs) for runs in (base, other))
    return str(paired_bootstrap(a, b, n_samples))


def main(argv: Sequence[str] | None = None) -> None:
    p = argparse.ArgumentParser(prog="python -m benchmarks.encoder_tables", description=__doc__)
    p.add_argument("--of", nargs="+", action="append", required=True, metavar="NAME FILE")
    p.add_argument("--row", action="append", required=True, help="any number of times")
    p.add_argument("--against", help="name of the encoder to compare with; default: the first")
    p.add_argument("--samples", type=int, default=10_000, help="of the bootstrap")
    args = p.parse_args(argv)
    by_name = {}
    for name, *files in args.of:
        missing = [x for x in files if not Path(x).is_file()]
        if missing or not files:
            p.error(f"--of {name}: no such file: {', '.join(missing) or 'none is named'}")
        by_name[name] = results.read(map(Path, files))
    against = args.against or args.of[0][0]
    if against not in by_name:
        p.error(f"--against {against}: name one of {', '.join(by_name)}")
    everything = [record for records in by_name.values() for record in records]
    runs = {name: runs_of(records, everything) for name, records in by_name.items()}
    print(render(runs, args.row, against, args.samples))


if __name__ == "__main__":
    main()
