"""JSON files of stages, and fingerprints of input files."""

import hashlib
from pathlib import Path
from typing import Any

import srsly

from ..errors import CorpusError, StageError
from ..files import whole_file

_BLOCK = 1 << 20
_REMEDY = "Remove its folder and start again: its content is made again."


def read_json(path: Path, remedy: str = _REMEDY) -> dict[str, Any]:
    """Read a file of ``write_json``. Raises StageError, with the remedy, if it is damaged."""
    try:
        data = srsly.read_json(path)
    except ValueError as error:
        raise StageError(f"{path} is damaged: {error}. {remedy}") from error
    if not isinstance(data, dict):
        raise StageError(f"{path} is damaged: it does not contain an object. {remedy}")
    return data


def write_json(path: Path, data: Any) -> None:
    """Write a file atomically and sync it to disk."""
    with whole_file(path, durable=True) as temporary:
        temporary.write_text(srsly.json_dumps(data, indent=1) + "\n", encoding="utf8")


def fingerprint(path: Path) -> str:
    """Size and hash of a file. All of it is read, which takes little time beside what is done with
    it: an edit need not change the size. Raises CorpusError if the file is missing."""
    if not path.is_file():
        raise CorpusError(f"{path} is not a file.")
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return f"{path.stat().st_size}:{digest.hexdigest()}"
