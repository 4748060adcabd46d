"""JSON lines records with character offsets, checked before anything is made of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import srsly

from ..errors import CorpusError
from .lines import Advance, ignore_progress, place, read_lines
from .report import Report

ANSWERS = ("accept", "reject", "ignore")


@dataclass(frozen=True)
class TokenRecord:
    """A token's text and its character offsets in the record's text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class SpanRecord:
    """An annotated span: character offsets (end exclusive), label and knowledge base id."""

    start: int
    end: int
    label: str
    kb_id: str = ""


@dataclass(frozen=True)
class Record:
    """An accepted record; ``tokens`` is None where the record gives none."""

    line: int
    text: str
    spans: list[SpanRecord]
    tokens: list[TokenRecord] | None
    meta: Any


def read_records(
    path: Path, report: Report, advance: Advance = ignore_progress
) -> Iterator[Record]:
    """Yield the accepted records of a JSON lines file; the others are counted.

    Raises CorpusError naming the line for anything that is not as the format says.
    """
    for number, line in read_lines(path, advance):
        if not line.strip():
            continue
        try:
            data = _parse(line)
            if _is_accepted(data, number, report):
                yield _read_record(data, number, report)
        except CorpusError as err:
            raise CorpusError(f"{place(path, number)}: {err}") from err


def _parse(line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as err:
        raise CorpusError(f"not JSON: {err}.") from err
    if not isinstance(data, dict):
        raise CorpusError(f"a JSON object is needed, not {_kind(data)}.")
    return data


def _is_accepted(data: dict[str, Any], number: int, report: Report) -> bool:
    answer = data.get("answer", "accept")
    if answer not in ANSWERS:
        raise CorpusError(f"answer is {answer!r}; it can be {', '.join(ANSWERS)}.")
    if answer != "accept":
        report.count(f"records skipped: answer {answer!r}", f"line {number}")
    return bool(answer == "accept")


def _read_record(data: dict[str, Any], number: int, report: Report) -> Record:
    text = _get(data, "text", str, "the record")
    _check_unicode(text)
    tokens = None if data.get("tokens") is None else _read_tokens(data, text)
    if data.get("spans") is None:
        report.count("records without the key spans, read as having none", f"line {number}")
    relations = len(_items(data, "relations"))
    if relations:
        report.count("relations not read by this format", f"line {number}", relations)
    spans = []
    for i, item in enumerate(_items(data, "spans")):
        span = _read_span(item, i, text, tokens)
        spans.append(span)
        if tokens is not None and _token_places_differ(item, span, f"span {i}", tokens):
            what = "spans whose token_start or token_end contradict start and end, which are kept"
            report.count(what, f"line {number}")
    return Record(number, text, spans, tokens, _read_meta(data))


def _read_tokens(data: dict[str, Any], text: str) -> list[TokenRecord]:
    tokens: list[TokenRecord] = []
    for i, item in enumerate(_items(data, "tokens")):
        token = _read_token(item, i, text)
        if tokens and token.start < tokens[-1].end:
            raise CorpusError(f"token {i} begins before token {i - 1} ends.")
        tokens.append(token)
    return tokens


def _read_token(item: Any, i: int, text: str) -> TokenRecord:
    owner = f"token {i}"
    if not isinstance(item, dict):
        raise CorpusError(f"{owner} is {_kind(item)}, not an object.")
    token = TokenRecord(
        _get(item, "text", str, owner),
        _get(item, "start", int, owner),
        _get(item, "end", int, owner),
    )
    if not token.text:
        raise CorpusError(f"{owner} is empty.")
    if min(token.start, token.end) < 0 or text[token.start : token.end] != token.text:
        raise CorpusError(
            f"{owner} is {token.text!r}, but the text has "
            f"{text[max(token.start, 0) : max(token.end, 0)]!r} at {token.start} to {token.end}."
        )
    return token


def _read_span(item: Any, i: int, text: str, tokens: list[TokenRecord] | None) -> SpanRecord:
    owner = f"span {i}"
    if not isinstance(item, dict):
        raise CorpusError(f"{owner} is {_kind(item)}, not an object.")
    label = _get(item, "label", str, owner)
    kb_id = "" if item.get("kb_id") is None else _get(item, "kb_id", str, owner)
    if not label:
        raise CorpusError(f"{owner} has an empty label.")
    _check_unicode(label + kb_id)
    if "start" not in item and "end" not in item and tokens is not None:
        start, end = _from_tokens(item, owner, tokens)
    else:
        start, end = _get(item, "start", int, owner), _get(item, "end", int, owner)
    if not 0 <= start < end <= len(text):
        raise CorpusError(
            f"{owner} ({label}) goes from {start} to {end}, in a text of {len(text)} characters."
        )
    return SpanRecord(start, end, label, kb_id)


def _from_tokens(item: dict[str, Any], owner: str, tokens: list[TokenRecord]) -> tuple[int, int]:
    """Character offsets from token positions, the last of them inclusive."""
    first = _get(item, "token_start", int, owner)
    last = _get(item, "token_end", int, owner)
    if not 0 <= first <= last < len(tokens):
        raise CorpusError(
            f"{owner} goes from token {first} to token {last}, in a record of {len(tokens)} tokens."
        )
    return tokens[first].start, tokens[last].end


def _token_places_differ(
    item: dict[str, Any], span: SpanRecord, owner: str, tokens: list[TokenRecord]
) -> bool:
    if item.get("token_start") is None or item.get("token_end") is None:
        return False
    return _from_tokens(item, owner, tokens) != (span.start, span.end)


def _read_meta(data: dict[str, Any]) -> Any:
    """The record's ``meta``, which a ``.spacy`` file must be able to hold."""
    meta = data.get("meta")
    try:
        srsly.msgpack_dumps(meta)
    except (ValueError, OverflowError, TypeError) as err:
        raise CorpusError(f"meta cannot be stored: {err}.") from err
    return meta


def _items(data: dict[str, Any], key: str) -> list[Any]:
    items = data.get(key)
    if items is None:
        return []
    if not isinstance(items, list):
        raise CorpusError(f"{key} is {_kind(items)}, not a list.")
    return items


def _get(data: dict[str, Any], key: str, kind: type, owner: str) -> Any:
    if key not in data:
        raise CorpusError(f"{owner} has no key {key!r}.")
    value = data[key]
    if type(value) is not kind:  # True is an int to isinstance
        wanted = {str: "a string", int: "a whole number"}[kind]
        raise CorpusError(f"{key} of {owner} is {_kind(value)}, not {wanted}.")
    return value


def _check_unicode(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as err:
        raise CorpusError(f"half a surrogate pair in {text[:40]!r}: not valid Unicode.") from err


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    names.update({type(None): "null", int: "a whole number", float: "a number with a fraction"})
    return names[type(value)]
