"""The JSON lines of ELEVANT's linking benchmarks: labels with ids, in a part of each text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from ..kb.entity import NIL
from .annotation_writer import MENTION, AnnotationWriter, ParsedDoc
from .characters import CharSpan, align_spans, check_offsets, make_text_doc
from .checks import check_unicode, errors_at, get_value, require_items, require_object
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import JsonObject, read_json_objects
from .options import ConvertOptions

COREFERENCE = "coref"
NO_ENTITY = "<NIL>"
LITERALS = ("DATETIME", "QUANTITY")
"""Values of ``entity_id`` that are a kind of mention, not an entity."""


def read_elevant(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per line of a benchmark.

    Keys read: ``text``; ``labels``, each with ``span`` (characters, end exclusive), ``entity_id``,
    optional ``type`` (types, separated by ``|``) and ``coref``; optional ``evaluation_span``,
    ``id`` and ``title``, of which the last two are stored in ``Doc.user_data``.

    A label becomes a span ``MENTION`` with ``entity_id`` as ``kb_id_`` and with types. ``<NIL>``
    becomes "NIL"; dates and quantities have no id. A coreference, such as a pronoun, has the span
    id ``coref``. Tokens outside ``evaluation_span`` have missing entity annotation. ``alignment``
    defaults to ``split``. Raises CorpusError, with the line, for an invalid record.
    """
    writer = AnnotationWriter(options.spans_key, report)
    for item in read_json_objects(path, advance):
        with errors_at(f"{path}, {item.location}"):
            parsed = _parse(nlp, item, options.alignment_or("split"), report)
        yield writer.write(parsed, item.location)
    writer.finish()


def _parse(nlp: Language, item: JsonObject, alignment: str, report: Report) -> ParsedDoc:
    data = item.data
    text = get_value(data, "text", str, "the record")
    check_unicode(text)
    if not text:
        raise CorpusError("text of the record is empty.")
    chars = [_read_label(label, i, text) for i, label in enumerate(require_items(data, "labels"))]
    placed = align_spans(make_text_doc(nlp, text), chars, alignment, report, item.location)
    for key in ("id", "title"):
        if data.get(key) is not None:
            placed.doc.user_data[key] = str(data[key])
    start, end = 0, len(text)
    if data.get("evaluation_span") is not None:
        start, end = _read_place(data, "evaluation_span", "the record", text)
    outside = {t.i for t in placed.doc if t.idx + len(t) <= start or end <= t.idx}
    types = [
        (placed.spans[char], char.types)
        for char in chars
        if char.types is not None and char in placed.spans
    ]
    return ParsedDoc(placed.doc, list(placed.spans.values()), placed.unknown | outside, types)


def _read_label(label: Any, number: int, text: str) -> CharSpan:
    owner = f"label {number}"
    label = require_object(label, owner)
    start, end = _read_place(label, "span", owner, text)
    kb_id = get_value(label, "entity_id", str, owner)
    check_unicode(kb_id)
    types = None
    if label.get("type") is not None:
        names = get_value(label, "type", str, owner).split("|")
        types = tuple(dict.fromkeys(name for name in names if name))
    if kb_id in LITERALS:
        kb_id = ""
    span_id = COREFERENCE if label.get("coref") is True else ""
    return CharSpan(start, end, MENTION, NIL if kb_id == NO_ENTITY else kb_id, span_id, types)


def _read_place(data: dict[str, Any], key: str, owner: str, text: str) -> tuple[int, int]:
    place = data.get(key)
    if not isinstance(place, list) or [type(edge) for edge in place] != [int, int]:
        raise CorpusError(f"{key} of {owner} is {place!r}, not two whole numbers.")
    check_offsets(f"{key} of {owner}", place[0], place[1], text)
    return place[0], place[1]


def is_elevant(value: Any) -> bool:
    """Whether a JSON value has the keys of this format."""
    labels = value.get("labels") if isinstance(value, dict) and "text" in value else None
    return isinstance(labels, list) and all(isinstance(x, dict) and "span" in x for x in labels)
