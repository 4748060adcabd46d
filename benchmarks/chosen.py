"""The runs that count, and what the tables of all tasks have in common."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from . import results
from .bootstrap import Counts, count, paired_bootstrap
from .markdown import table
from .results import Record
from .scoring import Entity, unpack_entities

Rows = dict[str, list[Record]]
HOW = "95 %, mean of the seeds"


def chosen_runs(
    records: Iterable[Record], kind: str = "run", beside: Iterable[Record] = ()
) -> dict[str, Rows]:
    """data set -> row -> one run a seed, with the settings that won on dev.

    A data set that was trained on in several sizes, also in records that these are shown beside, is
    one for each, named by its size. Of a row's settings those count that most seeds have; among
    equals those that were asked about most documents, then those with the best dev F1.
    """
    groups: dict[tuple[str, str], dict[str, dict[int, Record]]] = defaultdict(dict)
    records = [record for record in records if record["kind"] == kind]
    sizes: dict[str, set[int]] = defaultdict(set)
    for record in [*records, *(x for x in beside if x["kind"] == kind)]:
        sizes[record["data"]].add(_size(record))
    for record in records:
        data, size = record["data"], _size(record)
        if size and len(sizes[data]) > 1:
            data = f"{data}, {size:,} sentences"
        settings = results.run_key({**record, "seed": 0})
        groups[data, record["row"]].setdefault(settings, {})[record["seed"]] = record
    chosen: dict[str, Rows] = defaultdict(dict)
    for (data, row), by_settings in groups.items():
        best = max(
            by_settings.values(),
            key=lambda x: (len(x), min(y["n_docs"] for y in x.values()), mean(x.values(), "dev")),
        )
        chosen[data][row] = [best[seed] for seed in sorted(best)]
    return chosen


def _size(record: Record) -> int:
    """The sentences that a run was trained on at most; 0: all."""
    return int(record["settings"].get("train_limit") or 0)


def mean(runs: Iterable[Record], part: str) -> float:
    return statistics.fmean(run[part]["f"] for run in runs)


def with_shared_seeds(
    a: Iterable[Record], b: Iterable[Record]
) -> tuple[list[Record], list[Record]]:
    """The runs of two rows whose seeds both have, in the order of the seeds."""
    one, other = ({run["seed"]: run for run in runs} for runs in (a, b))
    both = sorted(one.keys() & other.keys())
    return [one[x] for x in both], [other[x] for x in both]


def counts(runs: Sequence[Record], n_docs: int) -> Counts:
    """For the bootstrap: what is right, predicted and gold in each of the first documents."""
    first = runs[0]

    def unpacked(run: Record, part: str) -> list[Entity]:
        return [x for x in unpack_entities(run[part], run["labels"]) if x[0] < n_docs]

    found = [unpacked(run, "predicted") for run in runs]
    classes = first["labels"] if first.get("average") == "macro" else None
    return count(found, unpacked(first, "gold"), n_docs, classes)


def difference_table(rows: Rows, pairs: Iterable[tuple[str, str]], n_samples: int) -> str:
    """Test F1 of ``a`` over that of ``b``, for pairs (b, a), in the documents scored in both."""
    body = []
    for b, a in pairs:
        n_docs = _common_docs([*rows[b], *rows[a]])
        found = paired_bootstrap(counts(rows[b], n_docs), counts(rows[a], n_docs), n_samples)
        interval = f"[{found.low:+.2f}, {found.high:+.2f}]"
        some = any(n_docs < run["n_docs"] for run in (*rows[b], *rows[a]))
        where = f" (first {n_docs} documents)" if some else ""
        body.append([f"{a} - {b}{where}", f"{found.value:+.2f}", interval])
    return table(["difference", "test F1", "interval"], body)


def circumstances(rows: Rows, unit: str = "documents") -> str:
    """Where and how the runs of a data set were trained."""
    first = next(iter(rows.values()))[0]
    seeds = sorted({run["seed"] for group in rows.values() for run in group})
    size = first["settings"].get("batch_size")
    return (
        f"{first['device']}, {first['steps']} steps"
        f"{'' if size is None else f' of {size} {unit}'}, "
        f"{'bf16' if first['settings']['mixed_precision'] else 'fp32'}, seeds "
        f"{', '.join(map(str, seeds))}; mean ± standard deviation over seeds."
    )


def _common_docs(runs: Sequence[Record]) -> int:
    """How many test documents all were asked about: all, or the first ones where a run says so."""
    whole = {run["n_docs"] for run in runs if not run["settings"].get("scored")}
    if len(whole) > 1:
        raise ValueError(f"Runs on test sets of {sorted(whole)} documents cannot be compared.")
    return min(run["n_docs"] for run in runs)


def settings_text(run: Record) -> str:
    settings = run["settings"]
    parts = [f"rate {settings['learn_rate']:g}"]
    if _size(run):
        parts.append(f"first {_size(run):,} sentences")
    if settings.get("negative_weight") is not None:
        parts.append(f"negative_weight {settings['negative_weight']:g}")
    if settings.get("pairs"):
        parts.append(f"{settings['pairs']} pairs a document")
    if settings.get("scored"):
        parts.append(f"{run['n_docs']} test documents")
    for name, value in settings.get("overrides", {}).items():
        parts.append(f"{name.rpartition('.')[2]} {value}")
    return ", ".join(parts)
