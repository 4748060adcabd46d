"""The record of a text, spans and relations, and its form in Prodigy's JSON."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import srsly

from ..annotations.annotated import LEAST_GOLD
from ..errors import CorpusError
from .characters import CharSpan, check_offsets
from .checks import (
    check_unicode,
    errors_at,
    get_items,
    get_name,
    get_names,
    get_value,
    in_digits,
    keys_of,
    kind_of,
    require_key,
    require_object,
)
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import read_json_objects
from .quotes import AT_OFFSETS, NOWHERE, find_quote
from .relation_records import (
    Place,
    RelationRecord,
    is_denied,
    read_relations,
    token_offsets,
)

ANSWERS = ("accept", "reject", "ignore")
UNANNOTATED_KEYS = {"text", "meta", "relations"}
"""A record without ``spans`` that has other keys is of another format, unless it has ``tokens``, or
an ``answer`` that is not about classes."""
CLASS_KEYS = {"label", "options", "accept"}
_MANUAL_VIEWS = ("ner_manual", "spans_manual", "relations")
"""Interfaces of Prodigy in which all spans of a text are annotated by hand."""
PARTIAL = "_is_binary"
"""The key of Prodigy for a record of which only the spans are annotated."""
_RECORD_KEYS = {"text", "tokens", "spans", "relations", "meta", "answer", "config", *CLASS_KEYS}
_SPAN_KEYS = {"start", "end", "token_start", "token_end", "text", "label", "score", "kb_id"}
_SPAN_KEYS |= {"types", "type_scores", "candidates"}


@dataclass(frozen=True)
class TokenRecord:
    """A token's text and its character offsets in the record's text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Record:
    """A text and its annotation.

    location: where it is in its file.
    spans: may contain spans without a character, which are left out and counted.
    tokens: None if the tokenizer is to be used.
    meta, name: stored in ``Doc.user_data["meta"]`` and ``["id"]``.
    unclear: places of spans that are not annotated reliably; their tokens are unknown.
    partial: only the spans are annotated; all other tokens are unknown.
    """

    location: str
    text: str
    spans: list[CharSpan]
    relations: list[RelationRecord]
    tokens: list[TokenRecord] | None = None
    meta: Any = None
    name: str = ""
    unclear: tuple[Place, ...] = ()
    partial: bool = False


def read_records(
    path: Path, report: Report, advance: Advance = ignore_progress
) -> Iterator[Record]:
    """Yield the accepted records of a file of JSON lines, or one JSON list; the others are counted.

    Raises CorpusError, with the line or record, for an invalid record.
    """
    n_records, n_annotated = 0, 0
    for location, data in read_json_objects(path, advance):
        n_records += 1
        n_annotated += any(key in data for key in ("spans", "tokens", "answer"))
        with errors_at(f"{path}, {location}"):
            record = (
                read_record(data, location, report) if accepts(data, location, report) else None
            )
            if record is not None and data.get("options"):
                _count_options(data, location, report, record.partial)
        if record is not None:
            yield record
    if n_records and not n_annotated:
        raise CorpusError(f"{path} is not annotated: none of its {n_records} records has 'spans'.")


def _count_options(data: dict[str, Any], location: str, report: Report, is_partial: bool) -> None:
    """Options are not read, and may say which spans were annotated: in Prodigy's "blocks" they may
    also be classes of a text whose entities were all annotated by hand."""
    if data.get("accept"):
        what = "records with chosen options, not read (ids: see the format prodigy-links)"
        report.count(what, location)
    if is_partial:
        what = (
            "records with options, of which only the spans are taken as annotated (if all "
            'entities are, set _view_id to "ner_manual")'
        )
        report.count(what, location)


def accepts(data: dict[str, Any], location: str, report: Report) -> bool:
    """Whether the annotator accepted a record; records with other answers are counted."""
    answer = data.get("answer", "accept")
    if answer not in ANSWERS:
        raise CorpusError(f"answer is {answer!r}; choose one of {', '.join(ANSWERS)}.")
    if answer != "accept":
        report.count(f"records skipped: answer {answer!r}", location)
    return bool(answer == "accept")


def read_record(data: dict[str, Any], location: str, report: Report) -> Record:
    """Validate a record. Raises CorpusError if it is invalid."""
    text = get_value(data, "text", str, "the record")
    check_unicode(text)
    tokens = None if data.get("tokens") is None else _read_tokens(data, text)
    places = None if tokens is None else [(token.start, token.end) for token in tokens]
    if data.get("spans") is None:
        _note_missing_spans(data, location, report)
    _count_not_read(data, _RECORD_KEYS, location, report)
    given: list[CharSpan] = []
    found: list[CharSpan] = []
    unclear: list[Place] = []
    moved: dict[Place, Place] = {}
    for i, item in enumerate(get_items(data, "spans")):
        span = _read_span(item, i, places, location, report)
        given.append(span)
        located = _locate(item, span, i, text, location, report)
        if located is None:
            unclear.append((span.start, span.end))
        else:
            found.append(located)
            moved[span.start, span.end] = (located.start, located.end)
        if places is not None and _token_offsets_differ(item, span, f"span {i}", places):
            what = "spans whose token_start or token_end contradict start and end, which are kept"
            report.count(what, location)
    return Record(
        location,
        text,
        found,
        _moved(read_relations(data, given, places, location, report), moved, location, report),
        tokens,
        check_meta(data.get("meta")),
        unclear=tuple(unclear),
        partial=_is_partial(data),
    )


def _note_missing_spans(data: dict[str, Any], location: str, report: Report) -> None:
    answered = "tokens" in data or ("answer" in data and not data.keys() & CLASS_KEYS)
    if not answered and data.keys() - UNANNOTATED_KEYS:
        require_key(data, "spans", "the record")
    what = "records without the key spans, read as having none"
    report.count(what, f"{location}; {keys_of(data)}")


def _count_not_read(
    data: dict[str, Any], keys: Container[str], location: str, report: Report, owner: str = ""
) -> None:
    """Count what may be an annotation under another key: lists and objects. Keys that begin with
    ``_`` are Prodigy's own."""
    for name, value in data.items():
        if value and isinstance(value, list | dict) and name not in keys and name[:1] != "_":
            report.count(f"{owner}{name} not read", location)


def _is_partial(data: dict[str, Any]) -> bool:
    """Whether the annotator of Prodigy only decided on the spans that were shown: accepted or
    rejected them, or chose options for them."""
    is_binary = data.get(PARTIAL, data.get("_view_id") == "ner") is True
    return is_binary or bool(data.get("options") and data.get("_view_id") not in _MANUAL_VIEWS)


def _read_tokens(data: dict[str, Any], text: str) -> list[TokenRecord]:
    tokens: list[TokenRecord] = []
    for i, item in enumerate(get_items(data, "tokens")):
        token = _read_token(item, i, text)
        if tokens and token.start < tokens[-1].end:
            raise CorpusError(f"token {i} begins before token {i - 1} ends.")
        tokens.append(token)
    return tokens


def _read_token(item: Any, i: int, text: str) -> TokenRecord:
    owner = f"token {i}"
    item = require_object(item, owner)
    token = TokenRecord(
        get_value(item, "text", str, owner),
        get_value(item, "start", int, owner),
        get_value(item, "end", int, owner),
    )
    if not token.text:
        raise CorpusError(f"{owner} is empty.")
    if min(token.start, token.end) < 0 or text[token.start : token.end] != token.text:
        raise CorpusError(
            f"{owner} is {token.text!r}, but the text has "
            f"{text[max(token.start, 0) : max(token.end, 0)]!r} at {token.start} to {token.end}."
        )
    return token


def _read_span(
    item: Any, i: int, tokens: list[tuple[int, int]] | None, location: str, report: Report
) -> CharSpan:
    """A span as in the file; its offsets may be outside the text."""
    owner = f"span {i}"
    item = require_object(item, owner)
    _count_not_read(item, _SPAN_KEYS, location, report, "span's ")
    label = get_name(item, "label", owner)
    kb_id = in_digits(item.get("kb_id"))
    if kb_id is None:
        kb_id = ""
    elif not isinstance(kb_id, str):
        raise CorpusError(f"kb_id of {owner} is {kind_of(kb_id)}, not a string.")
    check_unicode(kb_id)
    types = None if item.get("types") is None else _read_types(item, owner, location, report)
    if "start" not in item and "end" not in item and tokens is not None:
        start, end = token_offsets(item, owner, tokens)
    else:
        start = get_value(item, "start", int, owner)
        end = get_value(item, "end", int, owner)
    return CharSpan(start, end, label, kb_id, types=types)


def _read_types(item: dict[str, Any], owner: str, location: str, report: Report) -> tuple[str, ...]:
    """The types of a span; not those that a score of ``type_scores`` denies."""
    types, scores = get_names(item, "types", owner), get_items(item, "type_scores")
    n_types = len(item["types"])
    if scores and len(scores) != n_types:
        raise CorpusError(f"{owner} has {n_types} types, and {len(scores)} type_scores.")
    denied = {name for name, score in zip(item["types"], scores) if is_denied(score)}
    kept = tuple(name for name in types if name not in denied)
    if len(kept) < len(types):
        report.count(f"types left out: their score is below {LEAST_GOLD:g}", location)
    return kept


def _locate(
    item: dict[str, Any], span: CharSpan, i: int, text: str, location: str, report: Report
) -> CharSpan | None:
    """The span where the text that the file quotes is; None if it is not near its offsets."""
    quote = item.get("text")
    if isinstance(quote, str) and quote:
        start, end, how = find_quote(text, span.start, span.end, quote)
        if how != AT_OFFSETS:
            report.count(how, location)
        if how == NOWHERE:
            return None
        span = replace(span, start=start, end=end)
    if not 0 <= span.start == span.end <= len(text):  # an empty span is left out and counted later
        check_offsets(f"span {i} ({span.label})", span.start, span.end, text)
    return span


def _moved(
    relations: Iterable[RelationRecord], places: dict[Place, Place], location: str, report: Report
) -> list[RelationRecord]:
    """Relations of spans that were found. places: of spans in the file -> in the text."""
    moved = []
    for relation in relations:
        if relation.head in places and relation.tail in places:
            head, tail = places[relation.head], places[relation.tail]
            moved.append(RelationRecord(head, tail, relation.label))
        else:
            report.count("relations left out: one of their spans was", location)
    return moved


def _token_offsets_differ(
    item: dict[str, Any], span: CharSpan, owner: str, tokens: list[tuple[int, int]]
) -> bool:
    if item.get("token_start") is None or item.get("token_end") is None:
        return False
    return token_offsets(item, owner, tokens) != (span.start, span.end)


def further_keys(data: dict[str, Any], own: Container[str]) -> dict[str, Any] | None:
    """What the user imported beside the text, for ``meta``: the keys that are not the format's own,
    and those of an object ``meta``. None if there are none."""
    rest = {key: x for key, x in data.items() if key not in own}
    meta = rest.pop("meta", None)
    if not isinstance(meta, dict):
        meta = {} if meta is None else {"meta": meta}
    return {**meta, **rest} or None


def check_meta(meta: Any) -> Any:
    """Check that a value can be stored in a ``.spacy`` file. Raises CorpusError if it cannot."""
    try:
        if meta is not None:  # packing is slow
            srsly.msgpack_dumps(meta)
    except (ValueError, OverflowError, TypeError) as err:
        raise CorpusError(f"meta cannot be stored: {err}.") from err
    return meta
