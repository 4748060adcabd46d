"""JSON files of stages, and fingerprints of what stages read."""

import hashlib
from pathlib import Path
from typing import Any

import srsly

from ..errors import CorpusError, StageError
from ..files import whole_file

_SAMPLE = 1 << 20
_MADE_AGAIN = "Remove its folder: what is there is made again."


def read_json(path: Path, mend: str = _MADE_AGAIN) -> dict[str, Any]:
    """A file that ``write_json`` wrote. Raises StageError where it is damaged, which says how to
    mend that."""
    try:
        found = srsly.read_json(path)
    except ValueError as error:
        raise StageError(f"{path} is damaged: {error}. {mend}") from error
    if not isinstance(found, dict):
        raise StageError(f"{path} is damaged: it holds no object. {mend}")
    return found


def write_json(path: Path, data: Any) -> None:
    """Write a file that is whole, also after a power failure."""
    with whole_file(path, durable=True) as temporary:
        temporary.write_text(srsly.json_dumps(data, indent=1) + "\n", encoding="utf8")


def fingerprint(path: Path) -> str:
    """Size and a hash of the first and last MiB: dumps are too large to read twice. Raises
    CorpusError where the file is missing."""
    if not path.is_file():
        raise CorpusError(f"{path} is not a file.")
    size = path.stat().st_size
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_SAMPLE))
        file.seek(max(0, size - _SAMPLE))
        digest.update(file.read(_SAMPLE))
    return f"{size}:{digest.hexdigest()[:32]}"
