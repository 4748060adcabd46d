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


def comparable(by_name: dict[str, Runs], rows: Sequence[str]) -> tuple[list[Column], list[str]]:
    """Columns that all encoders have under the same settings and seeds; and why others are not."""
    found = dict.fromkeys(column for runs in by_name.values() for column in runs)
    columns, left_out = [], []
    for column in [x for x in found if x[2] in rows]:
        name = " ".join(column)
        known = [runs.get(column) for runs in by_name.values()]
        if any(runs is None for runs in known):
            left_out.append(f"{name}: not run with every encoder")
        elif len({_terms(runs) for runs in known if runs}) > 1:
            left_out.append(f"{name}: other settings or seeds")
        else:
            columns.append(column)
    return columns, left_out


def _terms(runs: Sequence[Record]) -> str:
    """What has to be the same: seeds, steps, and all settings but the encoder's."""
    settings = {k: v for k, v in runs[0]["settings"].items() if k not in FREE}
    return repr((sorted(settings.items()), [x["seed"] for x in runs], runs[0]["steps"]))


def render(by_name: dict[str, Runs], rows: Sequence[str], against: str, n_samples: int) -> str:
    """Test F1 of every encoder, then each encoder's difference from one of them."""
    columns, left_out = comparable(by_name, rows)
    header = [" ".join(column) for column in columns]
    scores = [
        [name, *(spread(run["test"]["f"] for run in runs[x]) for x in columns)]
        for name, runs in by_name.items()
    ]
    base = by_name[against]
    differences = [
        [name, *(_difference(base[x], runs[x], n_samples) for x in columns)]
        for name, runs in by_name.items()
        if name != against
    ]
    out = [
        "Test F1, mean ± standard deviation over seeds:",
        "",
        table(["encoder", *header], scores),
    ]
    out += ["", f"Above “{against}”, paired bootstrap over documents, {HOW}:", ""]
    out += [table(["encoder", *header], differences)]
    if left_out:
        out += ["", f"Left out: {'; '.join(left_out)}."]
    return "\n".join(out)


def _difference(base: Sequence[Record], runs: Sequence[Record], n_samples: int) -> str:
    n_docs = base[0]["n_docs"]
    found = paired_bootstrap(counts(base, n_docs), counts(runs, n_docs), n_samples)
    return str(found)


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
