"""spaCy's training tuples as JSON: a text, and a dictionary of its annotation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from .checks import errors_at, get_items, keys_of, kind_of, require_object
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import JsonValue, read_json_values
from .offset_units import CHARACTERS
from .options import AUTO, ConvertOptions
from .record_builder import RecordBuilder
from .record_docs import write_records
from .records import Record

ENTITIES, SPANS, LINKS = "entities", "spans", "links"
_PLACE = re.compile(r"\D*(\d{1,18})\D+(\d{1,18})\D*")
_RIGHT = 0.5  # an id with a higher probability is the right one; tutorials write 1.0 and 0.0


def read_spacy_tuples(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per pair of a text and its annotation.

    The file is a JSON list of pairs, one pair per line, or an object with the pairs at
    ``annotations``. Keys read: ``entities``, lists of start, end, label and optional id; ``spans``,
    such lists by the name of a group, of which all are taken; ``links``, by a string of start and
    end, as ``"(0, 7)"``, ids with their probabilities. Other annotation is counted.

    Raises CorpusError, with the line or record, for invalid pairs.
    """
    unit = CHARACTERS if options.offsets == AUTO else options.offsets
    records = _read_records(path, unit, report, advance)
    yield from write_records(path, records, nlp, options, report)


def is_spacy_tuples(value: Any) -> bool:
    """Whether a JSON value has the shape of this format."""
    if isinstance(value, dict):
        value = next(iter(value.get("annotations") or []), None) if "classes" in value else None
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], dict)
    )


def _read_records(path: Path, unit: str, report: Report, advance: Advance) -> Iterator[Record]:
    for location, value in _pairs(path, advance):
        with errors_at(f"{path}, {location}"):
            if value is None:
                report.count("records skipped: null", location)
            else:
                yield _read_pair(value, location, unit, report)


def _pairs(path: Path, advance: Advance) -> Iterator[JsonValue]:
    for location, value in read_json_values(path, advance):
        if isinstance(value, dict) and "annotations" in value:
            with errors_at(f"{path}, {location}"):
                for number, pair in enumerate(get_items(value, "annotations"), 1):
                    yield JsonValue(f"record {number}", pair)
        else:
            yield JsonValue(location, value)


def _read_pair(value: Any, location: str, unit: str, report: Report) -> Record:
    if isinstance(value, dict) and "paragraphs" in value:
        raise CorpusError("this is spaCy 2's JSON for training; 'spacy convert' reads it.")
    if isinstance(value, dict):
        raise CorpusError(
            f"the record is an object, not a list of a text and its annotation; {keys_of(value)}."
        )
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise CorpusError(f"the record is {kind_of(value)}, not a list of a text and a dictionary.")
    text, data = value[0], require_object(value[1], "the annotation")
    if ENTITIES not in data and SPANS not in data:
        raise CorpusError(f"the annotation has neither 'entities' nor 'spans'; {keys_of(data)}.")
    for key in data.keys() - {ENTITIES, SPANS, LINKS}:
        report.count(f"annotation not read: {key}", location)
    builder = RecordBuilder(text, location, report, unit)
    links = _links(data, location, report)
    groups = require_object(data.get(SPANS) or {}, SPANS)
    places = set()
    for name, group in {ENTITIES: get_items(data, ENTITIES), **groups}.items():
        for i, item in enumerate(get_items({name: group}, name)):
            places.add(_add_span(builder, item, f"{name} {i}", links))
    unused = links.keys() - places
    if unused:
        report.count("links left out: no entity has their place", location, len(unused))
    return builder.record()


def _add_span(
    builder: RecordBuilder, item: Any, owner: str, links: dict[tuple[int, int], str]
) -> tuple[int, int]:
    """Add a span. Returns its start and end in the file."""
    if isinstance(item, str):
        raise CorpusError(f"{owner} is the tag {item!r}; a start, an end and a label are needed.")
    if not isinstance(item, list) or [type(x) for x in item[:3]] != [int, int, str]:
        raise CorpusError(f"{owner} is {item!r}, not a start, an end and a label.")
    start, end, label, *ids = item
    # 0 is what spaCy has for none.
    own = next((str(x or "") for x in ids if type(x) in (str, int)), "")
    kb_id = links.get((start, end)) or own
    builder.add_span(start, end, label, owner, kb_id=kb_id)
    return start, end


def _links(data: dict[str, Any], location: str, report: Report) -> dict[tuple[int, int], str]:
    links = {}
    for place, ids in require_object(data.get(LINKS) or {}, LINKS).items():
        match = _PLACE.fullmatch(place)
        if match is None:
            raise CorpusError(f"{place[:40]!r} of links is not a start and an end.")
        scores = require_object(ids, f"links {place}")
        right = [name for name, x in scores.items() if isinstance(x, int | float) and x > _RIGHT]
        if len(right) != 1:
            report.count("links without exactly one right id, left out", location)
            continue
        links[int(match[1]), int(match[2])] = right[0]
    return links
