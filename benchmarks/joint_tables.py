"""Records of one shared encoder beside separate pipelines to Markdown."""

import statistics
from collections.abc import Iterator, Sequence

from .chosen import chosen_runs, circumstances, over_seeds
from .markdown import median_range, spread, table
from .results import Record
from .speed_tables import paired_ratios, words_per_second

NAMES = {
    "ents_f": "entities",
    "rels_f": "relations, end to end",
    "types_micro_f": "types, end to end",
    "gold_rels_f": "relations, gold entities",
    "gold_types_micro_f": "types, gold entities",
}


def joint_tables(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """(title, text) of scores, size and memory, and speed."""
    for data, rows in chosen_runs(records, "joint").items():
        body = []
        for row, runs in rows.items():
            scores = [spread([run["test"][name] for run in runs]) for name in NAMES]
            body.append([row, *scores, over_seeds(runs, lambda x: x["train_cpu_seconds"], 0)])
        text = table(["test F1", *NAMES.values(), "train CPU s"], body)
        yield f"One encoder for three tasks: {data}", f"{circumstances(rows)}\n\n{text}"
    sizes = [x for x in records if x["kind"] == "joint-size"]
    if sizes:
        yield "One encoder for three tasks: size and memory", size_table(sizes[-1])
    speeds = [x for x in records if x["kind"] == "joint-speed" and x["gates"]]
    if speeds:
        yield "One encoder for three tasks: speed", speed_table(speeds[-1])


def size_table(record: Record) -> str:
    """MiB on disk, in memory, and in memory beyond Python and its libraries."""
    nothing = record["resident_mib"]["nothing"]
    body = [
        [row, f"{n_bytes / 2**20:.0f}", f"{memory:.0f}", f"{memory - nothing:.0f}"]
        for row, n_bytes in record["bytes"].items()
        for memory in [record["resident_mib"][row]]
    ]
    header = ["pipelines", "MiB on disk", "MiB resident", "of it beyond the libraries"]
    return f"{record['device']}\n\n" + table(header, body)


def speed_table(record: Record) -> str:
    body = [
        [
            row,
            f"{statistics.median(seconds):.2f}",
            words_per_second(record, row),
            median_range(paired_ratios(record, row, "joint")),
        ]
        for row, seconds in record["seconds"].items()
    ]
    text = (
        f"`nlp.pipe` on {record['n_docs']} texts of {record['n_words']} words, "
        f"{record['rounds']} rounds, {record['clock']} time, {record['device']}."
    )
    return f"{text}\n\n" + table(["pipelines", "seconds", "words/s", "time against joint"], body)
