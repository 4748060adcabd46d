"""Label Studio's JSON and JSON_MIN: tasks with regions of a text, and relations between them."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from .checks import (
    check_strings,
    errors_at,
    get_strings,
    get_value,
    kind_of,
    require_object,
)
from .conversion_report import Report
from .label_studio_tasks import (
    SPAN_TYPES,
    TEXT,
    Annotation,
    annotations_of,
    refuse_table,
    text_key,
    usual_text_key,
)
from .label_studio_texts import of_text, other_texts, text_name
from .lines import Advance, ignore_progress, read_lines
from .objects import read_json_objects
from .offset_units import CHARACTERS, has_wide_characters
from .options import AUTO, ConvertOptions
from .record_builder import RecordBuilder
from .record_docs import write_records
from .records import Record, further_keys
from .unit_choice import PlacedText, find_unit

RELATION = "relation"
DIRECTIONS = {"right": (False,), "left": (True,), "bi": (False, True)}
"""Direction of a relation -> whether its sides are exchanged, for each relation that it means."""
_ADDRESS = re.compile(r"(?:https?:/|s3:/|gs:/|/data)/\S+")
_LONGEST_HEADER = 10_000
"""Characters; a JSON file of one line may have millions."""


def read_label_studio(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per annotated task of an export, JSON or JSON_MIN.

    Keys read: ``data``, whose text is at ``text``, at ``options.fields``, at the only key with a
    string, or at the key in which the regions of this or of other tasks are; ``annotations``, each
    with ``result``. Results of the type ``labels`` have ``value`` with ``start``, ``end``,
    ``labels`` and the ``text`` there, by which offsets are checked; ``relation`` has ``from_id``,
    ``to_id``, ``labels`` and ``direction``. ``Doc.user_data["id"]`` is the task's id, ``["meta"]``
    the other keys of ``data``.

    Of several annotations the ground truth, or else the newest, is taken. Cancelled annotations and
    predictions are not read. All of this is counted. Raises CorpusError, with the record, for an
    invalid task.

    Offsets of regions without their text count what ``options.offsets`` says, or by default what
    fits more tokens.
    """
    options.check_fields((TEXT,))
    _, first = next(read_lines(path), (0, ""))
    refuse_table(path, re.split("[,\t]", first[:_LONGEST_HEADER]))
    records = _read_records(path, nlp, options, report, advance)
    yield from write_records(path, records, nlp, options, report)


def _read_records(
    path: Path, nlp: Language, options: ConvertOptions, report: Report, advance: Advance
) -> Iterator[Record]:
    tasks: list[list[Annotation]] = []
    for item in read_json_objects(path, advance):
        item = item.named("task")
        with errors_at(f"{path}, {item.location}"):
            tasks.append(annotations_of(item, report))
    usual = usual_text_key(tasks)
    chosen: dict[Hashable, Annotation] = {}
    for number, task in enumerate(tasks):
        for annotation in task:
            with errors_at(f"{path}, {annotation.location}"):
                annotation.text_key = text_key(annotation, usual, options)
                _choose(chosen, _task_key(number, annotation), annotation, report)
    _require_regions(path, chosen.values())
    others = other_texts(chosen.values())
    unit = options.offsets
    if unit == AUTO:
        unit = find_unit(_unquoted(path, chosen.values(), others), nlp, report, CHARACTERS)
    for annotation in chosen.values():
        with errors_at(f"{path}, {annotation.location}"):
            yield _read_record(annotation, unit, report, of_text(annotation, others))


def _unquoted(
    path: Path, annotations: Iterable[Annotation], others: Collection[str]
) -> Iterator[PlacedText]:
    """The texts in which units of offsets differ, with the regions whose text does not tell it."""
    for item in annotations:
        if has_wide_characters(item.text):
            location = f"{path}, {item.location}"
            with errors_at(location):
                name = of_text(item, others)
            regions = [x for x in item.results if x.get("type") in SPAN_TYPES]
            values = [x.get("value") for x in regions if text_name(x) == name]
            places = [
                (value["start"], value["end"])
                for value in values
                if isinstance(value, dict) and not value.get("text")
                if type(value.get("start")) is type(value.get("end")) is int
            ]
            yield PlacedText(location, item.text, places)


def _require_regions(path: Path, annotations: Iterable[Annotation]) -> None:
    """Raise CorpusError if a file has annotation, but of another kind than parts of texts."""
    types = Counter(str(x.get("type")) for item in annotations for x in item.results)
    is_short = any(not item.is_record for item in annotations)
    if (types or is_short) and not types.keys() & set(SPAN_TYPES):
        found = f"types of results: {', '.join(types) or 'none'}"
        raise CorpusError(f"{path} has no labelled part of a text; {found}.")


def _task_key(number: int, annotation: Annotation) -> Hashable:
    """What the annotations of one task have in common: in JSON the record; in JSON_MIN the id and
    text, which the record of every annotator repeats."""
    if annotation.is_record or annotation.task is None:
        return number
    return str(annotation.task), annotation.text


def _choose(
    chosen: dict[Hashable, Annotation], key: Hashable, new: Annotation, report: Report
) -> None:
    if key in chosen:
        what = "annotations left out: another one of the task is the ground truth, or newer"
        report.count(what, new.location)
    if key not in chosen or new.rank > chosen[key].rank:
        chosen[key] = new


def _read_record(item: Annotation, unit: str, report: Report, name: str) -> Record:
    """name: ``to_name`` of the regions of the text."""
    text = item.text
    if _ADDRESS.fullmatch(text):
        raise CorpusError(f"the task has the address of its text, {text!r}, not the text.")
    builder = RecordBuilder(text, item.location, report, unit)
    relations = []
    for i, result in enumerate(item.results):
        if result.get("type") == RELATION:
            relations.append((f"result {i}", result))
        elif result.get("type") in SPAN_TYPES and text_name(result) != name:
            report.count("spans left out: they are of another text of the task", item.location)
            builder.leave_out(0, 0, result.get("id"))
        elif result.get("type") in SPAN_TYPES:
            _add_region(builder, result, f"result {i}")
        else:
            report.count(f"results not read: {result.get('type')}", item.location)
    for owner, result in relations:
        _add_relation(builder, result, owner)
    return builder.record(item.task, further_keys(item.data, {item.text_key}))


def _add_region(builder: RecordBuilder, result: dict[str, Any], owner: str) -> None:
    value = require_object(result.get("value"), f"value of {owner}")
    labels = check_strings(value.get(result["type"]) or [], f"labels of {owner}")
    if not labels:
        builder.report.count("spans left out: they have no label", builder.location)
        return
    if isinstance(value.get("start"), str):
        builder.report.count("spans left out: they are parts of HTML", builder.location)
        return
    start, end = (get_value(value, key, int, owner) for key in ("start", "end"))
    name, quote = result.get("id"), value.get("text")
    if not isinstance(name, str | int | None):
        raise CorpusError(f"the id of {owner} is not a string.")
    if not isinstance(quote, str | None):
        raise CorpusError(f"text of {owner} is {kind_of(quote)}, not a string.")
    if quote is not None:
        quote = quote.replace("\\n", "\n") if "\\n" not in builder.text else quote
    for label in dict.fromkeys(labels):
        builder.add_span(start, end, label, owner, name, quote if quote else None)


def _add_relation(builder: RecordBuilder, result: dict[str, Any], owner: str) -> None:
    sides = [get_value(result, key, str, owner) for key in ("from_id", "to_id")]
    direction = result.get("direction", "right")
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        choices = ", ".join(DIRECTIONS)
        raise CorpusError(f"direction of {owner} is {direction!r}; choose one of {choices}.")
    labels = get_strings(result, "labels", owner) if result.get("labels") else []
    if not labels:
        builder.report.count("relations left out: they have no label", builder.location)
    for label in dict.fromkeys(labels):
        for exchanged in DIRECTIONS[direction]:
            head, tail = reversed(sides) if exchanged else sides
            builder.add_relation(head, tail, label, owner)
