"""The results file: one JSON object a line, appended by any number of processes."""

import argparse
import fcntl
import json
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import runtime

Record = dict[str, Any]


def revision() -> str:
    """Which code runs: the commit of the clone, with "-dirty" if files were changed; outside of a
    clone, the version of the package."""
    of_commit = ["describe", "--always", "--dirty", "--exclude=*"]  # the hash, not the last tag
    command = ["git", "-C", str(Path(__file__).parent), *of_commit]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return version("spacy-luke")


REVISION = revision()
"""When the process starts: a run is long, and files may change meanwhile."""


def append(path: Path, record: Record) -> None:
    """Add a line, with the revision; processes that write at once take turns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {**record, "revision": REVISION}
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
    with path.open("a", encoding="utf8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(line)
        file.flush()


def read(paths: Iterable[Path]) -> list[Record]:
    """All records; a last line cut off by an interruption is left out. Raises ValueError, with the
    line, for another that is not a record."""
    records = []
    for path in paths:
        if path.exists():
            *lines, last = path.read_text(encoding="utf8").split("\n")
            records += [_record(line, f"{path}, line {i}") for i, line in enumerate(lines, 1)]
            with suppress(json.JSONDecodeError):
                records.append(json.loads(last))
    return records


def _record(line: str, where: str) -> Record:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as err:
        raise ValueError(f"{where} is not a record: {err}. Remove it to run it again.") from err
    if not isinstance(record, dict):
        raise ValueError(f"{where} is not a record, but {line[:60]!r}.")
    return record


def of_kind(path: Path, kind: str) -> list[Record]:
    return [record for record in read([path]) if record["kind"] == kind]


def identity(data: str, row: str, seed: int, **settings: Any) -> Record:
    """What tells a run from others."""
    return {"data": data, "row": row, "seed": seed, "settings": settings}


def run_key(record: Record) -> str:
    """The same for two records of the same row, data set, seed and settings."""
    return json.dumps([record[k] for k in ("data", "row", "seed", "settings")], sort_keys=True)


def main(
    args: argparse.Namespace,
    kind: str,
    identities: Callable[[argparse.Namespace], Iterable[Record]],
    run: Callable[[argparse.Namespace, Record], Record],
    table: Callable[[list[Record]], str],
) -> int:
    """With ``--table``, print what ``args.results`` holds. Else make the runs that it has no record
    of, append what they find, and print it."""
    recorded = of_kind(args.results, kind)
    if args.table:
        print(table(recorded))
        return 0
    runtime.start(args.gpu_id, args.threads)
    args.work.mkdir(parents=True, exist_ok=True)
    done = {run_key(record) for record in recorded}
    for named in identities(args):
        if run_key(named) not in done:
            record = {"kind": kind, **named, **run(args, named)}
            append(args.results, record)
            print(table([record]), flush=True)
    return 0
