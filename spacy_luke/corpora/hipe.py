"""HIPE's columns: words with entity tags of several layers, ids and layout flags."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import ConfigError, CorpusError
from .annotation_writer import AnnotationWriter, ParsedDoc
from .checks import errors_at
from .conversion_report import Report
from .lines import Advance, at_line, ignore_progress, read_lines
from .options import ConvertOptions
from .tag_schemes import Tag, parse_tag, read_entities
from .words import WordDoc

WORD, FLAGS = "TOKEN", "MISC"
IDS = {"LIT": "NEL-LIT", "METO": "NEL-METO"}
"""Last part of the name of an entity column -> the column of its ids. Other layers have none."""
UNSPECIFIED = "_"
DOCUMENT_ID = "document_id"


class Row(NamedTuple):
    """A word's line number, and its cells by the names of the columns."""

    line: int
    cells: dict[str, str]

    @property
    def flags(self) -> list[str]:
        return self.cells[FLAGS].split("|")


@dataclass
class Document:
    """The words of a document. meta: its comments, such as ``hipe2022:date``."""

    meta: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The document's id; empty if no comment has it."""
        return document_id(self.meta)


def document_id(comments: dict[str, str]) -> str:
    """The value of ``hipe2022:document_id``, with any name space; empty if it is absent."""
    ids = (x for key, x in comments.items() if key.rpartition(":")[2] == DOCUMENT_ID)
    return next(ids, "")


def read_hipe(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per document of a file, with sentence starts if ``EndOfSentence`` occurs.

    Words become tokens unchanged, also the two parts of a word at a line's end ("Fett¬", "henne").
    ``NoSpaceAfter`` determines the text, unless ``options.ignore_spacing`` is set. The report
    counts how many entities of that text cut a token of the tokenizer.

    The entities are those of ``options.ne_columns``. Their ``kb_id_`` is in ``NEL-LIT``, or in
    ``NEL-METO`` for metonymic columns. "NIL" is kept, and ``_`` becomes no id. Comments are stored
    in ``Doc.user_data["meta"]``, and the document's id in ``Doc.user_data["id"]``.

    Documents without annotation in these columns are skipped. Raises CorpusError, with the line,
    for a wrong number of columns and invalid tags; ConfigError if the file lacks a column.
    """
    header = read_header(path)
    missing = [name for name in options.ne_columns if name not in header]
    if missing:
        raise ConfigError(
            f"ne_columns has {missing[0]!r}, but the columns of {path} are {', '.join(header)}."
        )
    writer = AnnotationWriter(options.spans_key, report)
    for document in read_documents(path, header, advance):
        location = f"line {document.rows[0].line}"
        columns = [name for name in options.ne_columns if _is_annotated(document, name)]
        if columns:
            spaces = None if options.ignore_spacing else _spaces(document.rows)
            parsed, n_sents = _parse(path, nlp, document, columns, spaces, report)
            yield writer.write(parsed, location, n_sents)
        else:
            names = ", ".join(options.ne_columns)
            report.count(f"documents skipped: not annotated in {names}", location)
    writer.finish()


def read_header(path: Path) -> list[str]:
    """The names of the columns. Raises CorpusError if the first line does not have them."""
    for number, line in read_lines(path):
        names = [name.strip() for name in line.split("\t")]
        if names[0] != WORD or FLAGS not in names:
            raise CorpusError(
                f"{at_line(path, number)}: the names of HIPE's columns are needed, from {WORD} to "
                f"{FLAGS}, not {line[:80]!r}."
            )
        return names
    raise CorpusError(f"{path} is empty.")


def read_documents(
    path: Path, header: Sequence[str], advance: Advance = ignore_progress
) -> Iterator[Document]:
    """Yield the documents that have words. Blank lines, and comments with another document id,
    separate them."""
    document = Document()
    comments: dict[str, str] = {}
    for number, line in read_lines(path, advance):
        if number == 1:
            continue
        if not line.strip():
            if document.rows:
                yield document
                document = Document()
        elif line.startswith("# ") or (line.startswith("#") and "\t" not in line):
            key, _, value = line.removeprefix("#").partition("=")
            comments[key.strip()] = value.strip()
        else:
            if document.rows and document_id(comments):
                yield document
                document = Document()
            document.meta.update(comments)
            comments = {}
            document.rows.append(_read_row(path, number, line, header))
    if document.rows:
        yield document


def _read_row(path: Path, number: int, line: str, header: Sequence[str]) -> Row:
    cells = line.split("\t")
    if len(cells) != len(header):
        raise CorpusError(
            f"{at_line(path, number)}: {len(cells)} columns in {line[:80]!r}, but the file's first "
            f"line has {len(header)}."
        )
    return Row(number, dict(zip(header, (cell.strip(" ") for cell in cells))))


def _spaces(rows: Sequence[Row]) -> list[bool]:
    """Whether a space follows each word; none follows the last."""
    return ["NoSpaceAfter" not in row.flags for row in rows[:-1]] + [False]


def _is_annotated(document: Document, column: str) -> bool:
    return any(row.cells[column] != UNSPECIFIED for row in document.rows)


def _parse(
    path: Path,
    nlp: Language,
    document: Document,
    columns: Sequence[str],
    spaces: Sequence[bool] | None,
    report: Report,
) -> tuple[ParsedDoc, int]:
    """Returns the document with its annotation, and its number of sentences, 0 if unknown."""
    rows = document.rows
    location = f"line {rows[0].line}"
    ends = [i + 1 for i, row in enumerate(rows) if "EndOfSentence" in row.flags]
    begins = [0, *(i for i in ends if i < len(rows))] if ends else None
    texts = [row.cells[WORD] for row in rows]
    with errors_at(f"{path}, {location}"):
        words = WordDoc(nlp, texts, report, location, begins, spaces, keep_words=spaces is None)
    if document.name:
        words.doc.user_data["id"] = document.name
    words.doc.user_data["meta"] = document.meta
    spans = [span for column in columns for span in _read_column(path, words, rows, column, report)]
    return ParsedDoc(words.doc, spans), len(begins or ())


def _read_column(
    path: Path, words: WordDoc, rows: Sequence[Row], column: str, report: Report
) -> Iterator[Span]:
    tags = [_read_tag(path, row, column) for row in rows]
    # All of HIPE is IOB2; an entity may go on after the end of a sentence.
    entities, repairs = read_entities(tags, "IOB2")
    for repair in repairs:
        report.count(repair.what, f"line {rows[repair.position].line}")
    for start, end, label in entities:
        own = rows[start:end]
        location = f"line {own[0].line}"
        if any(flag.startswith("Partial-") for row in own for flag in row.flags):
            report.count("entities that begin or end inside a word, taken as whole words", location)
        kb_id = _kb_id(own, column, report)
        span = words.span(start, end, label, f"the entity in {location}", kb_id=kb_id)
        if span is not None:
            yield span


def _read_tag(path: Path, row: Row, column: str) -> Tag:
    cell = row.cells[column]
    tag = parse_tag("O" if cell == UNSPECIFIED else cell)
    if tag is None or tag.prefix not in "IOB":
        raise CorpusError(
            f"{at_line(path, row.line)}: {column} is {cell!r}. A tag is O, or B or I, a hyphen and "
            "a label, as in B-pers."
        )
    return tag


def _kb_id(rows: Sequence[Row], column: str, report: Report) -> str:
    ids = {row.cells.get(IDS.get(column.rpartition("-")[2], ""), UNSPECIFIED) for row in rows}
    if len(ids) > 1:
        what = "entities whose words have different ids, left without an id"
        report.count(what, f"line {rows[0].line}")
        return ""
    (kb_id,) = ids
    return "" if kb_id == UNSPECIFIED else kb_id
