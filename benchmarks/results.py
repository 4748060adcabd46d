"""The results file: one JSON object a line, appended by any number of processes."""

import fcntl
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """Add a line; processes that write at once take turns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
    with path.open("a", encoding="utf8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(line)
        file.flush()


def read(paths: Iterable[Path]) -> list[Record]:
    """All records; a last line cut off by an interruption is left out."""
    records = []
    for path in paths:
        if path.exists():
            for line in path.read_text(encoding="utf8").split("\n"):
                try:
                    records.append(json.loads(line))
                except json.JSONDecodeError:
                    continue
    return records


def run_key(record: Record) -> str:
    """The same for two records of the same row, data set, seed and settings."""
    return json.dumps([record[k] for k in ("data", "row", "seed", "settings")], sort_keys=True)
