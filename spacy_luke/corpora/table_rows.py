"""The rows of a CSV or TSV file with a header: its delimiter, quoting and encoding are detected."""

import codecs
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from ..errors import ConfigError, CorpusError
from .conversion_report import Report
from .lines import UTF_16, at_line
from .options import AUTO, ConvertOptions

DELIMITERS = ",;\t"
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_MARK = "\ufeff"
"""The byte order mark, decoded."""
_LONGEST_CELL = 2**31 - 1


class Row(NamedTuple):
    """The line in which a row ends, and its cells by role; a role without a column is absent."""

    line: int
    cells: dict[str, str]

    @property
    def is_blank(self) -> bool:
        return not any(cell.strip() for cell in self.cells.values())


@dataclass(frozen=True)
class Table:
    """A file's text, its header, and the columns of roles.

    quoted: whether cells are quoted as in RFC 4180; if not, a quotation mark is a character.
    """

    path: Path
    text: str
    delimiter: str
    quoted: bool
    header: list[str]
    columns: dict[str, int]

    def rows(self) -> Iterator[Row]:
        """Yield the rows after the header. Raises CorpusError, with the line, for a row with too
        many or too few cells."""
        rows = read_cells(self.path, self.text, self.delimiter, self.quoted)
        next((line for line, cells in rows if cells), None)  # the header
        for line, cells in rows:
            if not self._fits(cells):
                raise CorpusError(
                    f"{at_line(self.path, line)}: {len(cells)} columns, but the header has "
                    f"{len(self.header)}: {', '.join(map(repr, self.header))}."
                )
            yield Row(line, {role: cells[i] if cells else "" for role, i in self.columns.items()})

    def _fits(self, cells: list[str]) -> bool:
        width = len(self.header)
        return not cells or len(cells) == width or (len(cells) > width and not any(cells[width:]))


def read_table(
    path: Path, roles: Mapping[str, Sequence[str]], options: ConvertOptions, report: Report
) -> Table:
    """Read a file's header and find the columns of roles.

    roles: lower-case names that columns of a role have; ``options.fields`` names others.

    Raises CorpusError for a file that is empty or has another encoding, ConfigError for fields that
    the file does not have.
    """
    text = _decode(path, options.encoding, report)
    first = text.lstrip("\r\n").partition("\n")[0]
    if not first.strip():
        raise CorpusError(f"{path} is empty.")
    delimiter = max(DELIMITERS, key=first.count)
    quoted = _is_quoted(text, delimiter)
    _, header = next(
        (line, cells) for line, cells in read_cells(path, text, delimiter, quoted) if cells
    )
    columns = _columns([name.strip().lower() for name in header], roles)
    options.check_fields(roles)
    for role, name in options.fields:
        if name not in header:
            found = ", ".join(map(repr, header))
            raise ConfigError(f"fields has {name!r}, but the columns of {path} are {found}.")
        columns[role] = header.index(name)
    return Table(path, text, delimiter, quoted, header, columns)


def _columns(names: list[str], roles: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The column of each role: of its first name that the header has."""
    found = {}
    for role, own in roles.items():
        column = next((names.index(name) for name in own if name in names), None)
        if column is not None:
            found[role] = column
    return found


def read_cells(
    path: Path, text: str, delimiter: str, quoted: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line in which each row ends, and its cells; a blank line has none."""
    limit = csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(
        StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as err:
        raise CorpusError(f"{at_line(path, reader.line_num)}: not a table: {err}.") from err
    finally:
        csv.field_size_limit(limit)


def _is_quoted(text: str, delimiter: str) -> bool:
    """Whether quotation marks enclose cells. They do not if, read as characters, all lines have
    the same number of cells, and a cell begins with one that nothing closes."""
    width, loose = None, False
    for line in text.split("\n"):
        cells = line.rstrip("\r").split(delimiter)
        if not line.strip():
            continue
        if width is not None and len(cells) != width:
            return True
        width = len(cells)
        loose |= any(cell.startswith('"') and not _QUOTED.fullmatch(cell) for cell in cells)
    return not loose


def _decode(path: Path, encoding: str, report: Report) -> str:
    try:
        raw = path.read_bytes()
    except OSError as err:
        raise CorpusError(f"{path} cannot be read: {err.strerror or err}.") from err
    if encoding == AUTO:
        encoding = "utf-16" if raw.startswith(UTF_16) else "utf-8"
    try:
        name = codecs.lookup(encoding).name
        text = raw.decode(encoding)
    except LookupError as err:
        raise ConfigError(f"encoding {encoding!r} is unknown, as in latin-1 or cp1252.") from err
    except UnicodeDecodeError as err:
        line = raw.count(b"\n", 0, err.start) + 1
        raise CorpusError(
            f"{at_line(path, line)}: not {encoding}. Give the encoding, as in --encoding latin-1."
        ) from err
    text = text.removeprefix(_MARK)
    if n_doubled := text.count("\r\r\n"):
        # As where csv.writer wrote to a text file of Windows.
        text = text.replace("\r\r\n", "\r\n")
        report.count("line ends of CR CR LF, read as one", str(path), n_doubled)
    if not name.startswith("utf") and not raw.isascii() and _is_utf8(raw):
        report.count(f"files read as {encoding}, although they are UTF-8", str(path))
    return text


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
