"""Speed and memory records to tables: medians of ratios paired within a round."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .markdown import median_range, table
from .results import Record

CASES = {
    "sentences": "single sentences",
    "long": "long documents",
    "train": "training steps",
}


def primary(speed: Sequence[Record], case: str) -> Record | None:
    """The latest record of a case that gates: made documents, and process time on the CPU or
    wall time on a GPU."""
    found = [x for x in speed if x["case"] == case and x["input"] == "docs" and x["gates"]]
    return found[-1] if found else None


def paired_ratios(record: Record, top: str, bottom: str) -> list[float]:
    """seconds[top] / seconds[bottom] of every round."""
    return [a / b for a, b in zip(record["seconds"][top], record["seconds"][bottom])]


def select(speed: Sequence[Record], case: str, top: str, bottom: str) -> float | None:
    """Median paired ratio of two rows, or None where it was not measured."""
    record = primary(speed, case)
    if record is None or top not in record["seconds"] or bottom not in record["seconds"]:
        return None
    return statistics.median(paired_ratios(record, top, bottom))


def ratios_for(speed: Sequence[Record], case: str) -> dict[str, tuple[str, str]]:
    """row -> words a second, and time against token classification."""
    record = primary(speed, case)
    if record is None:
        return {}
    return {
        row: (words_per_second(record, row), _against(record, row, "token")) for row in rows(record)
    }


def rows(record: Record) -> list[str]:
    return list(record["seconds"])


def words_per_second(record: Record, row: str) -> str:
    return f"{record['n_words'] / statistics.median(record['seconds'][row]):,.0f}"


def _against(record: Record, row: str, other: str) -> str:
    return median_range(paired_ratios(record, row, other)) if other in record["seconds"] else "-"


def case_tables(speed: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """(title, table) of every measurement."""
    for record in speed:
        title = (
            f"{record['data']}: {CASES[record['case']]} from {record['input']}, "
            f"{record['clock']} time, {record['threads']} thread(s), {record['device']}, "
            f"{'bf16' if record['mixed_precision'] else 'fp32'}, {record['rounds']} rounds"
        )
        body = []
        for row in rows(record):
            faster = "-"
            if "full" in record["seconds"]:
                faster = median_range(paired_ratios(record, "full", row))
            seconds = f"{statistics.median(record['seconds'][row]):.3f}"
            body.append(
                [
                    row,
                    seconds,
                    words_per_second(record, row),
                    _against(record, row, "token"),
                    faster,
                ]
            )
        header = ["row", "seconds", "words/s", "time against token", "words/s against full"]
        yield title, table(header, body)


def memory_table(memory: Sequence[Record]) -> str:
    """Peaks of predicting, each row in a process of its own."""
    header = ["data", "row", "device", "peak MiB", "of it for predicting"]
    return table(
        header,
        [
            [x["data"], x["row"], x["device"], f"{x['peak_mib']:.0f}", f"{x['grown_mib']:.0f}"]
            for x in memory
        ],
    )


@dataclass(frozen=True)
class Target:
    """What a case of ``peer_speed`` is called, which side should take how much more of time or
    memory than which, and the least ratio."""

    name: str
    top: str
    bottom: str
    least: float


PEER_TARGETS = {
    "equal": Target("exact forward, equal lengths", "transformers", "ours", 1.25),
    "mixed": Target("exact forward, mixed lengths", "transformers", "ours", 2.2),
    "train": Target("exact training step, equal lengths", "transformers", "ours", 1.2),
    "sentences": Target("NER of sentences, two-stage", "transformers", "ours", 10.0),
    "document": Target("NER of a 512-piece document, two-stage", "transformers", "ours", 40.0),
    "inputs": Target("texts to inputs", "transformers", "ours", 25.0),
    "pipe": Target("`nlp.pipe` against its network", "network alone", "nlp.pipe", 0.95),
}
PEER_MEMORY_TARGETS = {
    "equal": Target("memory of a forward, equal lengths", "transformers", "ours", 3.0),
    "mixed": Target("memory of a forward, mixed lengths", "transformers", "ours", 3.0),
}


def peer_tables(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """(title, table) of each size, span length and batch of ``transformers``; of every case the
    latest record."""
    latest: dict[tuple[str, int, int, str], dict[tuple[str, str], Record]] = {}
    for record in records:
        if record["kind"] == "peer-memory" or (record["kind"] == "peer" and record["gates"]):
            settings = (record["size"], record["max_words"], record["peer_batch"], record["device"])
            group = latest.setdefault(settings, {})
            group[record["kind"], record["case"]] = record
    order = [("peer", case) for case in PEER_TARGETS]
    order += [("peer-memory", case) for case in PEER_MEMORY_TARGETS]
    header = ["what", "transformers", "ours", "ratio", "target", "", "largest difference"]
    for (size, max_words, batch, device), group in latest.items():
        first = next(iter(group.values()))
        title = (
            f"{size} network, spans of up to {max_words} words of {first['data']}, "
            f"{first['threads']} thread(s), {device}, fp32, transformers {first['transformers']} "
            f"in batches of {batch}"
        )
        rows = (row for key in order if key in group for row in _peer_rows(group[key]))
        yield title, table(header, rows)


def _peer_rows(record: Record) -> Iterator[list[str]]:
    """The row with a target, and one for every other way of either side."""
    memory = record["kind"] == "peer-memory"
    target = (PEER_MEMORY_TARGETS if memory else PEER_TARGETS)[record["case"]]
    values = record["grown_mib" if memory else "seconds"]

    def cell(side: str) -> str:
        middle = statistics.median(values[side])
        return f"{middle:.0f} MiB" if memory else f"{middle:.3g} s"

    def row(name: str, top: str, bottom: str, target_cells: list[str]) -> list[str]:
        ratios = [a / b for a, b in zip(values[top], values[bottom])]
        found = median_range(ratios) if len(ratios) > 1 else f"{ratios[0]:.2f}"
        return [name, cell(top), cell(bottom), found, *target_cells]

    ratio = statistics.median(a / b for a, b in zip(values[target.top], values[target.bottom]))
    verdict = "met" if ratio >= target.least else "**missed**"
    difference = record.get("difference")
    exact = "-" if difference is None else f"{difference:.0e}" if difference else "0"
    cells = [f">= {target.least:g}", verdict, exact]
    yield row(target.name, target.top, target.bottom, cells)
    for side in values:
        if side not in (target.top, target.bottom):
            ours = side.startswith(target.bottom)
            top, bottom = (target.top, side) if ours else (side, target.bottom)
            yield row(f"- {side}", top, bottom, ["", "", ""])
