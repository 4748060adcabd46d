"""JSON files of checkpoints: read with one clear error, written in one form."""

import json
from pathlib import Path
from typing import Any

from .errors import CheckpointError


def read_object(path: Path) -> dict[str, Any]:
    """The object that a file holds. Raises CheckpointError naming the file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError as err:
        raise CheckpointError(f"{path} cannot be read as JSON: it is nested too deeply.") from err
    except (OSError, ValueError) as err:
        raise CheckpointError(f"{path} cannot be read as JSON: {err}.") from err
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, not an object.")
    return value


def write_object(path: Path, data: dict[str, Any]) -> None:
    """Write an object for people and programs to read."""
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf8")
