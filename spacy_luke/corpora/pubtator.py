"""PubTator: abstracts, mentions with ids, and relations between ids."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import CorpusError
from ..kb.entity import NIL
from .annotation_writer import AnnotationWriter, ParsedDoc, RelationSpans
from .characters import (
    CharSpan,
    align_spans,
    check_offsets,
    make_text_doc,
    overlapping_tokens,
)
from .checks import errors_at, is_offset
from .conversion_report import Report
from .lines import Advance, at_line, ignore_progress, read_lines
from .options import ConvertOptions
from .quotes import same_letters

_TEXT = re.compile(r"([^|\t]+)\|([ta])\|(.*)")
_SEVERAL = re.compile(r"[|,;+]")
# A variant in tmVar's notation is one id, "c|SUB|G|2554+1|T", "|DEL|46|S", and so is one with the
# names of its parts, "tmVar:p|SUB|V|600|E;HGVS:p.V600E;CorrespondingGene:673".
_VARIANT = re.compile(r"[a-z]?\||tmVar:|HGVS:|RS#:")
NO_ENTITY = ("-1", "-")
"""Ids of mentions whose entity the vocabulary of the corpus does not contain."""


class Mention(NamedTuple):
    """A mention line; ``ids`` has several elements for a composite mention, and may be empty."""

    line: int
    start: int
    end: int
    text: str
    label: str
    ids: tuple[str, ...]


class IdRelation(NamedTuple):
    """A relation line: it relates two ids, not two mentions. Composite mentions may be related by
    all their ids."""

    line: int
    head: tuple[str, ...]
    tail: tuple[str, ...]
    label: str


@dataclass
class Abstract:
    """The lines of one document."""

    line: int
    name: str
    title: str
    abstract: str | None = None
    mentions: list[Mention] = field(default_factory=list)
    relations: list[IdRelation] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Title and abstract; offsets count one character between them."""
        return f"{self.title} {self.abstract}" if self.abstract else self.title


def read_pubtator(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per abstract: its title, a space, and its text.

    A mention's label is its type, and its ``kb_id_`` its id. The ids ``-1`` and ``-`` become "NIL".
    A mention with several ids, or without one, has no ``kb_id_``: it means several entities, or is
    not annotated. A relation between two ids is stored once, between the first mention of each: of
    those with this id alone, else of those with several. ``Doc.user_data["id"]`` is the id of the
    abstract. ``alignment`` defaults to ``split``.

    A mention whose text is not the text at its offsets is left out. Raises CorpusError, with the
    line, for invalid lines and offsets.
    """
    writer = AnnotationWriter(options.spans_key, report)
    earlier: set[tuple[str, str]] = set()
    for item in read_abstracts(path, advance):
        location = f"line {item.line}"
        if not item.text.strip():
            report.count("documents skipped: empty text", location)
        elif (item.name, item.text) in earlier:
            report.count("documents skipped: an earlier one has the same id and text", location)
        else:
            earlier.add((item.name, item.text))
            with errors_at(f"{path}, {location}"):
                parsed = _parse(nlp, item, options.alignment_or("split"), report)
            yield writer.write(parsed, location)
    writer.finish()


def read_abstracts(path: Path, advance: Advance = ignore_progress) -> Iterator[Abstract]:
    """Yield the documents of a file. Raises CorpusError, with the line, for an invalid line."""
    current: Abstract | None = None
    for number, line in read_lines(path, advance):
        if not line.strip():
            continue
        with errors_at(at_line(path, number)):
            match = _TEXT.fullmatch(line)
            if match is not None and match[2] == "t":
                if current is not None:
                    yield current
                current = Abstract(number, match[1], match[3])
            else:
                name = match[1] if match is not None else line.partition("\t")[0]
                if current is None or name != current.name:
                    owner = f"document {current.name!r}" if current else "no document"
                    raise CorpusError(
                        f"{line[:60]!r} belongs to {name!r}, but follows {owner}. A document "
                        "begins with its id, |t| and its title."
                    )
                if match is not None:
                    _add_abstract(current, match[3])
                else:
                    _add_annotation(current, number, line)
    if current is not None:
        yield current


def _add_abstract(item: Abstract, text: str) -> None:
    if item.abstract is not None:
        raise CorpusError(f"a second abstract of the document {item.name!r}.")
    if item.mentions or item.relations:
        raise CorpusError("the abstract follows annotation; it must follow the title.")
    item.abstract = text


def _add_annotation(item: Abstract, number: int, line: str) -> None:
    cells = line.split("\t")
    if len(cells) >= 5 and cells[1].isdecimal() and cells[2].isdecimal():
        label = cells[4].strip()
        if not label:
            raise CorpusError(f"the mention {cells[3]!r} has an empty type.")
        if not all(map(is_offset, cells[1:3])):
            raise CorpusError(f"the offsets of the mention {cells[3]!r} have too many digits.")
        ids = split_ids(cells[5]) if len(cells) > 5 else ()
        item.mentions.append(Mention(number, int(cells[1]), int(cells[2]), cells[3], label, ids))
    elif len(cells) in (4, 5) and all(cell.strip() for cell in cells[:4]):
        head, tail = (split_ids(cell) for cell in cells[2:4])
        item.relations.append(IdRelation(number, head, tail, cells[1].strip()))
    else:
        raise CorpusError(
            f"{line[:60]!r} has {len(cells)} cells separated by tabs, and is neither a mention "
            "(document, start, end, text, type, id) nor a relation (document, type, id, id)."
        )


def split_ids(cell: str) -> tuple[str, ...]:
    """The distinct ids of a cell, which ``|``, ``,``, ``;`` or ``+`` separate.

    Example: "D006470|D003556" has two, and the variant "c|SUB|G|2554+1|T" is one.
    """
    parts = [cell] if _VARIANT.match(cell.strip()) else _SEVERAL.split(cell)
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _parse(nlp: Language, item: Abstract, alignment: str, report: Report) -> ParsedDoc:
    text = item.text
    chars: dict[Mention, CharSpan] = {}
    misplaced: list[CharSpan] = []
    for mention in item.mentions:
        location = f"line {mention.line}"
        owner = f"the mention {mention.text!r} in {location}"
        check_offsets(owner, mention.start, mention.end, text)
        char = CharSpan(mention.start, mention.end, mention.label)
        if _same_text(mention, text, report):
            chars[mention] = replace(char, kb_id=_kb_id(mention, report))
        else:
            misplaced.append(char)
    placed = align_spans(
        make_text_doc(nlp, text), list(chars.values()), alignment, report, f"line {item.line}"
    )
    placed.doc.user_data["id"] = item.name
    unknown = placed.unknown.union(*(overlapping_tokens(placed.doc, x) for x in misplaced))
    spans = {mention: placed.spans[char] for mention, char in chars.items() if char in placed.spans}
    relations = _relations(item.relations, spans, report)
    return ParsedDoc(placed.doc, list(placed.spans.values()), unknown, relations=relations)


def _same_text(mention: Mention, text: str, report: Report) -> bool:
    """Whether the mention's text is at its offsets, if only letters and digits are compared."""
    there = text[mention.start : mention.end]
    if there == mention.text:
        return True
    same = same_letters(there, mention.text)
    what = "white space or punctuation, taken by offsets" if same else "letters, left out"
    report.count(
        f"mentions whose text and the text at their offsets differ in {what}",
        f"line {mention.line}",
    )
    return same


def _kb_id(mention: Mention, report: Report) -> str:
    if len(mention.ids) > 1:
        report.count(
            "mentions of several entities, left without an id (composite mentions)",
            f"line {mention.line}",
        )
        return ""
    if not mention.ids:
        report.count("mentions without an id", f"line {mention.line}")
        return ""
    return NIL if mention.ids[0] in NO_ENTITY else mention.ids[0]


def _relations(
    relations: Sequence[IdRelation], spans: dict[Mention, Span], report: Report
) -> list[RelationSpans]:
    first: dict[tuple[str, ...], Span] = {}
    # Mentions of one entity come before composite ones.
    order = sorted(spans, key=lambda mention: (len(mention.ids) > 1, mention.start, mention.end))
    for mention in order:
        for ids in (mention.ids, *((name,) for name in mention.ids)):
            first.setdefault(ids, spans[mention])
    related: list[RelationSpans] = []
    for relation in relations:
        if relation.head in first and relation.tail in first:
            related.append((first[relation.head], first[relation.tail], relation.label))
        else:
            report.count(
                "relations left out: an id of theirs has no mention", f"line {relation.line}"
            )
    return related
