"""Column files: one word and its tag per line, blank lines between sentences."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import ConfigError, CorpusError
from .characters import tokenise
from .conversion_report import Report
from .lines import Advance, at_line, ignore_progress, read_lines
from .options import AUTO, ConvertOptions
from .tag_schemes import PREFIXES, SchemeDetector, Tag, TaggedEntity, parse_tag, read_entities
from .words import count_cut, spaces_between

DOCSTART = "-DOCSTART-"
COMMENTS = ("# ", "#\t")
# str.strip() and \s also match Unicode spaces, which some corpora contain as words.
_BLANK = " \t"


@dataclass(frozen=True)
class Layout:
    """Column layout: the separator, the number of columns, and the indices of word and tag."""

    tabs: bool
    width: int
    word: int
    tag: int

    def cells(self, line: str) -> list[str]:
        """Split a line into cells without surrounding white space."""
        return _split(line, self.tabs)


class TaggedWord(NamedTuple):
    """One word, its tag and its line number."""

    line: int
    word: str
    tag: Tag


@dataclass
class Sentence:
    """The words between two blank lines. opens_document: it follows a ``-DOCSTART-`` line."""

    opens_document: bool
    words: list[TaggedWord] = field(default_factory=list)

    @property
    def tags(self) -> list[Tag]:
        return [word.tag for word in self.words]

    @property
    def lines(self) -> list[int]:
        return [word.line for word in self.words]


def read_columns(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield documents with entities and sentence starts from a column file.

    Words become tokens unchanged. The format does not record the spaces between them, so the
    text joins them by single spaces (spaCy's corpus reader keeps the words instead of tokenising
    that text), or as :func:`.spaces_between` says. The file is read twice: once to detect its
    layout and scheme, once for its documents. ``report`` is filled while documents are consumed.

    Raises CorpusError, with the line, for a wrong number of columns, an invalid tag, a tag of
    another scheme, a file without words, and one whose words are running numbers; ConfigError if
    the file lacks a configured column.
    """
    layout = find_layout(path, options)
    first_pass = _without_numbering(path, layout, read_sentences(path, layout, Report()))
    scheme = choose_scheme(path, first_pass, options, report)
    sentences = read_sentences(path, layout, report, advance)
    yield from _make_docs(nlp, sentences, scheme, options, report)
    _note_documents(options, report)


def make_sentence_docs(
    path: Path,
    nlp: Language,
    sentences: Sequence[Sentence],
    options: ConvertOptions,
    report: Report,
) -> Iterator[Doc]:
    """Yield the documents of sentences that were read from another file, with their scheme
    detected."""
    scheme = choose_scheme(path, sentences, options, report)
    yield from _make_docs(nlp, sentences, scheme, options, report)


def find_layout(path: Path, options: ConvertOptions) -> Layout:
    """Detect the layout of a file from its first line with a word."""
    for number, line in read_lines(path):
        if line.strip(_BLANK) and not line.startswith((DOCSTART, *COMMENTS)):
            tabs = "\t" in line.strip(_BLANK)
            if options.separator != AUTO:
                tabs = options.separator == "tab"
            width = len(_split(line, tabs))
            if width < 2:
                raise CorpusError(
                    f"{at_line(path, number)}: one column only, {line!r}; a word and its tag "
                    "are needed, separated by a tab or by spaces."
                )
            word = _column("word_column", options.word_column, width, path, number)
            tag = _column("tag_column", options.tag_column, width, path, number)
            if word == tag:
                raise ConfigError(f"word_column and tag_column are both column {word}.")
            return Layout(tabs, width, word, tag)
    raise CorpusError(f"{path} contains no line with a word and a tag.")


def read_sentences(
    path: Path, layout: Layout, report: Report, advance: Advance = ignore_progress
) -> Iterator[Sentence]:
    """Yield the non-empty sentences of a file."""
    sentence = Sentence(opens_document=False)
    for number, line in read_lines(path, advance):
        cells = layout.cells(line)
        if line.strip(_BLANK) and not _is_docstart(cells, layout):
            word = _read_word(path, number, line, cells, layout, report)
            if word is not None:
                sentence.words.append(word)
            continue
        if sentence.words:
            yield sentence
            sentence = Sentence(opens_document=False)
        if line.strip(_BLANK):
            report.docstart_lines += 1
            sentence.opens_document = True
    if sentence.words:
        yield sentence


def _split(line: str, tabs: bool) -> list[str]:
    line = line.rstrip(_BLANK)
    if tabs:
        return [cell.strip(_BLANK) for cell in line.split("\t")]
    return re.split(r"[ \t]+", line.strip(_BLANK))


def _column(setting: str, column: int, width: int, path: Path, number: int) -> int:
    if not -width <= column < width:
        raise ConfigError(
            f"{setting} is {column}, but {at_line(path, number)} has {width} columns "
            "(numbered from 0)."
        )
    return column % width


def _is_docstart(cells: list[str], layout: Layout) -> bool:
    return cells[0].startswith(DOCSTART) or cells[layout.word : layout.word + 1] == [DOCSTART]


def _read_word(
    path: Path, number: int, line: str, cells: list[str], layout: Layout, report: Report
) -> TaggedWord | None:
    """The word on a line, or None for a comment."""
    fits = len(cells) == layout.width
    tag = _read_tag(cells[layout.tag], f"line {number}", report) if fits else None
    if line.startswith(COMMENTS) and tag is None:
        report.count("comment lines skipped", f"line {number}")
        return None
    if not fits:
        raise CorpusError(
            f"{at_line(path, number)}: {len(cells)} columns in {line!r}, but the file's first "
            f"line has {layout.width}. Words that contain spaces need tabs between the columns."
        )
    if not cells[layout.word]:
        raise CorpusError(f"{at_line(path, number)}: the word is empty in {line!r}.")
    if tag is None:
        raise CorpusError(
            f"{at_line(path, number)}: {cells[layout.tag]!r} is not a tag. A tag is O, or one "
            "of B I L O U E S, a hyphen and a label, as in B-person."
        )
    return TaggedWord(number, cells[layout.word], tag)


def _read_tag(cell: str, location: str, report: Report) -> Tag | None:
    """Parse a cell; of several tags separated by "," or "|", the first is taken."""
    tags = [parse_tag(part) for part in re.split(r"[,|]", cell)]
    if len(tags) > 1 and None not in tags:
        report.count("cells with several tags, of which the first is taken", location)
        return tags[0]
    return parse_tag(cell)


def _without_numbering(
    path: Path, layout: Layout, sentences: Iterable[Sentence]
) -> Iterator[Sentence]:
    """The sentences. Raises CorpusError after the last if the words of each are 1, 2, 3, ... (or
    0, 1, 2, ...): then their column is another."""
    is_numbered, longest = True, 0
    for sentence in sentences:
        words = [x.word for x in sentence.words]
        longest = max(longest, len(words))
        runs = (range(start, start + len(words)) for start in (0, 1))
        is_numbered = is_numbered and any(words == [str(i) for i in run] for run in runs)
        yield sentence
    if is_numbered and longest > 1:
        raise CorpusError(
            f"{path}: column {layout.word} numbers the words of each sentence. Give the column of "
            "the words, as in --word-column 1, and that of the tags (--tag-column) if it is not "
            "the last."
        )


def choose_scheme(
    path: Path, sentences: Iterable[Sentence], options: ConvertOptions, report: Report
) -> str:
    """The configured or detected scheme; recorded in the report."""
    detector = SchemeDetector()
    for sentence in sentences:
        detector.add(sentence.tags, sentence.lines)
    if options.scheme != AUTO:
        for prefix, line in detector.first_line.items():
            if prefix not in PREFIXES[options.scheme]:
                raise CorpusError(
                    f"{at_line(path, line)}: the tag begins with {prefix}-, which "
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


def _make_docs(
    nlp: Language,
    sentences: Iterable[Sentence],
    scheme: str,
    options: ConvertOptions,
    report: Report,
) -> Iterator[Doc]:
    for group in _group(sentences, options):
        yield _make_doc(nlp, group, scheme, report)


def _group(sentences: Iterable[Sentence], options: ConvertOptions) -> Iterator[list[Sentence]]:
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


def _make_doc(nlp: Language, group: list[Sentence], scheme: str, report: Report) -> Doc:
    words: list[str] = []
    starts: list[bool | int | None] = []
    entities: list[TaggedEntity] = []
    for sentence in group:
        sentence_entities, repairs = read_entities(sentence.tags, scheme)
        for repair in repairs:
            report.count(repair.what, f"line {sentence.lines[repair.position]}")
        offset = len(words)
        for start, end, label in sentence_entities:
            entities.append(TaggedEntity(start + offset, end + offset, label))
        words.extend(word.word for word in sentence.words)
        starts.extend(i == 0 for i in range(len(sentence.words)))
    spaces = spaces_between(nlp, words, report)
    doc = Doc(nlp.vocab, words=words, spaces=spaces, sent_starts=starts)
    doc.set_ents([Span(doc, s, e, label=label) for s, e, label in entities], default="outside")
    if spaces is not None:
        count_cut(tokenise(nlp, doc.text), doc.ents, report, f"line {group[0].lines[0]}")
    report.add_doc(doc, doc.ents, sentences=len(group))
    return doc


def _note_documents(options: ConvertOptions, report: Report) -> None:
    if options.documents and not report.docstart_lines:
        report.notes.append(f"no {DOCSTART} line: the whole file is one document")
    if not options.documents and report.docstart_lines:
        report.notes.append(
            f"{report.docstart_lines} {DOCSTART} lines: the documents option keeps those "
            "documents whole"
        )
