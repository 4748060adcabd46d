"""Results files to Markdown tables.

python -m benchmarks.tables results.jsonl speed.jsonl > tables.md
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from . import results
from .chosen import (
    HOW,
    Rows,
    chosen_runs,
    circumstances,
    difference_table,
    mean,
    over_seeds,
    settings_text,
    tuning_table,
)
from .joint_tables import joint_tables
from .markdown import spread, table
from .results import Record
from .rows import ROWS
from .speed_tables import case_tables, memory_table, peer_tables, primary, ratios_for, select
from .task_tables import task_tables

ALL_SPANS = ("full", "probe")
# The row of the speed tables that is two-stage with the settings it ships with.
SHIPPED = "two-stage, threshold 0.01"
OURS = ("two-stage", "probe", "full")


def f1_table(rows: Rows, speed: Sequence[Record]) -> str:
    """The main table of a data set."""
    ratios = ratios_for(speed, "sentences")
    body = []
    for row in [name for name in ROWS if name in rows]:
        runs = rows[row]

        def values(get: Callable[[Record], float], runs: list[Record] = runs) -> str:
            return over_seeds(runs, get)

        recall = "-" if row == "token" else values(lambda x: x["recall_test"])
        words, ratio = ratios.get(row, ("-", "-"))
        if row == "two-stage" and SHIPPED in ratios:
            row, words, ratio = f"{row}; speed with its threshold", *ratios[SHIPPED]
        body.append(
            [
                row,
                values(lambda x: x["test"]["f"]),
                values(lambda x: x["test_raw"]["f"]),
                values(lambda x: x["test"]["p"]) + " / " + values(lambda x: x["test"]["r"]),
                values(lambda x: x["dev"]["f"]),
                ", ".join(f"{run['bias']:g}" for run in runs),
                recall,
                settings_text(runs[0]),
                _train_seconds(runs, speed),
                _train_peak(runs),
                words,
                ratio,
            ]
        )
    header = ["row", "test F1", "without bias", "test P / R", "dev F1", "bias of each seed"]
    header += ["candidate recall", "chosen on dev", "train s", "train peak MiB"]
    header += ["words/s", "time against token"]
    return table(header, body)


def _train_seconds(runs: Sequence[Record], speed: Sequence[Record]) -> str:
    """Steps times the median step timed with the rows interleaved; where that was not measured,
    the time of the runs themselves, which other processes may have slowed down."""
    timed = primary(speed, "train")
    if timed is not None and runs[0]["row"] in timed["seconds"]:
        return f"{runs[0]['steps'] * statistics.median(timed['seconds'][runs[0]['row']]):.0f}"
    jobs = max(run["jobs"] for run in runs)
    note = f" ({jobs} at once)" if jobs > 1 else ""
    return spread([run["train_seconds"] for run in runs], 0) + note


def _train_peak(runs: Sequence[Record]) -> str:
    """On the CPU the high-water mark is that of all runs of a process, so it says nothing."""
    if runs[0]["device"].startswith("CPU"):
        return "-"
    return spread([run["train_peak_mib"] for run in runs], 0)


def inference_table(runs: Sequence[Record]) -> str:
    """Two-stage with more or fewer candidates at inference, same weights and bias."""
    body = []
    for name in dict.fromkeys(name for run in runs for name in run.get("at_inference", {})):
        at = [run["at_inference"][name] for run in runs if name in run.get("at_inference", {})]
        cells = [name]
        for part in ("dev", "test"):
            cells.append(spread([x[part]["f"] for x in at]))
            cells.append(spread([x[part]["recall"] for x in at]))
        asked = [x["test"]["asked"] for x in at if "asked" in x["test"]]
        body.append([*cells, spread(asked, 2) if asked else "-"])
    header = ["kept", "dev F1", "dev recall", "test F1", "test recall", "asked a word"]
    return table(header, body)


def compared(rows: Rows) -> list[tuple[str, str]]:
    """(other, ours): what the aims compare."""
    ours = [row for row in OURS if row in rows]
    pairs = []
    if "two-stage" in rows:
        pairs += [(other, "two-stage") for other in ROWS if other in rows and other != "two-stage"]
    if ours:
        best = max(ours, key=lambda row: mean(rows[row], "test"))
        pairs += [(x, best) for x in ("token", "spancat") if x in rows and best != "two-stage"]
    return pairs


def verdicts(rows: Rows, speed: Sequence[Record]) -> list[str]:
    """The aims, each with its figure and whether it is met."""
    lines = []

    def add(what: str, value: str, met: bool) -> None:
        lines.append(f"- {what}: {value}; {'met' if met else '**not met**'}.")

    spans = [row for row in ALL_SPANS if row in rows]
    if "two-stage" in rows and spans:
        best = max(spans, key=lambda row: mean(rows[row], "test"))
        gap = mean(rows["two-stage"], "test") - mean(rows[best], "test")
        add(
            f"two-stage against the best all-spans mode ({best}), >= -0.5 F1",
            f"{gap:+.2f}",
            gap >= -0.5,
        )
    ours = [row for row in OURS if row in rows]
    if ours:
        best = max(ours, key=lambda row: mean(rows[row], "test"))
        for other in [row for row in ("token", "spancat") if row in rows]:
            gap = mean(rows[best], "test") - mean(rows[other], "test")
            add(f"best of our modes ({best}) above {other}", f"{gap:+.2f} F1", gap > 0)
    for case in ("sentences", "long"):
        for what, top, bottom, limit, above in (
            ("words/s of two-stage against full, >= 6", "full", "two-stage", 6.0, True),
            ("time of two-stage against token, <= 1.9", "two-stage", "token", 1.9, False),
        ):
            shipped = (SHIPPED if name == "two-stage" else name for name in (top, bottom))
            found = select(speed, case, *shipped) or select(speed, case, top, bottom)
            if found is not None:
                met = found >= limit if above else found <= limit
                add(f"{what} ({case})", f"{found:.2f}", met)
    return lines


def render(records: Sequence[Record], n_samples: int = 10_000) -> str:
    """All tables, one section a data set."""
    out: list[str] = []
    runs = chosen_runs(records)
    for data, rows in runs.items():
        speed = [x for x in records if x["kind"] == "speed" and x["data"] == data]
        out += [f"## {data}", "", circumstances(rows), "", f1_table(rows, speed), ""]
        pairs = compared(rows)
        if pairs:
            out += [f"Paired bootstrap over documents, {HOW}:", ""]
            out += [difference_table(rows, pairs, n_samples), ""]
        if any(run.get("at_inference") for run in rows.get("two-stage", [])):
            out += ["Candidates kept at inference:", "", inference_table(rows["two-stage"]), ""]
        out += ["Aims:", "", *verdicts(rows, speed), ""]
    for title, text in case_tables([x for x in records if x["kind"] == "speed"]):
        out += [f"### {title}", "", text, ""]
    memory = [x for x in records if x["kind"] == "memory"]
    if memory:
        out += ["### Memory", "", memory_table(memory), ""]
    for title, text in peer_tables(records):
        out += [f"### Against transformers: {title}", "", text, ""]
    if runs:
        out += ["### Every run", "", tuning_table(records), ""]
    for title, text in [*task_tables(records, n_samples), *joint_tables(records)]:
        out += [f"## {title}", "", text, ""]
    return "\n".join(out)


def main(argv: Sequence[str] | None = None) -> None:
    p = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    p.add_argument("results", nargs="+", type=Path)
    p.add_argument("--samples", type=int, default=10_000, help="of the bootstrap")
    args = p.parse_args(argv)
    print(render(results.read(args.results), args.samples))


if __name__ == "__main__":
    main()
