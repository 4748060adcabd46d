"""Candidates of the knowledge base: recall on public data, and time and memory with invented names.

python -m benchmarks.knowledge_base --data FOLDER
python -m benchmarks.knowledge_base --entities 1000000
python -m benchmarks.knowledge_base --table

The first command looks up the mentions of GeoVirus and of the NCBI disease corpus. The second
builds a knowledge base of so many entities with three aliases and a vector each, and beside it
``InMemoryLookupKB`` and an index of SQLite (aliases alone); every figure is of a process of its
own. Both append to ``results.jsonl`` in ``--work``.
"""

import json
import random
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.candidates import CandidateSettings
from spacy_luke.kb.knowledge_base import MappedKB

from . import linking_data, results, runtime
from .datasets import default_folder
from .linking_data import LinkedMention
from .markdown import markdown
from .other_indices import Lookup, SqliteLookup, build_sqlite, lookup_in, lookup_kb

N_MENTIONS = 1_000
WIDTH = 64
"""Of invented vectors; the default of spaCy's ``entity_linker``."""
N_SLOW = 50
"""Mentions that are looked up by SQLite."""
ROWS = {"mapped": "MappedKB", "lookup": "InMemoryLookupKB", "sqlite": "SQLite, FTS5 with trigrams"}
SETTINGS = {
    "normalised": CandidateSettings(fuzzy="never"),
    "similar (default)": CandidateSettings(),
    "similar (always, any likeness)": CandidateSettings(fuzzy="always", min_likeness=0.01),
}


def look_up_data(folder: Path, work: Path) -> list[results.Record]:
    """Recall and time of every data set and setting."""
    records = []
    for name, read in (("diseases", linking_data.diseases), ("places", linking_data.places)):
        entities, parts = read(folder, work)
        build_kb(entities, work / name, "en")
        kb = MappedKB.open(work / name, Vocab())
        lookups = {"exact (InMemoryLookupKB)": lookup_in(lookup_kb(entities))}
        lookups |= {x: mapped_lookup(kb, settings) for x, settings in SETTINGS.items()}
        for part, mentions in parts.items():
            for row, lookup in lookups.items():
                records.append(
                    {"kind": "recall", "data": part, "row": row, **scores(mentions, lookup)}
                )
    return records


def scores(mentions: Sequence[LinkedMention], lookup: Lookup) -> dict[str, float]:
    """recall_1, recall_30: of mentions whose entity is in the knowledge base. nil_candidates: share
    of the others that have a candidate. ms: per mention, each looked up alone."""
    start = time.perf_counter()
    rows = [lookup([x.text])[0] for x in mentions]
    seconds = time.perf_counter() - start
    linked = [(x.ids, row) for x, row in zip(mentions, rows) if x.ids]
    others = [row for x, row in zip(mentions, rows) if not x.ids]
    return {
        "mentions": len(linked),
        "recall_1": sum(bool(ids & set(row[:1])) for ids, row in linked) / len(linked),
        "recall_30": sum(bool(ids & set(row[:30])) for ids, row in linked) / len(linked),
        "nil_mentions": len(others),
        "nil_candidates": sum(map(bool, others)) / max(len(others), 1),
        "ms": 1000 * seconds / len(mentions),
    }


def mapped_lookup(kb: MappedKB, settings: CandidateSettings) -> Lookup:
    return lambda texts: [[x.id for x in row] for row in kb.candidates(texts, settings)]


def build(n: int, work: Path, kind: str) -> results.Record:
    """Build a knowledge base of invented names; run in a process of its own for its memory."""
    before, start = runtime.resident(), time.perf_counter()
    folder = work / f"{kind}-{n}"
    record: results.Record = {}
    if kind == "mapped":
        findings = build_kb(linking_data.invented(n), folder, "en")
        record["findings"] = dict(findings.counts)
        _add_vectors(folder, n)
    elif kind == "lookup":
        vectors = np.concatenate(list(linking_data.invented_vectors(n, WIDTH)))
        lookup_kb(list(linking_data.invented(n)), vectors).to_disk(folder)
    else:
        build_sqlite(linking_data.invented(n), folder)
    record["build_seconds"] = time.perf_counter() - start
    record["build_mib"] = runtime.peak_memory(-1) - before
    record["disk_mib"] = sum(x.stat().st_size for x in folder.iterdir()) / 2**20
    return record


def _add_vectors(folder: Path, n: int) -> None:
    kb = MappedKB.open(folder, Vocab())
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        file = Path(scratch) / "vectors.npy"
        vectors = np.lib.format.open_memmap(file, "w+", np.float32, (n, WIDTH))
        start = 0
        for block in linking_data.invented_vectors(n, WIDTH):
            vectors[start : start + len(block)] = block
            start += len(block)
        vectors.flush()
        kb.set_vectors(np.load(file, mmap_mode="r"), "invented")
        kb.to_disk(folder)


def look_up(n: int, work: Path, kind: str) -> results.Record:
    """Open it and look names up; in a process of its own."""
    folder, before, start = work / f"{kind}-{n}", runtime.resident_trimmed(), time.perf_counter()
    mapped = stock = None
    if kind == "mapped":
        mapped = MappedKB.open(folder, Vocab())
        lookup = mapped_lookup(mapped, CandidateSettings())
    elif kind == "lookup":
        stock = InMemoryLookupKB(Vocab(), WIDTH)
        stock.from_disk(folder)
        lookup = lookup_in(stock)
    else:
        lookup = SqliteLookup(folder)
    record: results.Record = {"open_seconds": time.perf_counter() - start}
    record["open_mib"] = runtime.resident_trimmed() - before
    rng = random.Random(1)
    n_mentions = N_SLOW if kind == "sqlite" else N_MENTIONS
    entities = list(islice(linking_data.invented(n), 0, None, n // n_mentions))[:n_mentions]
    texts = {}
    if kind != "sqlite":
        texts["exact"] = [x.name for x in entities]
    if kind != "lookup":
        texts["similar"] = [linking_data.misspelt(x.name, rng) for x in entities]
    kb = {"mapped": mapped, "lookup": stock, "sqlite": None}[kind]
    if kb is not None:
        start = time.perf_counter()
        for x in entities:
            kb.get_vector(x.id)
        record["vectors_per_second"] = len(entities) / (time.perf_counter() - start)
    for name, mentions in texts.items():
        rows, seconds, most = _timed(lookup, mentions)
        record[f"{name}_per_second"] = len(rows) / seconds
        record[f"{name}_mib"] = most - before
        record[f"{name}_recall_1"] = sum(x.id in row[:1] for x, row in zip(entities, rows)) / len(
            rows
        )
        record[f"{name}_recall_30"] = sum(x.id in row[:30] for x, row in zip(entities, rows)) / len(
            rows
        )
    return record


def _timed(lookup: Lookup, mentions: Sequence[str]) -> tuple[list[list[str]], float, float]:
    """The ids of each mention, looked up alone; seconds, and the most resident MiB."""
    rows, seconds, most = [], 0.0, 0.0
    for text in mentions:
        start = time.perf_counter()
        rows += lookup([text])
        seconds += time.perf_counter() - start
        most = max(most, runtime.resident())
    return rows, seconds, most


def tables(records: Sequence[results.Record]) -> str:
    """Markdown of the kinds of results that there are."""
    kinds = {x["kind"] for x in records}
    made = {"recall": recall_table, "size": size_table}
    return "\n\n".join(make(records) for kind, make in made.items() if kind in kinds)


def recall_table(records: Sequence[results.Record]) -> str:
    rows = [
        {
            "mentions": f"{x['data']} ({x['mentions']:,})",
            "candidates": x["row"],
            "recall at 1": f"{x['recall_1']:.3f}",
            "at 30": f"{x['recall_30']:.3f}",
            "mentions of other things that have a candidate": f"{x['nil_candidates']:.2f}",
            "ms per mention": f"{x['ms']:.2f}",
        }
        for x in records
        if x["kind"] == "recall"
    ]
    return markdown(pd.DataFrame(rows))


def size_table(records: Sequence[results.Record]) -> str:
    columns: dict[str, dict[str, str]] = {}
    for x in (x for x in records if x["kind"] == "size"):
        columns[f"{x['row']}, {x['n']:,} entities"] = {
            "build, s": f"{x['build_seconds']:.0f}",
            "build, most memory, MiB": f"{x['build_mib']:.0f}",
            "size, MiB": f"{x['disk_mib']:.0f}",
            "open, s": f"{x['open_seconds']:.3f}",
            "memory after opening, MiB": f"{x['open_mib']:.0f}",
            **(
                {"vectors per second": f"{x['vectors_per_second']:,.0f}"}
                if "vectors_per_second" in x
                else {}
            ),
            **_look_up_rows(x, "exact"),
            **_look_up_rows(x, "similar"),
        }
    frame = pd.DataFrame(columns).rename_axis("").reset_index()
    return markdown(frame)


def _look_up_rows(record: results.Record, name: str) -> dict[str, str]:
    if f"{name}_mib" not in record:
        return {}
    kind = "names" if name == "exact" else "misspelt names"
    speed = record[f"{name}_per_second"]
    return {
        f"{kind} per second": f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}",
        f"most memory during look-ups of {kind}, MiB": f"{record[f'{name}_mib']:.0f}",
        f"{kind}: recall at 1 / 30": f"{record[f'{name}_recall_1']:.3f} / "
        f"{record[f'{name}_recall_30']:.3f}",
    }


def main(argv: Sequence[str] | None = None) -> None:
    p = runtime.parser("knowledge_base", __doc__, "build/kb", "results.jsonl")
    p.add_argument("--data", type=Path, default=default_folder(), help="folder of the data sets")
    p.add_argument("--entities", type=int, nargs="+", help="numbers of invented entities")
    p.add_argument("--kinds", nargs="+", choices=ROWS, default=list(ROWS))
    p.add_argument("--table", action="store_true", help="print the results")
    p.add_argument("--step", choices=("build", "look_up"), help="what one process does")
    args = runtime.parsed(p, argv)
    args.work.mkdir(parents=True, exist_ok=True)
    if args.table:
        records = results.read([args.results])
        print(tables(records))
    elif args.step:
        step = {"build": build, "look_up": look_up}[args.step]
        print(json.dumps(step(args.entities[0], args.work, args.kinds[0])))
    elif args.entities:
        for n in args.entities:
            for kind in args.kinds:
                record = {"kind": "size", "row": ROWS[kind], "n": n}
                for step_name in ("build", "look_up"):
                    record |= _step(step_name, n, kind, args.work)
                results.append(args.results, record)
    else:
        for record in look_up_data(args.data, args.work):
            results.append(args.results, record)


def _step(step: str, n: int, kind: str, work: Path) -> dict[str, Any]:
    argv = ["--step", step, "--entities", str(n), "--kinds", kind, "--work", str(work)]
    return runtime.in_fresh_process("knowledge_base", argv)


if __name__ == "__main__":
    main()
