"""The JSON objects of a file: one per line, one list, or a single one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorpusError
from .checks import require_object
from .lines import Advance, at_line, ignore_progress, read_lines

_SPACE = re.compile(r"[ \t\r\n]*")


class JsonValue(NamedTuple):
    """A JSON value and its location: ``line 3`` or ``record 3``, counted from 1."""

    location: str
    value: Any


class JsonObject(NamedTuple):
    """A JSON object and its location: ``line 3`` or ``record 3``, counted from 1."""

    location: str
    data: dict[str, Any]

    def named(self, what: str) -> "JsonObject":
        """The object with its id, if it has one, in its location: ``record 3, task 104``."""
        name = self.data.get("id")
        is_name = isinstance(name, int | str) and name != ""
        return self._replace(location=f"{self.location}, {what} {name}") if is_name else self


def read_json_lines(path: Path, advance: Advance = ignore_progress) -> Iterator[JsonObject]:
    """Yield the object of each line that is not blank.

    Raises CorpusError, with the line, for invalid JSON and values that are not objects.
    """
    for location, line in _lines(path, advance):
        value = _parse(line, f"{path}, {location}")
        yield JsonObject(location, require_object(value, f"{path}, {location}: the record"))


def read_json_objects(path: Path, advance: Advance = ignore_progress) -> Iterator[JsonObject]:
    """Yield the objects of a file that is one JSON list, has one object per line, or is a single
    object. Raises CorpusError, with the line or record, for anything else."""
    for item in read_json_values(path, advance):
        yield JsonObject(
            item.location, require_object(item.value, f"{path}, {item.location}: the record")
        )


def read_json_values(path: Path, advance: Advance = ignore_progress) -> Iterator[JsonValue]:
    """Yield the elements of a file that is one JSON list, or else the value of each line.

    A line that is a list with a string first is a record, as in ``["text", {}]``. An object may be
    written on several lines if it is the only one. Raises CorpusError, with the line or record, for
    invalid JSON.
    """
    begin = _begin(path)
    if begin.startswith("[") and not begin.startswith('["'):
        yield from _list_values(path, advance)
    elif begin.startswith("{") and not _is_json(next(_lines(path)).value):
        yield JsonValue("record 1", _whole_or_first_line(path))
        advance(path.stat().st_size)
    else:
        for location, line in _lines(path, advance):
            yield JsonValue(location, _parse(line, f"{path}, {location}"))


def read_json_list(path: Path, advance: Advance = ignore_progress) -> Iterator[JsonObject]:
    """Yield the objects of a file that is one JSON list, decoded one at a time.

    Raises CorpusError, with the record, for invalid JSON and values that are not objects. A
    truncated file fails at its last record, after all others were yielded.
    """
    for location, value in _list_values(path, advance):
        yield JsonObject(location, require_object(value, f"{path}, {location}: the record"))


def _list_values(path: Path, advance: Advance) -> Iterator[JsonValue]:
    text = "\n".join(line for _, line in read_lines(path))
    position = _skip(text, 0)
    if text[position : position + 1] != "[":
        begin = f"begins with {text[position]!r}" if position < len(text) else "is empty"
        raise CorpusError(f"{path}: a JSON list of objects is needed, but the file {begin}.")
    position = _skip(text, position + 1)
    closed = text[position : position + 1] == "]"
    number, n_reported = 0, 0  # n_reported: characters whose bytes ``advance`` got
    while not closed:
        number += 1
        location = f"record {number}"
        value, position = _decode(text, position, f"{path}, {location}")
        advance(len(text[n_reported:position].encode("utf-8", "surrogatepass")))
        n_reported = position
        yield JsonValue(location, value)
        closed, position = _after_item(text, position, f"{path}, {location}")
    position = _skip(text, position + 1)
    if position < len(text):
        raise CorpusError(
            f"{at_line(path, _line(text, position))}: text follows the end of the list."
        )


def read_json_object(path: Path) -> dict[str, Any]:
    """The object that a file consists of. Raises CorpusError, with the line, for anything else."""
    text = "\n".join(line for _, line in read_lines(path))
    if not text.strip():
        raise CorpusError(f"{path} is empty.")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as err:
        raise CorpusError(f"{at_line(path, err.lineno)}: not JSON: {err.msg}.") from err
    except (ValueError, RecursionError) as err:
        raise CorpusError(f"{path}: not JSON: {err}.") from err
    return require_object(value, f"{path}: the content")


def _lines(path: Path, advance: Advance = ignore_progress) -> Iterator[JsonValue]:
    """The lines that are not blank, each with its location."""
    for number, line in read_lines(path, advance):
        if line.strip():
            yield JsonValue(f"line {number}", line)


def _begin(path: Path) -> str:
    """The first two characters of a file that are not white space."""
    begin = ""
    for _, line in _lines(path):
        begin += "".join(line.split(maxsplit=2))[:2]
        if len(begin) > 1:
            break
    return begin[:2]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(line: str, location: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as err:
        raise CorpusError(f"{location}: not JSON: {err}.") from err


def _whole_or_first_line(path: Path) -> Any:
    """The value of a file whose first line is none. Raises the error of its first line if no value
    begins the file, and one that names the line where other text follows the value."""
    text = "\n".join(line for _, line in read_lines(path))
    first, begin = next(_lines(path)), _skip(text, 0)
    try:
        value, end = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        _parse(first.value, f"{path}, {first.location}")
        raise
    if _line(text, end) == _line(text, begin):
        _parse(first.value, f"{path}, {first.location}")
    end = _skip(text, end)
    if end < len(text):
        raise CorpusError(
            f"{at_line(path, _line(text, end))}: text follows an object that is written on several "
            "lines. Write one object per line, or a list of objects."
        )
    return value


def _skip(text: str, position: int) -> int:
    """The position of the next character that is not white space, or of the end."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _decode(text: str, position: int, location: str) -> tuple[Any, int]:
    try:
        return json.JSONDecoder().raw_decode(text, position)
    except json.JSONDecodeError as err:
        raise CorpusError(f"{location}, line {err.lineno}: not JSON: {err.msg}.") from err
    except (ValueError, RecursionError) as err:
        raise CorpusError(f"{location}: not JSON: {err}.") from err


def _after_item(text: str, position: int, location: str) -> tuple[bool, int]:
    """Whether the list ends after an item, and the position of its end or of the next item."""
    position = _skip(text, position)
    delimiter = text[position : position + 1]
    if delimiter not in ("]", ","):
        shown = repr(delimiter) if delimiter else "the end of the file"
        raise CorpusError(
            f"{location}, line {_line(text, position)}: not JSON: a comma or the end of the list "
            f"is needed after it, not {shown}."
        )
    return delimiter == "]", position if delimiter == "]" else _skip(text, position + 1)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
