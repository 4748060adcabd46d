"""brat's standoff: a folder of texts, each with a file of annotation beside it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from ..files import is_hidden
from .checks import errors_at
from .conversion_report import Report
from .lines import Advance, at_line, ignore_progress, read_lines
from .options import ConvertOptions
from .quotes import same_letters
from .record_builder import RecordBuilder
from .record_docs import write_records
from .records import Record

TEXT, ANNOTATION = ".txt", ".ann"
BOM, CRLF = "\ufeff", "\r\n"
_SPAN = re.compile(r"(\S+) (\d{1,18} \d{1,18}(?:;\d{1,18} \d{1,18})*)")
_RELATION = re.compile(r"(\S+) \S+?:(\S+) \S+?:(\S+)\s*")
_NORMALIZATION = re.compile(r"\S+ (\S+) ([^\s:]+):(.+)")
_NOT_READ = {
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "#": "notes",
    "*": "equivalences",
}
"""First character of a line's id -> what is counted and not read."""


@dataclass
class Mention:
    """A text-bound annotation: fragments are its offsets, of which it usually has one pair."""

    line: int
    label: str
    fragments: list[tuple[int, int]]
    quote: str
    ids: list[str] = field(default_factory=list)


@dataclass
class Standoff:
    """The lines of an annotation file that are read.

    mentions: by id.
    relations: line, ids of head and tail, label.
    ids: line, id of the mention, and its id in a knowledge base.
    """

    mentions: dict[str, Mention] = field(default_factory=dict)
    relations: list[tuple[int, str, str, str]] = field(default_factory=list)
    ids: list[tuple[int, str, str]] = field(default_factory=list)


def read_brat(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per text of a folder, and of the folders in it.

    Text-bound annotations (T) are spans, relations (R) relations from the first argument to the
    second, and the id of a normalization (N) is ``kb_id``, without the name of its resource.
    Events, attributes, notes and equivalences are counted. ``Doc.user_data["id"]`` is the text's
    file without its suffix.

    The fragments of a span are one span if only white space is between them; otherwise it is left
    out. Offsets are checked by the quoted text. Raises CorpusError, with file and line, for invalid
    lines.
    """
    texts = [x for x in sorted(path.rglob(f"*{TEXT}")) if not is_hidden(x, path)]
    for annotation in sorted(path.rglob(f"*{ANNOTATION}")):
        if is_hidden(annotation, path):
            report.count("hidden files skipped", str(annotation.relative_to(path)))
            continue
        if not annotation.with_suffix(TEXT).exists():
            raise CorpusError(f"{annotation} has no text: {annotation.with_suffix(TEXT).name}.")
    if not texts:
        raise CorpusError(f"{path} contains no {TEXT} file.")
    records = _read_records(path, texts, report, advance)
    yield from write_records(path, records, nlp, options, report)


def _read_records(
    folder: Path, texts: list[Path], report: Report, advance: Advance
) -> Iterator[Record]:
    for path in texts:
        name = path.relative_to(folder).with_suffix("")
        annotation = path.with_suffix(ANNOTATION)
        if not annotation.exists():
            report.count(f"texts skipped: no {ANNOTATION} file", str(name))
            continue
        standoff = read_standoff(annotation, report, advance)
        form = _read_text(path, standoff)
        advance(path.stat().st_size)
        with errors_at(str(annotation)):
            yield _read_record(form, standoff, str(name), report)


def read_standoff(path: Path, report: Report, advance: Advance = ignore_progress) -> Standoff:
    """Read an annotation file. Raises CorpusError, with the line, for an invalid line."""
    standoff = Standoff()
    for number, line in read_lines(path, advance):
        if line.strip():
            with errors_at(at_line(path, number)):
                _add_line(standoff, number, line, path, report)
    for number, name, kb_id in standoff.ids:
        if name in standoff.mentions:
            standoff.mentions[name].ids.append(kb_id)
        else:
            what = "normalizations left out: of an annotation that is not a span"
            report.count(what, at_line(path, number))
    return standoff


def _add_line(standoff: Standoff, number: int, line: str, path: Path, report: Report) -> None:
    name, *cells = line.split("\t", 2)  # a text may have tabs
    kind = name[:1]
    if kind == "T":
        if name in standoff.mentions:
            raise CorpusError(f"a second {name!r}.")
        standoff.mentions[name] = _mention(number, cells, line)
    elif kind == "R":
        match = _match(_RELATION, cells, line)
        standoff.relations.append((number, match[2], match[3], match[1]))
    elif kind == "N":
        match = _match(_NORMALIZATION, cells, line)
        standoff.ids.append((number, match[1], match[3].strip()))
    elif kind in _NOT_READ:
        report.count(f"annotation not read: {_NOT_READ[kind]}", at_line(path, number))
    else:
        raise CorpusError(f"{line[:60]!r} does not begin with the id of an annotation.")


def _match(pattern: re.Pattern[str], cells: list[str], line: str) -> re.Match[str]:
    match = pattern.fullmatch(cells[0]) if cells else None
    if match is None:
        raise CorpusError(f"{line[:60]!r} is not a line of brat's standoff.")
    return match


def _mention(number: int, cells: list[str], line: str) -> Mention:
    match = _match(_SPAN, cells, line)
    pairs = (pair.split() for pair in match[2].split(";"))
    fragments = sorted((int(start), int(end)) for start, end in pairs)
    return Mention(number, match[1], fragments, cells[1] if len(cells) > 1 else "")


class Reading(NamedTuple):
    """A text, and the number of characters before it that offsets count."""

    text: str
    shift: int


def _read_text(path: Path, standoff: Standoff) -> Reading:
    """The text without byte order mark. If more spans are then at their offsets, the mark does not
    count, or CRLF is one character."""
    try:
        raw = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as err:
        raise CorpusError(f"{path}: byte {err.start} is not UTF-8. Save it as UTF-8.") from err
    text = raw.removeprefix(BOM)
    forms = [Reading(text, shift) for shift in range(len(raw) - len(text), -1, -1)]
    if CRLF in text:
        forms += [Reading(form.text.replace(CRLF, "\n"), form.shift) for form in forms]
    return max(forms, key=lambda form: sum(_is_at(x, form) for x in standoff.mentions.values()))


def _is_at(mention: Mention, form: Reading) -> bool:
    (start, _), (_, end) = mention.fragments[0], mention.fragments[-1]
    there = form.text[max(start - form.shift, 0) : max(end - form.shift, 0)]
    return len(mention.fragments) == 1 and same_letters(there, mention.quote)


def _read_record(form: Reading, standoff: Standoff, name: str, report: Report) -> Record:
    builder = RecordBuilder(form.text, name, report)
    for key, mention in standoff.mentions.items():
        _add_mention(builder, key, mention, form.shift)
    for number, head, tail, label in standoff.relations:
        builder.add_relation(head, tail, label, f"line {number}")
    return builder.record(name)


def _add_mention(builder: RecordBuilder, name: str, mention: Mention, shift: int) -> None:
    text, report = builder.text, builder.report
    fragments = [(start - shift, end - shift) for start, end in mention.fragments]
    (start, _), (_, end) = fragments[0], fragments[-1]
    if len(fragments) > 1:
        gaps = pairwise(fragments)
        if any(text[before[1] : after[0]].strip() for before, after in gaps):
            what = "discontinuous spans left out: there are words between their parts"
            report.count(what, builder.location)
            for part in fragments:
                builder.leave_out(*part, name)
            return
        report.count("spans in several parts, with white space between, joined", builder.location)
    ids = list(dict.fromkeys(mention.ids))
    if len(ids) > 1:
        report.count("spans with several ids, left without an id", builder.location)
    kb_id = ids[0] if len(ids) == 1 else ""
    owner = f"{name} in line {mention.line}"
    builder.add_span(start, end, mention.label, owner, name, mention.quote or None, kb_id)
