"""Label Studio's tasks: their annotations, and the key of their data that has the text."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CorpusError
from .checks import get_items, keys_of, require_items, require_object
from .conversion_report import Report
from .objects import JsonObject
from .options import ConvertOptions

TEXT = "text"
SPAN_TYPES = ("labels", "hypertextlabels")
"""Types of results that label a part of a text; the labels are in the key of the same name."""
ANNOTATIONS = ("annotations", "completions")
"""The second is of versions before 1.0."""
_MIN_KEYS = ("annotator", "annotation_id", "lead_time", "created_at", "updated_at")
"""Of JSON_MIN and CSV; the first two tell these exports."""


@dataclass
class Annotation:
    """An annotation of one task. data: the task's data. results: regions and relations.

    is_record: its record has all annotations of the task. text_key: of the text in ``data``, once
    it is known.
    """

    location: str
    task: Any
    data: dict[str, Any]
    results: list[dict[str, Any]]
    ground_truth: bool = False
    time: str = ""
    is_record: bool = True
    text_key: str = ""

    @property
    def text(self) -> str:
        text: str = self.data[self.text_key]
        return text

    @property
    def rank(self) -> tuple[bool, str]:
        """Of several annotations of a task, the one with the highest rank is taken."""
        return self.ground_truth, self.time


def is_label_studio(value: Any) -> bool:
    """Whether a JSON value has the keys of a task."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("data"), dict) or all(x in value for x in _MIN_KEYS[:2])


def refuse_table(path: Path, header: Container[str]) -> None:
    """Raise CorpusError if a table has the columns of the export CSV or TSV."""
    if all(name in header for name in _MIN_KEYS[:2]):
        raise CorpusError(
            f"{path} looks like Label Studio's CSV; export JSON or JSON_MIN and use the format "
            "label-studio."
        )


def annotations_of(item: JsonObject, report: Report) -> list[Annotation]:
    """The task's annotations that count; a task without one is counted."""
    task, location = item.data, item.location
    if "data" not in task:
        return _minimal(item, report)
    data = require_object(task["data"], "data of the record")
    key = next((key for key in ANNOTATIONS if key in task), "")
    if not key:
        raise CorpusError(f"the record has no key 'annotations'; {keys_of(task)}.")
    found = [require_object(x, f"annotation {i}") for i, x in enumerate(get_items(task, key))]
    kept = [x for x in found if not (x.get("was_cancelled") or x.get("skipped"))]
    if len(kept) < len(found):
        report.count("annotations skipped: cancelled", location, len(found) - len(kept))
    if not kept:
        predicted = "; predictions are not annotation" if task.get("predictions") else ""
        report.count(f"tasks skipped: not annotated{predicted}", location)
    return [_annotation(item, data, x) for x in kept]


def _annotation(item: JsonObject, data: dict[str, Any], annotation: dict[str, Any]) -> Annotation:
    results = [
        require_object(x, f"result {i}") for i, x in enumerate(require_items(annotation, "result"))
    ]
    time = str(annotation.get("updated_at") or annotation.get("created_at") or "")
    truth = annotation.get("ground_truth") is True
    return Annotation(item.location, item.data.get("id"), data, results, truth, time)


def _minimal(item: JsonObject, report: Report) -> list[Annotation]:
    """The annotation of a record of JSON_MIN: results are lists of values, by the name of their
    control, and no record has relations."""
    data = item.data
    if "annotation_id" not in data:
        raise CorpusError(f"the record has neither 'data' nor 'annotation_id'; {keys_of(data)}.")
    if data["annotation_id"] is None:
        report.count("tasks skipped: not annotated", item.location)
        return []
    regions = {key: x for key, x in data.items() if _is_regions(x)}
    results = [
        {"type": _type_of(value), "value": value}
        for values in regions.values()
        for value in values
        if isinstance(value, dict)
    ]
    own = {"id", *_MIN_KEYS, *regions}
    texts = {key: x for key, x in data.items() if key not in own}
    time = str(data.get("updated_at") or data.get("created_at") or "")
    return [Annotation(item.location, data.get("id"), texts, results, False, time, False)]


def _is_regions(values: Any) -> bool:
    return isinstance(values, list) and any(isinstance(value, dict) for value in values)


def _type_of(value: dict[str, Any]) -> str:
    return next((x for x in SPAN_TYPES if x in value), ", ".join(sorted(value)))


def text_key(item: Annotation, usual: str, options: ConvertOptions) -> str:
    """The key of the task's data that has its text. usual: the key of other tasks."""
    named = options.field(TEXT)
    if named:
        if not isinstance(item.data.get(named), str):
            raise CorpusError(f"data has no text at {named!r}; {keys_of(item.data)}.")
        return named
    key = _own_text_key(item) or usual
    if not isinstance(item.data.get(key), str):
        raise CorpusError(
            f"data has no key 'text', and not one other key with a text; {keys_of(item.data)}. "
            "Give the key, as in --fields text=body."
        )
    return key


def usual_text_key(tasks: Iterable[Iterable[Annotation]]) -> str:
    """The key at which all tasks have their text that tell it alone; empty if there is not one."""
    keys = {_own_text_key(item) for task in tasks for item in task} - {""}
    return keys.pop() if len(keys) == 1 else ""


def _own_text_key(item: Annotation) -> str:
    """The key that a task alone tells: ``text``, the only string, or where its regions' texts are;
    else empty."""
    strings = [key for key, x in item.data.items() if isinstance(x, str) and key != "id"]
    if TEXT in strings:
        return TEXT
    if len(strings) > 1:
        values = [x["value"] for x in item.results if isinstance(x.get("value"), dict)]
        strings = [key for key in strings if any(_is_in(x, item.data[key]) for x in values)]
    return strings[0] if len(strings) == 1 else ""


def _is_in(value: dict[str, Any], text: str) -> bool:
    """Whether the text of a region is at its offsets."""
    start, end, quote = (value.get(key) for key in ("start", "end", "text"))
    return type(start) is int and type(end) is int and bool(quote) and text[start:end] == quote
