"""Results files to Markdown tables.

python -m benchmarks.tables results.jsonl speed.jsonl > tables.md
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from . import results
from .bootstrap import bootstrap
from .chosen import (
    HOW,
    Rows,
    chosen_runs,
    circumstances,
    counts,
    difference_table,
    settings_text,
)
from .markdown import markdown, median_range, spread
from .results import Record
from .rows import ROWS
from .task_rows import ROWS as TASK_ROWS

TITLES = {"run": "", "relation": "Relations: ", "typing": "Types: "}
JOINT_SCORES = {
    "ents_f": "entities",
    "nel_end_to_end_f": "links, end to end",
    "rels_f": "relations, end to end",
    "types_micro_f": "types, end to end",
    "qa_f1": "answers, end to end",
    "gold_nel_micro_f": "links, gold entities",
    "gold_rels_f": "relations, gold entities",
    "gold_types_micro_f": "types, gold entities",
    "gold_qa_f1": "answers, gold entities",
}
CROWD = {
    "mode": "row",
    "n_entities": "entities",
    "n_words": "words",
    "n_pairs": "pairs",
    "predict_seconds": "predict s",
    "predict_mib": "predict MiB",
    "update_seconds": "learn s",
    "update_mib": "learn MiB",
}


class Target(NamedTuple):
    """What a case of ``peer_speed`` is called, the least ratio of time or memory, and of which side
    over which."""

    name: str
    least: float
    top: str = "transformers"
    bottom: str = "ours"


PEER_TARGETS = {
    "equal": Target("exact forward, equal lengths", 1.25),
    "mixed": Target("exact forward, mixed lengths", 2.2),
    "train": Target("exact training step, equal lengths", 1.2),
    "sentences": Target("NER of sentences, two-stage", 10.0),
    "document": Target("NER of a 512-piece document, two-stage", 40.0),
    "inputs": Target("texts to inputs", 25.0),
    "pipe": Target("`nlp.pipe` against its network", 0.95, "network alone", "nlp.pipe"),
}
PEER_MEMORY_TARGETS = {
    "equal": Target("memory of a forward, equal lengths", 3.0),
    "mixed": Target("memory of a forward, mixed lengths", 3.0),
}


# Scores


def task_sections(records: Sequence[Record], n_samples: int) -> Iterator[tuple[str, str]]:
    """(title, text) of every data set of a task, and of all its runs."""
    for kind, title in TITLES.items():
        runs = chosen_runs(records, kind)
        for data, rows in runs.items():
            parts = [circumstances(rows), markdown(score_frame(rows, n_samples))]
            pairs = list(compared(rows))
            if pairs:
                parts += [f"Paired bootstrap over documents, {HOW}:"]
                parts += [difference_table(rows, pairs, n_samples)]
            if any(run.get("at_inference") for run in rows.get("two-stage", [])):
                parts += ["Candidates kept at inference:", markdown(kept_frame(rows["two-stage"]))]
            yield f"{title}{data}", "\n\n".join(parts)
        if runs:
            yield f"{title}every run", markdown(tuning_frame(records, kind))


def score_frame(rows: Rows, n_samples: int) -> pd.DataFrame:
    """Scores over seeds, the interval of test F1 over documents, and what was chosen on dev."""
    found = {}
    for row in [name for name in (*ROWS, *TASK_ROWS) if name in rows]:
        found[row] = score_row(rows[row], n_samples)
    return pd.DataFrame(found.values())


def score_row(runs: Sequence[Record], n_samples: int) -> dict[str, Any]:
    flat = pd.json_normalize(list(runs), max_level=1)

    def over_seeds(name: str, digits: int = 1) -> str | None:
        return spread(flat[name], digits) if name in flat else None

    first, n_docs = runs[0], runs[0]["n_docs"]
    drawn = bootstrap(counts(runs, n_docs), n_samples)
    per_document = 1000 * flat.predict_cpu_seconds / n_docs if "average" in first else None
    return {
        "row": row_name(first),
        f"test {first['average']} F1" if "average" in first else "test F1": over_seeds("test.f"),
        "interval": f"[{drawn.low:.2f}, {drawn.high:.2f}]",
        "without bias": over_seeds("test_raw.f"),
        "test P / R": f"{over_seeds('test.p')} / {over_seeds('test.r')}",
        "micro F1": over_seeds("test_micro.f"),
        "dev F1": over_seeds("dev.f"),
        "bias of each seed": each(runs, "bias"),
        "candidate recall": None if first["row"] == "token" else over_seeds("recall_test"),
        "chosen on dev": settings_text(first),
        "threshold of each seed": each(runs, "threshold") if first.get("threshold") else None,
        "train s": over_seeds("train_seconds", 0),
        "train CPU s": over_seeds("train_cpu_seconds", 0),
        "predict CPU ms a document": None if per_document is None else spread(per_document, 0),
    }


def each(runs: Sequence[Record], name: str) -> str | None:
    return ", ".join(f"{run[name]:g}" for run in runs) if name in runs[0] else None


def row_name(run: Record) -> str:
    """What a row is, and the limits that its table has to tell."""
    settings = run["settings"]
    limits = []
    if settings.get("pairs"):
        limits.append(f"learned from {settings['pairs']} pairs a document, half related")
    if settings.get("scored"):
        limits.append(f"scored on the first {run['n_docs']} of dev and of test")
    return run["row"] + (f" ({', '.join(limits)})" if limits else "")


def compared(rows: Rows) -> Iterator[tuple[str, str]]:
    """(other, ours): what the aims compare."""
    pairs = [(other, "two-stage") for other in ROWS if other != "two-stage"]
    pairs += [("token", "probe"), ("spancat", "probe")]
    pairs += [("baseline", "probe"), ("baseline", "markers"), ("markers", "probe")]
    return ((b, a) for b, a in pairs if a in rows and b in rows)


def kept_frame(runs: Sequence[Record]) -> pd.DataFrame:
    """Two-stage with more or fewer candidates at inference, same weights and bias."""
    found = pd.DataFrame(
        {"kept": name, **{f"{part} {key}": x for part in parts for key, x in parts[part].items()}}
        for run in runs
        for name, parts in run.get("at_inference", {}).items()
    )
    names = {"f": "F1", "recall": "recall", "asked": "asked a word"}
    columns = [f"{part} {key}" for part in ("dev", "test") for key in names]
    columns = [name for name in columns if name in found and name != "dev asked"]
    shown = found.groupby("kept", sort=False)[columns]
    frame = shown.agg(lambda x: spread(x, 2 if x.name == "test asked" else 1)).reset_index()
    return frame.rename(columns=lambda x: " ".join(names.get(word, word) for word in x.split()))


def tuning_frame(records: Iterable[Record], kind: str) -> pd.DataFrame:
    """Dev F1 of every setting tried."""
    return pd.DataFrame(
        {
            "data": x["data"],
            "row": x["row"],
            "settings": settings_text(x),
            "seed": x["seed"],
            "dev F1": f"{x['dev']['f']:.2f}",
            "test F1": f"{x['test']['f']:.2f}",
        }
        for x in records
        if x["kind"] == kind
    ).sort_values(["data", "row", "settings", "seed"])


# Seconds, of rows that were timed in turns


def seconds_frame(record: Record, against: Sequence[str] = (), over: str = "") -> pd.DataFrame:
    """Median seconds and words per second of each row; medians of the ratios within a round, of its
    time to that of rows in ``against``, and of the time of ``over`` to its own."""
    seconds = pd.DataFrame(record["seconds"])
    frame = pd.DataFrame({"row": seconds.columns})
    frame["seconds"] = [f"{x:.3f}" for x in seconds.median()]
    frame["words/s"] = [f"{record['n_words'] / x:,.0f}" for x in seconds.median()]
    for name in [name for name in against if name in seconds]:
        ratios = seconds.div(seconds[name], axis=0)
        frame[f"time against {name}"] = [median_range(ratios[x]) for x in seconds]
    if over in seconds:
        ratios = seconds.rdiv(seconds[over], axis=0)
        frame[f"words/s against {over}"] = [median_range(ratios[x]) for x in seconds]
    return frame


def speed_sections(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """NER, relations and pipelines on one encoder, by the clock that counts."""
    for x in records:
        if x["kind"] == "speed" and x["gates"]:
            title = f"{x['data']}: {x['case']} from {x['input']}, {timed(x)}"
            frame = seconds_frame(x, ["token"], "full")
            if x["case"] == "whole training":
                sums = pd.DataFrame(x["seconds"]).sum()
                frame["all seconds"] = [f"{value:.1f}" for value in sums]
                if "token" in sums:
                    frame["all against token"] = [f"{x:.2f}" for x in sums / sums["token"]]
            yield title, markdown(frame)
    for kind, title, against in (
        ("relation-speed", "Relations: time of prediction", "probe"),
        ("joint-speed", "One encoder for several tasks: speed", "joint"),
    ):
        latest = {x.get("data"): x for x in records if x["kind"] == kind and x["gates"]}
        for data, x in latest.items():
            frame = seconds_frame(x, [against])
            medians = pd.DataFrame(x["seconds"]).median().to_numpy() / x["n_docs"]
            frame.insert(2, "seconds a document", [f"{value:.3g}" for value in medians])
            pairs = f", {x['n_pairs'] / x['n_docs']:.0f} pairs a document" if data else ""
            text = f"{x['n_docs']} documents of {x['n_words']} words{pairs}, {timed(x)}."
            yield f"{title}{f', {data}' if data else ''}", f"{text}\n\n{markdown(frame)}"


def timed(record: Record) -> str:
    precision = "bf16" if record.get("mixed_precision") else "fp32"
    return (
        f"{record['clock']} time, {record['threads']} thread(s), {record['device']}, {precision}, "
        f"{record['rounds']} rounds"
    )


def peer_sections(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """(title, table) of each size, span length and batch of ``transformers``; of every case the
    latest record."""
    latest: dict[tuple[Any, ...], dict[tuple[str, str], Record]] = {}
    for x in records:
        if x["kind"] == "peer-memory" or (x["kind"] == "peer" and x["gates"]):
            settings = (x["size"], x["max_words"], x["peer_batch"], x["device"])
            latest.setdefault(settings, {})[x["kind"], x["case"]] = x
    order = [("peer", case) for case in PEER_TARGETS]
    order += [("peer-memory", case) for case in PEER_MEMORY_TARGETS]
    for (size, max_words, batch, device), group in latest.items():
        first = next(iter(group.values()))
        title = (
            f"Against transformers: {size} network, spans of up to {max_words} words of "
            f"{first['data']}, {first['threads']} thread(s), {device}, fp32, transformers "
            f"{first['transformers']} in batches of {batch}"
        )
        rows = [row for key in order if key in group for row in peer_rows(group[key])]
        yield title, markdown(pd.DataFrame(rows))


def peer_rows(record: Record) -> Iterator[dict[str, str]]:
    """The row with a target, and one for every other way of either side."""
    memory = record["kind"] == "peer-memory"
    target = (PEER_MEMORY_TARGETS if memory else PEER_TARGETS)[record["case"]]
    values = pd.DataFrame(record["grown_mib" if memory else "seconds"])

    def row(name: str, top: str, bottom: str) -> dict[str, str]:
        ratios = values[top] / values[bottom]
        medians = values[[top, bottom]].median()
        cells = [f"{x:.0f} MiB" if memory else f"{x:.3g} s" for x in medians]
        shown = median_range(ratios) if len(ratios) > 1 else f"{ratios[0]:.2f}"
        found = {"what": name, "transformers": cells[0], "ours": cells[1], "ratio": shown}
        return found | {"target": "", "met": "", "largest difference": ""}

    met = (values[target.top] / values[target.bottom]).median() >= target.least
    difference = record.get("difference")
    yield row(target.name, target.top, target.bottom) | {
        "target": f">= {target.least:g}",
        "met": "met" if met else "**missed**",
        "largest difference": "-" if difference is None else f"{difference:.0e}",
    }
    for side in values.columns.difference([target.top, target.bottom], sort=False):
        ours = side.startswith(target.bottom)
        yield row(f"- {side}", *((target.top, side) if ours else (side, target.bottom)))


# Memory, and one encoder for several tasks


def memory_sections(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    crowd = pd.DataFrame([x for x in records if x["kind"] == "relation-crowd"])
    if len(crowd):
        crowd = crowd.drop_duplicates(["mode", "n_entities"], keep="last")[list(CROWD)].round(1)
        yield "Relations: documents of many entities", markdown(crowd.rename(columns=CROWD))
    sizes = [x for x in records if x["kind"] == "joint-size"]
    if sizes:
        last = sizes[-1]
        memory = pd.Series(last["resident_mib"])
        frame = pd.DataFrame({"MiB on disk": pd.Series(last["bytes"]) / 2**20})
        frame["MiB resident"] = memory
        frame["of it beyond the libraries"] = memory - memory["nothing"]
        frame = frame.round(0).astype(int).reset_index(names="pipelines")
        yield "One encoder for several tasks: size and memory", markdown(frame)


def joint_sections(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    for data, rows in chosen_runs(records, "joint").items():
        body = []
        for row, runs in rows.items():
            tests = pd.DataFrame([run["test"] for run in runs])
            cells = {x: spread(tests[name]) for name, x in JOINT_SCORES.items() if name in tests}
            cpu = spread((run["train_cpu_seconds"] for run in runs), 0)
            body.append({"test F1": row, **cells, "train CPU s": cpu})
        text = f"{circumstances(rows)}\n\n{markdown(pd.DataFrame(body))}"
        yield f"One encoder for several tasks: {data}", text


def render(records: Sequence[Record], n_samples: int = 10_000) -> str:
    """All tables, one section a data set or measurement."""
    sections = [
        *task_sections(records, n_samples),
        *joint_sections(records),
        *speed_sections(records),
        *memory_sections(records),
        *peer_sections(records),
    ]
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections)


def main(argv: Sequence[str] | None = None) -> None:
    p = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    p.add_argument("results", nargs="+", type=Path)
    p.add_argument("--samples", type=int, default=10_000, help="of the bootstrap")
    args = p.parse_args(argv)
    print(render(results.read(args.results), args.samples))


if __name__ == "__main__":
    main()
