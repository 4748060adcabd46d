"""Relation and typing records to Markdown."""

import statistics
from collections.abc import Iterator, Sequence

from .bootstrap import bootstrap
from .chosen import (
    HOW,
    Rows,
    chosen_runs,
    circumstances,
    counts,
    difference_table,
    over_seeds,
    settings_text,
    tuning_table,
)
from .markdown import median_range, table
from .results import Record
from .speed_tables import paired_ratios
from .task_rows import ROWS

TITLES = {"relation": "Relations", "typing": "Types"}


def task_tables(records: Sequence[Record], n_samples: int) -> Iterator[tuple[str, str]]:
    """(title, text) of every data set, then of speed, then of every run."""
    for kind, title in TITLES.items():
        runs = chosen_runs(records, kind)
        for data, rows in runs.items():
            parts = [circumstances(rows), score_table(rows, n_samples)]
            pairs = [(b, a) for b, a in _compared(rows)]
            if pairs:
                parts += [f"Paired bootstrap over documents, {HOW}:"]
                parts += [difference_table(rows, pairs, n_samples)]
            yield f"{title}: {data}", "\n\n".join(parts)
        if kind == "relation":
            yield from speed_tables(records)
            yield from crowd_tables(records)
        if runs:
            yield f"{title}: every run", tuning_table(records, kind)


def score_table(rows: Rows, n_samples: int) -> str:
    """Test scores, the interval of their mean over documents, and what was chosen on dev."""
    body = []
    for row in [name for name in ROWS if name in rows]:
        runs = rows[row]
        drawn = bootstrap(counts(runs, runs[0]["n_docs"]), n_samples)
        micro = "-"
        if "test_micro" in runs[0]:
            micro = over_seeds(runs, lambda x: x["test_micro"]["f"])
        body.append(
            [
                _name(runs),
                over_seeds(runs, lambda x: x["test"]["f"]),
                f"[{drawn.low:.2f}, {drawn.high:.2f}]",
                over_seeds(runs, lambda x: x["test"]["p"])
                + " / "
                + over_seeds(runs, lambda x: x["test"]["r"]),
                micro,
                over_seeds(runs, lambda x: x["dev"]["f"]),
                _chosen(runs),
                over_seeds(runs, lambda x: x["train_cpu_seconds"], 0),
                over_seeds(runs, lambda x: 1000 * x["predict_cpu_seconds"] / x["n_docs"], 0),
            ]
        )
    average = next(iter(rows.values()))[0]["average"]
    header = [
        "row",
        f"test {average} F1",
        "interval",
        "test P / R",
        "micro F1",
        "dev F1",
        "chosen on dev",
    ]
    return table([*header, "train CPU s", "predict CPU ms a document"], body)


def _name(runs: Sequence[Record]) -> str:
    """What a row is, and the limits that its table has to tell."""
    settings = runs[0]["settings"]
    limits = []
    if settings.get("pairs"):
        limits.append(f"learned from {settings['pairs']} pairs a document, half related")
    if settings.get("scored"):
        limits.append(f"scored on the first {runs[0]['n_docs']} of dev and of test")
    return runs[0]["row"] + (f" ({', '.join(limits)})" if limits else "")


def _chosen(runs: Sequence[Record]) -> str:
    text = settings_text(runs[0])
    if not runs[0].get("threshold"):
        return text
    return f"{text}, threshold " + ", ".join(f"{run['threshold']:g}" for run in runs)


def _compared(rows: Rows) -> Iterator[tuple[str, str]]:
    """(b, a): ours against the baseline, and the two ways to ask."""
    for b, a in (("baseline", "probe"), ("baseline", "markers"), ("markers", "probe")):
        if a in rows and b in rows:
            yield b, a


def speed_tables(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Seconds a document at prediction; of every data set the latest measurement."""
    latest = {x["data"]: x for x in records if x["kind"] == "relation-speed" and x["gates"]}
    for data, record in latest.items():
        body = []
        for row in [name for name in ROWS if name in record["seconds"]]:
            seconds = statistics.median(record["seconds"][row]) / record["n_docs"]
            ratio = "-"
            if "probe" in record["seconds"]:
                ratio = median_range(paired_ratios(record, row, "probe"))
            body.append([row, f"{seconds:.3g}", ratio])
        text = (
            f"{record['n_docs']} documents, {record['n_pairs'] / record['n_docs']:.0f} pairs and "
            f"{record['n_words'] / record['n_docs']:.0f} words a document, untrained weights, "
            f"{record['rounds']} rounds, {record['clock']} time, {record['device']}."
        )
        header = ["row", "seconds a document", "time against probe"]
        yield f"Relations: time of prediction, {data}", f"{text}\n\n{table(header, body)}"


def crowd_tables(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Documents of many entities; of every mode and size the latest measurement."""
    found = [x for x in records if x["kind"] == "relation-crowd"]
    latest = {(x["mode"], x["n_entities"]): x for x in found}
    if latest:
        figures = ("predict_seconds", "predict_mib", "update_seconds", "update_mib")
        body = [
            [
                mode,
                f"{n}",
                f"{x['n_words']}",
                f"{x['n_pairs']:,}",
                *(f"{x[y]:,.1f}" for y in figures),
            ]
            for (mode, n), x in latest.items()
        ]
        header = ["row", "entities", "words", "pairs", "predict s", "MiB", "learn s", "MiB"]
        yield "Relations: documents of many entities", table(header, body)
