"""Records of JSON lines and CSV files, and the entities that they describe."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import CorpusError
from .entity import (
    EMPTY_ALIAS,
    EMPTY_NAME,
    NOT_GIVEN,
    Entity,
    Findings,
    check_count,
    check_id,
    check_text,
)

REQUIRED = ("id", "name")
OPTIONAL = ("aliases", "description", "type", "count")
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
CSV_SEPARATOR = "|"
_REASON_REPEATED = "aliases that an entity has twice"


def read_entities(path: Path, findings: Findings) -> Iterator[Entity]:
    """The entities of a file of JSON lines (``.jsonl``) or of a CSV file with a header (``.csv``).

    Raises CorpusError, with the line and the field, for values that are invalid.
    """
    for where, values in read_records(path, REQUIRED, OPTIONAL):
        entity = _entity(values, where, findings)
        if entity is not None:
            yield entity


def read_records(
    path: Path, required: Sequence[str], optional: Sequence[str], json_files: Sequence[str] = ()
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield (file and line, values) of a file of JSON lines (``.jsonl``) or of a CSV file with a
    header (``.csv``). In CSV the column ``aliases`` is a list, and ``count`` a number if it is one.

    json_files: names of files that are JSON lines without the suffix.

    Raises CorpusError for a file that cannot be read, and for a CSV file whose header lacks one of
    the required columns.
    """
    suffix = path.suffix.lower()
    if suffix not in (*JSON_SUFFIXES, ".csv") and path.name not in json_files:
        found = "is neither JSON lines (.jsonl) nor CSV (.csv)" if path.exists() else "is missing"
        raise CorpusError(f"{path} {found}.")
    try:
        if suffix == ".csv":
            yield from _read_csv(path, required, optional)
        else:
            yield from _read_json(path)
    except OSError as err:
        raise CorpusError(f"{path} cannot be read: {err.strerror or err}.") from err


def read_ids(path: Path) -> Iterator[str]:
    """Ids, one per line. Empty lines are ignored."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        raise CorpusError(f"{path} cannot be read as UTF-8 text: {err}.") from err
    yield from (line.rstrip("\r") for line in text.split("\n") if line.strip())


def _read_json(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            where = f"{path}, line {number}"
            if not line.strip():
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf8")
                values = json.loads(text, object_pairs_hook=_without_repetition)
            except (ValueError, RecursionError) as err:
                raise CorpusError(f"{where} is not a JSON object: {err}.") from err
            if not isinstance(values, dict):
                raise CorpusError(f"{where} is a {type(values).__name__}, not a JSON object.")
            yield where, values


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object. Raises ValueError if a key occurs twice: one of its values would be lost."""
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key!r} occurs twice")
        values[key] = value
    return values


def _read_csv(
    path: Path, required: Sequence[str], optional: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(_decoded(file, path), strict=True, skipinitialspace=True)
        header: list[str] = []
        try:
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                if not row:
                    continue
                if header:
                    yield where, _csv_values(header, row, where)
                else:
                    header = [x.strip() for x in row]
                    _check_header(header, where, required, optional)
        except csv.Error as err:
            hint = " Use JSON lines for longer fields." if "limit" in str(err) else ""
            raise CorpusError(f"{path}, after line {reader.line_num}: {err}.{hint}") from err
    if not header:
        raise CorpusError(f"{path} is empty. A header with {' and '.join(required)} is required.")


def _decoded(lines: Iterable[str], path: Path) -> Iterator[str]:
    """The lines. Raises CorpusError for one with bytes that were not UTF-8 (and so became lone
    surrogates)."""
    for number, line in enumerate(lines, start=1):
        try:
            line.encode("utf8")
        except UnicodeEncodeError:
            raise CorpusError(f"{path}, line {number} is not UTF-8 text.") from None
        yield line


def _check_header(
    header: list[str], where: str, required: Sequence[str], optional: Sequence[str]
) -> None:
    check_keys(header, where, required, optional, "columns")
    twice = [x for x in header if header.count(x) > 1]
    if twice:
        raise CorpusError(f"{where}: the column {twice[0]!r} occurs twice.")


def _csv_values(header: list[str], row: list[str], where: str) -> dict[str, object]:
    if len(row) != len(header):
        raise CorpusError(
            f"{where} has {len(row)} fields, and the header has {len(header)} columns. Quote "
            "fields that contain a comma."
        )
    values: dict[str, object] = dict(zip(header, row))
    if "aliases" in values:
        values["aliases"] = str(values["aliases"]).split(CSV_SEPARATOR) if values["aliases"] else []
    count = str(values.pop("count", "")).strip()
    if count:
        try:
            values["count"] = float(count)
        except ValueError:
            values["count"] = count  # not a number: reported with the others
    return values


def check_keys(
    keys: Iterable[str],
    where: str,
    required: Sequence[str],
    optional: Sequence[str],
    what: str = "keys",
) -> None:
    """Raise CorpusError, with the keys that were found, if a required one is missing."""
    keys = list(keys)
    missing = [key for key in required if key not in keys]
    if missing:
        raise CorpusError(
            f"{where}: {' and '.join(missing)} missing. Required {what}: {', '.join(required)}; "
            f"optional: {', '.join(optional)}. Found: {', '.join(map(repr, keys)) or 'none'}."
        )


def count_unread(keys: Iterable[str], where: str, known: Sequence[str], findings: Findings) -> None:
    """Add the keys that are not known to the findings."""
    for key in keys:
        if key not in known:
            findings.add(f"values of {key!r}, which is not read", where)


def _entity(values: Mapping[str, object], where: str, findings: Findings) -> Entity | None:
    check_keys(values, where, REQUIRED, OPTIONAL)
    count_unread(values, where, (*REQUIRED, *OPTIONAL), findings)
    identifier = check_id(values["id"], where)
    if identifier != identifier.strip():
        findings.add("ids with white space at their ends, which is kept", where)
    name = check_text(_or_empty(values["name"]), "name", where).strip()
    if not name:
        findings.add(EMPTY_NAME, where)
        return None
    return Entity(
        identifier,
        name,
        _aliases(name, values.get("aliases"), where, findings),
        check_text(_or_empty(values.get("description")), "description", where).strip(),
        check_text(_or_empty(values.get("type")), "type", where).strip(),
        check_count(0 if values.get("count") is None else values["count"], "count", where),
    )


def _or_empty(value: object) -> object:
    return "" if value is None else value


def _aliases(name: str, value: object, where: str, findings: Findings) -> dict[str, float]:
    """The name and the aliases, each with its count if ``value`` is an object of counts."""
    counts: list[tuple[object, object]]
    if isinstance(value, dict):
        counts = list(value.items())
    elif isinstance(value, list):
        counts = [(alias, None) for alias in value]
    elif value is None:
        counts = []
    else:
        raise CorpusError(
            f"{where}: aliases is {value!r}. It must be a list of texts, or an object of texts and "
            "their counts."
        )
    aliases = {name: NOT_GIVEN}
    for alias, count in counts:
        text = check_text(alias, "aliases", where).strip()
        weight = NOT_GIVEN if count is None else check_count(count, f"aliases[{alias!r}]", where)
        if not text:
            findings.add(EMPTY_ALIAS, where)
        elif text in aliases and (text != name or aliases[name] == aliases[name]):
            findings.add(_REASON_REPEATED, where)
        else:
            aliases[text] = weight
    return aliases
