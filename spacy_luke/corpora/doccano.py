"""Doccano's JSON lines: texts with labelled offsets, or with entities and relations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from .checks import (
    errors_at,
    get_items,
    get_name,
    get_value,
    keys_of,
    kind_of,
    require_key,
    require_object,
)
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import read_json_objects
from .offset_units import UTF16, has_wide_characters
from .options import AUTO, ConvertOptions
from .record_builder import RecordBuilder
from .record_docs import write_records
from .records import Record, further_keys
from .unit_choice import PlacedText, find_unit

SPAN_KEYS = ("entities", "label", "labels", "annotations")
"""With relations, without, and the two exports of versions before 1.0."""
_OWN = {"id", "text", "relations", "Comments", "comments", "annotation_approver", "cats"}
_OWN.update(SPAN_KEYS)


def read_doccano(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per line of an export.

    Keys read: ``text``; ``label`` or ``labels``, lists of start, end and label; or ``entities``,
    objects with ``label``, ``start_offset``, ``end_offset`` and ``id``, and ``relations`` with
    ``from_id``, ``to_id`` and ``type``; or ``annotations`` as ``entities``, with the number of a
    label and a ``user``, of whom the first is taken. ``id`` is ``Doc.user_data["id"]``; ``meta``
    and the text's own keys are ``["meta"]``.

    Doccano's page counts UTF-16 units, imported annotation mostly characters. If they differ,
    ``options.offsets`` decides, or by default the number of spans that fit tokens. Raises
    CorpusError, with the line, for an invalid record.
    """
    unit = options.offsets
    if unit == AUTO:
        unit = find_unit(_placed_texts(path), nlp, report, UTF16)
    records = _read_records(path, unit, report, advance)
    yield from write_records(path, records, nlp, options, report)


def is_doccano(value: Any) -> bool:
    """Whether a JSON value has the keys of this format."""
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    lists = [value[key] for key in SPAN_KEYS if isinstance(value.get(key), list)]
    first = [x[0] if x else [] for x in lists]
    return any(isinstance(x, list) or isinstance(x, dict) and "start_offset" in x for x in first)


def _placed_texts(path: Path) -> Iterator[PlacedText]:
    """The texts in which units of offsets differ, with their spans."""
    for item in read_json_objects(path):
        location, data = item.named("id")
        text = data.get("text")
        if isinstance(text, str) and has_wide_characters(text):
            with errors_at(f"{path}, {location}"):
                places = [(start, end) for start, end, _, _ in _spans(data)]
            yield PlacedText(f"{path}, {location}", text, places)


def _read_records(path: Path, unit: str, report: Report, advance: Advance) -> Iterator[Record]:
    for item in read_json_objects(path, advance):
        location, data = item.named("id")
        with errors_at(f"{path}, {location}"):
            yield _read_record(data, location, unit, report)


def _read_record(data: dict[str, Any], location: str, unit: str, report: Report) -> Record:
    builder = RecordBuilder(get_value(data, "text", str, "the record"), location, report, unit)
    for i, (start, end, label, name) in enumerate(_spans(data, location, report)):
        builder.add_span(start, end, label, f"span {i}", name)
    for i, item in enumerate(get_items(data, "relations")):
        owner = f"relation {i}"
        item = require_object(item, owner)
        head, tail = (get_value(item, key, int, owner) for key in ("from_id", "to_id"))
        builder.add_relation(head, tail, get_name(item, "type", owner), owner)
    return builder.record(data.get("id"), further_keys(data, _OWN))


def _spans(
    data: dict[str, Any], location: str = "", report: Report | None = None
) -> list[tuple[int, int, str, Any]]:
    """Start, end, label and id of the record's spans."""
    key = next((key for key in SPAN_KEYS if data.get(key) is not None), None)
    if key is None:
        raise CorpusError(
            f"the record has none of the keys {', '.join(SPAN_KEYS)}; {keys_of(data)}."
        )
    items = get_items(data, key)
    if items and all(isinstance(item, str) for item in items):
        raise CorpusError(f"{key} of the record is a list of classes of the text, not of spans.")
    report = report or Report()
    for other in SPAN_KEYS:
        if other != key and data.get(other):
            report.count(f"{other} not read: the spans are those at {key}", location)
    return [
        _span(item, f"{key} {i}", location, report)
        for i, item in enumerate(_of_first_user(items, location, report))
    ]


def _of_first_user(items: list[Any], location: str, report: Report) -> list[Any]:
    users = dict.fromkeys(str(x["user"]) for x in items if isinstance(x, dict) and "user" in x)
    if len(users) < 2:
        return items
    what = "texts annotated by several users, of whom the first is taken"
    report.count(what, location)
    first = next(iter(users))
    return [item for item in items if isinstance(item, dict) and str(item.get("user")) == first]


def _span(item: Any, owner: str, location: str, report: Report) -> tuple[int, int, str, Any]:
    if isinstance(item, list):
        if [type(x) for x in item[:2]] != [int, int] or len(item) != 3:
            raise CorpusError(f"{owner} is {item!r}, not a start, an end and a label.")
        start, end, label, name = *item, None
    else:
        item = require_object(item, owner)
        start, end = (get_value(item, key, int, owner) for key in ("start_offset", "end_offset"))
        require_key(item, "label", owner)
        label, name = item["label"], item.get("id")
        if not isinstance(name, int | str | None):
            raise CorpusError(f"the id of {owner} is {kind_of(name)}.")
    if type(label) is int:
        what = "labels that are numbers, kept as such (doccano's page exports the labels' names)"
        report.count(what, location)
        label = str(label)
    if not isinstance(label, str):
        raise CorpusError(f"the label of {owner} is {kind_of(label)}, not a string.")
    return start, end, label, name
