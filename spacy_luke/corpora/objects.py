"""The JSON objects of a file: one a line, or in one list."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CorpusError
from .checks import kind_of
from .lines import Advance, ignore_progress, place, read_lines

_SPACE = re.compile(r"[ \t\r\n]*")


class Located(NamedTuple):
    """An object and where it is: ``line 3`` or ``record 3``, both counted from 1."""

    where: str
    data: dict[str, Any]


def read_json_lines(path: Path, advance: Advance = ignore_progress) -> Iterator[Located]:
    """Yield the object of each line that is not blank.

    Raises CorpusError naming the line for what is no JSON or no object.
    """
    for number, line in read_lines(path, advance):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as err:
            raise CorpusError(f"{place(path, number)}: not JSON: {err}.") from err
        yield Located(f"line {number}", _need_object(value, place(path, number)))


def read_json_list(path: Path, advance: Advance = ignore_progress) -> Iterator[Located]:
    """Yield the objects of a file that is one JSON list, decoded one at a time.

    Raises CorpusError naming the record for what is no JSON or no object: a file that was cut
    off fails at its last record, when those before it have been yielded.
    """
    text = "\n".join(line for _, line in read_lines(path))
    position = _skip(text, 0)
    if text[position : position + 1] != "[":
        begin = f"begins with {text[position]!r}" if position < len(text) else "is empty"
        raise CorpusError(f"{path}: a JSON list of objects is needed, but the file {begin}.")
    position = _skip(text, position + 1)
    closed = text[position : position + 1] == "]"
    number, told = 0, 0
    while not closed:
        number += 1
        where = f"record {number}"
        value, position = _decode(text, position, f"{path}, {where}")
        advance(len(text[told:position].encode("utf-8", "surrogatepass")))
        told = position
        yield Located(where, _need_object(value, f"{path}, {where}"))
        closed, position = _after_item(text, position, f"{path}, {where}")
    position = _skip(text, position + 1)
    if position < len(text):
        raise CorpusError(
            f"{place(path, _line(text, position))}: more follows the end of the list."
        )


def _skip(text: str, position: int) -> int:
    """The position of the next character that is not white space, or of the end."""
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _decode(text: str, position: int, where: str) -> tuple[Any, int]:
    try:
        return json.JSONDecoder().raw_decode(text, position)
    except json.JSONDecodeError as err:
        raise CorpusError(f"{where}, line {err.lineno}: not JSON: {err.msg}.") from err
    except (ValueError, RecursionError) as err:
        raise CorpusError(f"{where}: not JSON: {err}.") from err


def _after_item(text: str, position: int, where: str) -> tuple[bool, int]:
    """Whether the list ends behind an item, and where it ends or its next item begins."""
    position = _skip(text, position)
    mark = text[position : position + 1]
    if mark not in ("]", ","):
        found = repr(mark) if mark else "the end of the file"
        raise CorpusError(
            f"{where}, line {_line(text, position)}: not JSON: a comma or the end of the list is "
            f"needed after it, not {found}."
        )
    return mark == "]", position if mark == "]" else _skip(text, position + 1)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _need_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CorpusError(f"{where}: a JSON object is needed, not {kind_of(value)}.")
    return value
