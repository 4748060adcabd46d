"""Column files: one word a line with its tag, blank lines between sentences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import ConfigError, CorpusError
from .lines import Advance, ignore_progress, place, read_lines
from .options import AUTO, ConvertOptions
from .report import Report
from .tags import PREFIXES, Entity, SchemeDetector, Tag, parse_tag, read_entities

DOCSTART = "-DOCSTART-"
COMMENT = "# "
# Python's own idea of white space takes in characters that corpora use as words.
_BLANK = " \t"


@dataclass(frozen=True)
class Layout:
    """How a file's lines split: by tabs or by spaces, into how many cells, which two are read."""

    tabs: bool
    width: int
    word: int
    tag: int

    def cells(self, line: str) -> list[str]:
        """The cells of a line, without the white space around them."""
        return _split(line, self.tabs)


class Token(NamedTuple):
    """One word, its tag and its line number."""

    line: int
    word: str
    tag: Tag


@dataclass
class Sentence:
    """The tokens between two blank lines; the first of a document after ``-DOCSTART-``."""

    opens_document: bool
    tokens: list[Token] = field(default_factory=list)

    @property
    def tags(self) -> list[Tag]:
        return [token.tag for token in self.tokens]

    @property
    def lines(self) -> list[int]:
        return [token.line for token in self.tokens]


def read_columns(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield documents with entities and sentence starts from a column file.

    The words are the file's own; the file does not tell the spaces between them, so they are
    left unknown (the text joins the words by single spaces, and spaCy's corpus reader keeps
    the words instead of tokenising that text). The file is read twice: once for its layout and
    scheme, once for its documents. Fills ``report`` as documents are taken.

    Raises CorpusError naming the line for a line that does not fit the columns, a tag that is
    none or is not of the scheme, and a file without words; ConfigError for columns that the
    file does not have.
    """
    layout = find_layout(path, options)
    scheme = _settle_scheme(path, layout, options, report)
    for group in _group(read_sentences(path, layout, report, advance), options):
        yield _make_doc(nlp, path, group, scheme, report)
    _note_documents(options, report)


def find_layout(path: Path, options: ConvertOptions) -> Layout:
    """The layout of a file, from its first line with a word."""
    for number, line in read_lines(path):
        if line.strip(_BLANK) and not line.startswith((DOCSTART, COMMENT)):
            tabs = "\t" in line.strip(_BLANK)
            if options.separator != AUTO:
                tabs = options.separator == "tab"
            width = len(_split(line, tabs))
            if width < 2:
                raise CorpusError(
                    f"{place(path, number)}: one column only, {line!r}; a word and its tag "
                    "are needed, separated by a tab or by spaces."
                )
            word = _column("word_column", options.word_column, width, path, number)
            tag = _column("tag_column", options.tag_column, width, path, number)
            if word == tag:
                raise ConfigError(f"word_column and tag_column are both column {word}.")
            return Layout(tabs, width, word, tag)
    raise CorpusError(f"{path} holds no line with a word and a tag.")


def read_sentences(
    path: Path, layout: Layout, report: Report, advance: Advance = ignore_progress
) -> Iterator[Sentence]:
    """Yield the sentences of a file, none of them empty."""
    sentence = Sentence(opens_document=False)
    for number, line in read_lines(path, advance):
        cells = layout.cells(line)
        if line.strip(_BLANK) and not _is_docstart(cells, layout):
            token = _read_token(path, number, line, cells, layout, report)
            if token is not None:
                sentence.tokens.append(token)
            continue
        if sentence.tokens:
            yield sentence
            sentence = Sentence(opens_document=False)
        if line.strip(_BLANK):
            report.marked_documents += 1
            sentence.opens_document = True
    if sentence.tokens:
        yield sentence


def _split(line: str, tabs: bool) -> list[str]:
    line = line.rstrip(_BLANK)
    if tabs:
        return [cell.strip(_BLANK) for cell in line.split("\t")]
    return re.split(r"[ \t]+", line.strip(_BLANK))


def _column(setting: str, column: int, width: int, path: Path, number: int) -> int:
    if not -width <= column < width:
        raise ConfigError(
            f"{setting} is {column}, but {place(path, number)} has {width} columns "
            "(numbered from 0)."
        )
    return column % width


def _is_docstart(cells: list[str], layout: Layout) -> bool:
    return cells[0].startswith(DOCSTART) or cells[layout.word : layout.word + 1] == [DOCSTART]


def _read_token(
    path: Path, number: int, line: str, cells: list[str], layout: Layout, report: Report
) -> Token | None:
    """The token on a line; None for a comment."""
    fits = len(cells) == layout.width
    tag = _read_tag(cells[layout.tag], f"line {number}", report) if fits else None
    if line.startswith(COMMENT) and tag is None:
        report.count("comment lines skipped", f"line {number}")
        return None
    if not fits:
        raise CorpusError(
            f"{place(path, number)}: {len(cells)} columns in {line!r}, but the file's first "
            f"line has {layout.width}. Words that hold spaces need tabs between the columns."
        )
    if not cells[layout.word]:
        raise CorpusError(f"{place(path, number)}: the word is empty in {line!r}.")
    if tag is None:
        raise CorpusError(
            f"{place(path, number)}: {cells[layout.tag]!r} is not a tag. A tag is O, or one of "
            "B I L O U E S, a hyphen and a label, as in B-person."
        )
    return Token(number, cells[layout.word], tag)


def _read_tag(cell: str, where: str, report: Report) -> Tag | None:
    """The cell's tag; the first one where the cell lists several tags."""
    several = [parse_tag(part) for part in re.split(r"[,|]", cell)]
    if len(several) > 1 and None not in several:
        report.count("cells with several tags, of which the first is taken", where)
        return several[0]
    return parse_tag(cell)


def _settle_scheme(path: Path, layout: Layout, options: ConvertOptions, report: Report) -> str:
    """The scheme given or detected, named in the report."""
    detector = SchemeDetector()
    for sentence in read_sentences(path, layout, Report()):
        detector.add(sentence.tags, sentence.lines)
    if options.scheme != AUTO:
        for prefix, line in detector.first_line.items():
            if prefix not in PREFIXES[options.scheme]:
                raise CorpusError(
                    f"{place(path, line)}: the tag begins with {prefix}-, which "
                    f"{options.scheme} does not have. Leave scheme at auto, or give the right one."
                )
        report.scheme = f"{options.scheme} (given)"
        return options.scheme
    clash = detector.clash()
    if clash:
        places = [f"{prefix}- in line {detector.first_line[prefix]}" for prefix in clash]
        raise CorpusError(
            f"{path} mixes tags of BILOU ({places[0]}) and IOBES ({places[1]}). "
            "Write the file in one scheme."
        )
    scheme, note = detector.result()
    report.scheme = f"{scheme} (detected)"
    if note:
        report.notes.append(f"scheme: {note}")
    return scheme


def _group(sentences: Iterator[Sentence], options: ConvertOptions) -> Iterator[list[Sentence]]:
    """Join sentences into documents, never across a ``-DOCSTART-`` line."""
    group: list[Sentence] = []
    for sentence in sentences:
        full = not options.documents and len(group) == options.n_sents
        if group and (full or sentence.opens_document):
            yield group
            group = []
        group.append(sentence)
    if group:
        yield group


def _make_doc(nlp: Language, path: Path, group: list[Sentence], scheme: str, report: Report) -> Doc:
    words: list[str] = []
    starts: list[bool | int | None] = []
    entities: list[Entity] = []
    for sentence in group:
        found, repairs = read_entities(sentence.tags, scheme)
        for repair in repairs:
            report.count(repair.what, f"line {sentence.lines[repair.position]}")
        offset = len(words)
        entities.extend(Entity(s + offset, e + offset, label) for s, e, label in found)
        words.extend(token.word for token in sentence.tokens)
        starts.extend(i == 0 for i in range(len(sentence.tokens)))
    doc = Doc(nlp.vocab, words=words, sent_starts=starts)
    doc.set_ents([Span(doc, s, e, label=label) for s, e, label in entities], default="outside")
    report.add_doc(doc, doc.ents, sentences=len(group))
    return doc


def _note_documents(options: ConvertOptions, report: Report) -> None:
    if options.documents and not report.marked_documents:
        report.notes.append(f"no {DOCSTART} line: the whole file is one document")
    if not options.documents and report.marked_documents:
        report.notes.append(
            f"{report.marked_documents} {DOCSTART} lines: the documents option keeps those "
            "documents whole"
        )
