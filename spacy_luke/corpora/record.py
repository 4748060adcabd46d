"""Cloze data in the JSON of ReCoRD (Zhang et al. 2018): passages with entities, and queries with a
gap. Original shape: one object with a list. SuperGLUE's shape: one object per line."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations.mentions import characters
from ..annotations.queries import (
    PLACEHOLDER,
    Offsets,
    completion_offsets,
    query_texts,
    set_completion_offsets,
    set_queries,
)
from ..errors import CorpusError
from .annotation_writer import MENTION, AnnotationWriter, ParsedDoc
from .characters import CharSpan, align_spans, make_text_doc
from .checks import (
    check_unicode,
    errors_at,
    get_items,
    get_value,
    require_items,
    require_key,
    require_object,
)
from .conversion_report import Report
from .lines import Advance, ignore_progress, read_lines
from .objects import JsonObject, read_json_lines, read_json_object
from .offset_units import CHARACTERS, UTF16, from_utf16, has_wide_characters
from .options import AUTO, ConvertOptions
from .unit_choice import PlacedText, find_unit

DATA, PASSAGE = "data", "passage"
_SPACES = str.maketrans("\r\n", "  ")  # offsets stay the same


def read_record(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document with queries per passage.

    Keys read: ``passage`` with ``text`` and ``entities`` (``start``, ``end``); ``qas`` with
    ``query`` and optional ``answers`` (``text``, ``start``, ``end``). Line breaks become spaces.

    Entities become spans ``MENTION``, the candidates of all queries. ``end`` is the last character
    in ReCoRD; if the texts of the file's answers say otherwise, it is the one after. Right answers
    are in ``Doc._.completions``; a query without answers has none. The ids of passage and queries
    (``id``, else ``idx``) are ``Doc.user_data["id"]`` and ``["query_ids"]``. ``alignment`` defaults
    to ``split``.

    Raises CorpusError, with the record, for an invalid record or another shape.
    """
    extra, note = _end_offset(path)
    unit = options.offsets
    if unit == AUTO:
        unit = find_unit(_placed_texts(path, extra), nlp, report, CHARACTERS)
    writer, counts = AnnotationWriter(options.spans_key, report), Counter[str]()
    for item in _records(path, advance):
        with errors_at(f"{path}, {item.location}"):
            yield _Reader(nlp, options, report, item.location, extra, unit, counts).read(
                item.data, writer
            )
    writer.finish()
    report.notes.append(
        f"{counts['queries']} queries, {counts['known']} of them with answers; {note}"
    )


def to_record(docs: Iterable[Doc], version: str) -> dict[str, Any]:
    """Documents with queries in the original shape. The candidates are ``Doc.ents``; ids of
    entities are lost. Right answers without a mention are left out."""
    return {"version": version, DATA: [_record_of(doc, i) for i, doc in enumerate(docs)]}


def _record_of(doc: Doc, number: int) -> dict[str, Any]:
    name, title = doc.user_data.get("id", str(number)), doc.user_data.get("title", "")
    completions = completion_offsets(doc) or [[] for _ in query_texts(doc)]
    return {
        "id": name,
        "source": title,
        PASSAGE: {"text": doc.text, "entities": [_ends(*characters(x)) for x in doc.ents]},
        "qas": [
            {
                "id": f"{name}-{i}",
                "query": text,
                "answers": [{**_ends(*x), "text": y.text} for y in right for x in y.mentions],
            }
            for i, (text, right) in enumerate(zip(query_texts(doc), completions))
        ],
    }


def _ends(start: int, end: int) -> dict[str, int]:
    return {"start": start, "end": end - 1}


class _Reader:
    """Reads one record. extra: what is added to ``end``. unit: what offsets count. counts: of the
    file."""

    def __init__(
        self,
        nlp: Language,
        options: ConvertOptions,
        report: Report,
        location: str,
        extra: int,
        unit: str,
        counts: Counter[str],
    ):
        self.nlp, self.options, self.report, self.location = nlp, options, report, location
        self.extra, self.unit, self.counts = extra, unit, counts

    def read(self, data: dict[str, Any], writer: AnnotationWriter) -> Doc:
        text, entities = _passage(data)
        places = [self._place(x, text) for x in entities]
        spans = [CharSpan(*x, MENTION) for x in places if self._is_in(x, text)]
        doc = make_text_doc(self.nlp, text)
        alignment = self.options.alignment_or("split")
        placed = align_spans(doc, spans, alignment, self.report, self.location)
        doc = writer.write(
            ParsedDoc(placed.doc, list(placed.spans.values()), placed.unknown), self.location
        )
        mentions = {(x.start_char, x.end_char) for x in placed.spans.values()}
        read = [self._query(x, text, mentions) for x in _queries(data)]
        kept = [x for x in read if x is not None]
        set_queries(doc, [query for query, _, _ in kept])
        if any(answers for _, answers, _ in kept):
            set_completion_offsets(doc, [answers for _, answers, _ in kept])
        doc.user_data["id"] = _id_of(data)
        doc.user_data["query_ids"] = [name for _, _, name in kept]
        return doc

    def _place(self, entity: dict[str, Any], text: str) -> tuple[int, int]:
        start, end = _offsets(entity, self.extra)
        return _in_characters(text, start, end) if self.unit == UTF16 else (start, end)

    def _is_in(self, place: tuple[int, int], text: str) -> bool:
        inside = 0 <= place[0] < place[1] <= len(text)
        if not inside:
            self.report.count("entities left out: not in the text", self.location)
        return inside

    def _query(
        self, data: dict[str, Any], text: str, places: set[tuple[int, int]]
    ) -> tuple[str, list[Offsets], Any] | None:
        """Its text, answers and id; None if it has not exactly one placeholder."""
        query = get_value(data, "query", str, "a query").translate(_SPACES)
        check_unicode(query)
        n = query.count(PLACEHOLDER)
        if n != 1:
            times = "without a placeholder" if not n else "with several placeholders"
            self.report.count(f"queries left out: {times}", self.location)
            return None
        self.counts["queries"] += 1
        by_text: dict[str, set[tuple[int, int]]] = {}
        for item in get_items(data, "answers"):
            answer = require_object(item, "an answer")
            name = get_value(answer, "text", str, "an answer").translate(_SPACES)
            if name.strip():
                by_text.setdefault(name, set()).update(self._places(answer, name, text, places))
        self.counts["known"] += bool(by_text)
        if by_text and not set().union(*by_text.values()) & places:
            self.report.count("queries none of whose answers is an entity", self.location)
        return query, [Offsets(x, sorted(found)) for x, found in by_text.items()], _id_of(data)

    def _places(
        self, answer: dict[str, Any], name: str, text: str, places: set[tuple[int, int]]
    ) -> set[tuple[int, int]]:
        """Where the passage has an answer: at its offsets, or else the entities with its text."""
        if "start" in answer and "end" in answer:
            start, end = self._place(answer, text)
            if 0 <= start < end and text[start:end] == name:
                return {(start, end)}
            what = "answers that are not at their offsets, taken by their text"
            self.report.count(what, self.location)
        return {(start, end) for start, end in places if text[start:end] == name}


def _records(path: Path, advance: Advance = ignore_progress) -> Iterator[JsonObject]:
    """The objects with a passage. Raises CorpusError for a file of another shape."""
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    try:
        begins = json.loads(first)
    except (ValueError, RecursionError):
        begins = None  # one object on several lines
    if isinstance(begins, dict) and DATA not in begins:
        for item in read_json_lines(path, advance):
            with errors_at(f"{path}, {item.location}"):
                require_key(item.data, PASSAGE, "the record")
            yield item
        return
    whole = read_json_object(path)
    with errors_at(str(path)):
        if PASSAGE not in whole:
            require_key(whole, DATA, "the file")
        records = [whole] if PASSAGE in whole else require_items(whole, DATA)
    for number, record in enumerate(records, 1):
        location = f"record {number}"
        data = require_object(record, f"{path}, {location}: the record")
        with errors_at(f"{path}, {location}"):
            require_key(data, PASSAGE, "the record")
        yield JsonObject(location, data)
    advance(path.stat().st_size)


def _end_offset(path: Path) -> tuple[int, str]:
    """1 if the ends of a file are inclusive, else 0, and how that is known: by most of the answers
    that have text and offsets. Without any they are inclusive, as published."""
    counts = [0, 0]
    for item in _records(path):
        with errors_at(f"{path}, {item.location}"):
            text, _ = _passage(item.data)
            for query in _queries(item.data):
                for answer in get_items(query, "answers"):
                    answer = require_object(answer, "an answer")
                    start, end, name = (answer.get(key) for key in ("start", "end", "text"))
                    if type(start) is int and type(end) is int and isinstance(name, str):
                        name = name.translate(_SPACES)
                        for extra in (0, 1):
                            place = start, end + extra
                            counts[extra] += name in {
                                text[a:b]
                                for a, b in (place, _in_characters(text, *place))
                                if a >= 0
                            }
    extra = int(counts[1] >= counts[0])
    what = f"ends are {'inclusive' if extra else 'exclusive'}"
    return extra, f"{what}, by the texts of {counts[extra]} answers" if any(counts) else what


def _placed_texts(path: Path, extra: int) -> Iterator[PlacedText]:
    """The passages in which units of offsets differ, with their entities."""
    for item in _records(path):
        location = f"{path}, {item.location}"
        with errors_at(location):
            text, entities = _passage(item.data)
            if has_wide_characters(text):
                yield PlacedText(location, text, [_offsets(x, extra) for x in entities])


def _offsets(entity: dict[str, Any], extra: int) -> tuple[int, int]:
    start, end = (get_value(entity, key, int, "an entity") for key in ("start", "end"))
    return start, end + extra


def _in_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """Units of UTF-16 as characters; (-1, -1) if they are inside of one."""
    try:
        return from_utf16(text, start), from_utf16(text, end)
    except CorpusError:
        return -1, -1


def _passage(data: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    passage = require_object(data[PASSAGE], "passage")
    text = get_value(passage, "text", str, "passage").translate(_SPACES)
    check_unicode(text)
    return text, [require_object(x, "an entity") for x in get_items(passage, "entities")]


def _queries(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [require_object(x, "an item of qas") for x in require_items(data, "qas")]


def _id_of(data: dict[str, Any]) -> Any:
    return data.get("id", data.get("idx"))
