"""Articles from JSON lines: text with links at character offsets, whatever it was made from."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from ..corpora.checks import (
    check_unicode,
    get_items,
    get_name,
    get_names,
    get_strings,
    get_value,
    require_object,
)
from ..errors import ConfigError, CorpusError
from ..report import LOGGER
from ..vocab.entity_vocab import SPECIALS
from .article_checks import SHOWN, tell_repeated_titles
from .articles import STAGE
from .engine import Engine
from .manifest import Manifest, files_of_input
from .settings import language_code
from .stage import begin
from .tables import ARTICLES, CATEGORIES, EXCLUDED, FACTS, PAGES

PART_SIZE = 64 << 20
"""Minimum bytes per part of a file."""
BAD = "bad record"


class _Lines(NamedTuple):
    """The lines of a file in the bytes [start, end). first: number of the first line, from 1."""

    path: Path
    start: int
    end: int
    first: int

    def __str__(self) -> str:
        return f"{self.path} from line {self.first}"


class _Link(NamedTuple):
    start: int
    end: int
    target: str


class _Fact(NamedTuple):
    template: str
    field: str
    value: str
    targets: list[str]


class _Record(NamedTuple):
    page_id: int | None
    title: str
    text: str
    links: list[_Link]
    aliases: Sequence[str]
    categories: Sequence[str]
    facts: list[_Fact]


def read_linked_text(
    paths: Sequence[Path],
    folder: Path,
    engine: Engine,
    language: str,
    show_progress: bool = True,
    part_size: int = PART_SIZE,
) -> Manifest:
    """Read articles from JSON lines. Each record has ``title``, ``text`` and ``links``, a list of
    objects with ``start``, ``end`` (characters, end exclusive) and ``target``, a title. A link may
    have its ``text``, which must be the text between its offsets.

    Optional: ``id``, a number or a name; ``aliases``, other names; ``categories``; ``facts``, a
    list of objects with ``field``, ``value``, and optional ``template`` and ``targets`` (titles).
    Targets may be aliases, and ids that are names.

    Bad records are left out, counted, listed in ``excluded.parquet``, and the first ones logged.
    Raises CorpusError if all are bad.
    """
    if not language:
        raise ConfigError("JSON lines do not contain their language; set --lang.")
    language = language_code(language)
    parts = [part for path in paths for part in _parts(path.absolute(), part_size)]
    settings = {"language": language, "source": "linked text", "part_size": part_size}
    inputs = files_of_input([path.absolute() for path in paths])
    with begin(STAGE, folder, settings, inputs, len(parts)) as stage:
        manifest = stage.run(parts, _read_part, engine, show_progress)
    _tell_bad_records(manifest)
    tell_repeated_titles(manifest)
    return manifest


def _tell_bad_records(manifest: Manifest) -> None:
    tables = (pq.read_table(path) for path in manifest.paths(EXCLUDED.file))
    reasons = [row["reason"] for table in tables for row in table.to_pylist()]
    bad = [reason for reason in reasons if reason.startswith(BAD)]
    for reason in bad[:SHOWN]:
        LOGGER.warning("%s", reason)
    if len(bad) > SHOWN:
        LOGGER.warning("and %d more; %s lists them all", len(bad) - SHOWN, EXCLUDED.file)
    if bad and not manifest.counts["article"]:
        raise CorpusError(f"No record can be used. The first one is a {bad[0]}")


def _parts(path: Path, size: int) -> Iterator[_Lines]:
    """Cut a file between lines."""
    if not path.is_file():
        raise CorpusError(f"{path}: no such file")
    start, first, number = 0, 1, 0
    with path.open("rb") as file:
        for number, _ in enumerate(file, 1):
            if file.tell() - start >= size:
                yield _Lines(path, start, file.tell(), first)
                start, first = file.tell(), number + 1
        if file.tell() > start or not number:
            yield _Lines(path, start, file.tell(), first)


def _read_part(part: _Lines, folder: Path) -> dict[str, int]:
    counts: Counter[str] = Counter(article=0)
    with (
        PAGES.writer(folder) as pages,
        ARTICLES.writer(folder) as articles,
        FACTS.writer(folder) as facts,
        CATEGORIES.writer(folder) as categories,
        EXCLUDED.writer(folder) as excluded,
    ):
        for number, line in _lines(part):
            place = f"{part.path.name}, line {number}"
            counts["pages"] += 1
            try:
                record = _record(line)
            except CorpusError as error:
                counts[BAD] += 1
                excluded.add((place, f"{BAD}: {place}: {error}"))
                continue
            links = _without_overlap(record, counts)
            page_id = number if record.page_id is None else record.page_id
            pages.add((record.title, "article", None))
            for alias in record.aliases:
                pages.add((alias, "redirect", record.title))
            for category in record.categories:
                categories.add((page_id, record.title, category))
            for template, field, value, targets in record.facts:
                facts.add((page_id, record.title, template, 0, field, value, value, targets))
            counts["redirect"] += len(record.aliases)
            counts["categories"] += len(record.categories)
            counts["facts"] += len(record.facts)
            counts["article"] += 1
            if not record.text.strip():
                counts["article without text"] += 1
                excluded.add((record.title, "article without text"))
                continue
            counts["links"] += len(links)
            counts["characters"] += len(record.text)
            starts, ends, targets = (list(x) for x in zip(*links)) if links else ([], [], [])
            anchors = [record.text[start:end] for start, end, _ in links]
            articles.add((page_id, record.title, record.text, starts, ends, targets, anchors))
    return dict(counts)


def _lines(part: _Lines) -> Iterator[tuple[int, bytes]]:
    """Number and content of the lines that are not blank."""
    with part.path.open("rb") as file:
        file.seek(part.start)
        number = part.first
        while file.tell() < part.end:
            line = file.readline()
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield number, line
            number += 1


def _record(line: bytes) -> _Record:
    """Raises CorpusError."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"not JSON: {error}.") from error
    data = require_object(value, "the record")
    title = _title(get_name(data, "title", "the record"), "title")
    text = get_value(data, "text", str, "the record")
    check_unicode(text)
    number, name = _id(data.get("id"))
    aliases = get_names(data, "aliases", "the record") if data.get("aliases") else ()
    names = dict.fromkeys(_title(alias, "alias") for alias in (*aliases, *name))
    names.pop(title, None)
    return _Record(
        number,
        title,
        text,
        [_link(item, text, i) for i, item in enumerate(get_items(data, "links"))],
        list(names),
        get_names(data, "categories", "the record") if data.get("categories") else (),
        [_fact(item, i) for i, item in enumerate(get_items(data, "facts"))],
    )


def _id(value: Any) -> tuple[int | None, tuple[str, ...]]:
    """An id as a number, or as a name that links may have as their target."""
    if type(value) is int and abs(value) < 1 << 63:
        return value, ()
    if isinstance(value, str) and value:
        check_unicode(value)
        return None, (value,)
    if value is None:
        return None, ()
    raise CorpusError(f"id is {value!r}; use a whole number or a name.")


def _title(text: str, key: str) -> str:
    title = text.strip()
    if not title or any(character in title for character in "\t\n\r\0"):
        raise CorpusError(f"{key} {text!r} is blank, or has a tab, a line break or NUL.")
    if title in SPECIALS:
        raise CorpusError(f"{key} {title!r} is a special entity.")
    return title


def _link(item: Any, text: str, i: int) -> _Link:
    owner = f"link {i}"
    data = require_object(item, owner)
    start, end = (get_value(data, key, int, owner) for key in ("start", "end"))
    if not 0 <= start < end <= len(text):
        raise CorpusError(
            f"{owner} is at [{start}, {end}) of {len(text)} characters. Offsets count characters "
            "(code points), and the end is exclusive."
        )
    shown = data.get("text")
    if shown is not None and shown != text[start:end]:
        raise CorpusError(
            f"{owner} has the text {shown!r}, but there is {text[start:end]!r} at [{start}, {end})."
        )
    anchor = text[start:end]
    if anchor.strip():  # as anchors of dumps; with space at an end they are not whole words
        start, end = start + len(anchor) - len(anchor.lstrip()), start + len(anchor.rstrip())
    return _Link(start, end, _title(get_name(data, "target", owner), f"target of {owner}"))


def _fact(item: Any, i: int) -> _Fact:
    owner = f"fact {i}"
    data = require_object(item, owner)
    template = get_name(data, "template", owner) if data.get("template") else ""
    targets = get_strings(data, "targets", owner) if data.get("targets") else []
    value = get_value(data, "value", str, owner)
    check_unicode(value)
    return _Fact(template, get_name(data, "field", owner), value, targets)


def _without_overlap(record: _Record, counts: Counter[str]) -> list[_Link]:
    """The links in text order. Of two that overlap the first is kept."""
    kept: list[_Link] = []
    for link in sorted(record.links):
        if not record.text[link.start : link.end].strip():
            counts["dropped: link without text"] += 1
        elif kept and link.start < kept[-1].end:
            counts["dropped: overlapping link"] += 1
        else:
            kept.append(link)
    return kept
