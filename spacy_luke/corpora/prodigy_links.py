"""Prodigy's linking file: one mention per record, its candidates, and the accepted one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from ..kb.entity import NIL
from .annotation_writer import AnnotationWriter
from .characters import CharSpan
from .checks import (
    check_strings,
    errors_at,
    get_items,
    get_name,
    in_digits,
    require_key,
    require_object,
)
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import read_json_objects
from .options import ConvertOptions
from .record_docs import ALIGNMENT, parse_record
from .records import Record, accepts, read_record

ANSWERS = {"NIL_otherLink": NIL, "NIL_ambiguous": ""}
"""Options of the recipe that are not entities -> ``kb_id_``: none of the candidates; not known."""


@dataclass
class LinkedText:
    """A text, and the mentions that its records annotate -> ``kb_id_``."""

    record: Record
    mentions: dict[CharSpan, str]


def read_prodigy_links(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per text; a text with several mentions has several records.

    Keys read: those of ``jsonl``, with exactly one span; ``accept``, the chosen options;
    ``options``, each with an ``id``, of which the accepted one must be one.

    The accepted id becomes the mention's ``kb_id_``. ``NIL_otherLink`` becomes "NIL", and
    ``NIL_ambiguous`` no id. Only the mentions are annotated: all other tokens have missing entity
    annotation. Raises CorpusError, with the line, for an invalid record.
    """
    writer = AnnotationWriter(options.spans_key, report)
    for text in _read_texts(path, report, advance).values():
        spans = [replace(span, kb_id=kb_id) for span, kb_id in text.mentions.items()]
        record = replace(text.record, spans=spans, partial=True)
        with errors_at(f"{path}, {record.location}"):
            parsed = parse_record(nlp, record, options.alignment_or(ALIGNMENT), report)
        yield writer.write(parsed, record.location)
    writer.finish()


def _read_texts(path: Path, report: Report, advance: Advance) -> dict[str, LinkedText]:
    texts: dict[str, LinkedText] = {}
    for location, data in read_json_objects(path, advance):
        with errors_at(f"{path}, {location}"):
            kb_id = _read_answer(data, location, report)
            record = None if kb_id is None else read_record(data, location, report)
        if record is None or kb_id is None:
            continue
        if len(record.spans) != 1:
            report.count("records skipped: not exactly one span", location)
            continue
        mentions = texts.setdefault(record.text, LinkedText(record, {})).mentions
        span = replace(record.spans[0], kb_id="")
        if mentions.setdefault(span, kb_id) != kb_id:
            report.count("mentions with different answers, left without an id", location)
            mentions[span] = ""
    return texts


def _read_answer(data: dict[str, Any], location: str, report: Report) -> str | None:
    """The ``kb_id_`` that a record gives its mention; None if the record is skipped."""
    require_key(data, "spans", "the record")
    if not accepts(data, location, report):
        return None
    require_key(data, "accept", "the record")
    if isinstance(accepted := data["accept"], list):
        accepted = [in_digits(x) for x in accepted]
    accepted = check_strings(accepted, "accept")
    offered = [_option_id(x, f"option {i}") for i, x in enumerate(get_items(data, "options"))]
    unknown = [name for name in accepted if not name or (offered and name not in offered)]
    if unknown:
        raise CorpusError(f"accept has {unknown[0]!r}, which is not one of the record's options.")
    if len(accepted) != 1:
        report.count("mentions without exactly one accepted option, left without an id", location)
        return ""
    if accepted[0] in ANSWERS:
        meaning = "NIL" if ANSWERS[accepted[0]] else "not annotated"
        report.count(f"mentions with the answer {accepted[0]}, read as {meaning}", location)
    return ANSWERS.get(accepted[0], accepted[0])


def _option_id(item: Any, owner: str) -> str:
    item = require_object(item, owner)
    return get_name({key: in_digits(value) for key, value in item.items()}, "id", owner)


def is_prodigy_links(value: Any) -> bool:
    """Whether a JSON value has the keys of this format."""
    return isinstance(value, dict) and all(key in value for key in ("text", "spans", "accept"))
