"""Numbered lines of a UTF-8 file."""

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import CorpusError

BOM = codecs.BOM_UTF8
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
Advance = Callable[[int], object]


def ignore_progress(n_bytes: int) -> None:
    """A progress callback that does nothing."""


def at_line(path: Path, line: int) -> str:
    """The name of a line in error messages."""
    return f"{path}, line {line}"


def read_lines(path: Path, advance: Advance = ignore_progress) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end); ``advance`` gets the bytes read.

    Only LF and CRLF end a line: other line separators of Unicode are part of words. A byte order
    mark is dropped. Raises CorpusError for a file that cannot be opened, bytes that are not UTF-8
    and a carriage return inside a line.
    """
    try:
        with path.open("rb") as handle:
            for number, raw in enumerate(handle, start=1):
                advance(len(raw))
                yield number, _decode(raw, path, number)
    except OSError as err:
        raise CorpusError(f"{path} cannot be read: {err.strerror or err}.") from err


def _decode(raw: bytes, path: Path, number: int) -> str:
    if number == 1 and raw.startswith(BOM):
        raw = raw[len(BOM) :]
    if number == 1 and raw.startswith(UTF_16):
        raise CorpusError(f"{path} is UTF-16. Save the file as UTF-8.")
    try:
        line = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as err:
        raise CorpusError(
            f"{at_line(path, number)}: byte {err.start} is not UTF-8. Save the file as UTF-8."
        ) from err
    if "\r" in line:
        raise CorpusError(
            f"{at_line(path, number)}: a carriage return in the line. End lines with LF or CRLF."
        )
    return line
