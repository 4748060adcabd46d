"""Speed and memory records to tables: medians of ratios paired within a round."""

import statistics
from collections.abc import Iterator, Sequence

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
