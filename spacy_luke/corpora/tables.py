"""Tables of users: CSV or TSV with a header, and one span, or one word and its tag, per row."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from ..kb.whole_words import is_whole
from .checks import errors_at, is_offset
from .columns import Sentence, TaggedWord, make_sentence_docs
from .conversion_report import Report
from .label_studio_tasks import refuse_table
from .lines import Advance, at_line, ignore_progress
from .offset_units import CHARACTERS
from .options import AUTO, ConvertOptions
from .record_builder import RecordBuilder
from .record_docs import write_records
from .records import Record
from .table_rows import Row, Table, read_table
from .tag_schemes import parse_tag

TEXT, START, END, LABEL, ID, MENTION, KB_ID = (
    *("text", "start", "end", "label"),
    *("id", "mention", "kb_id"),
)
DOCUMENT, SENTENCE, WORD, TAG = "document", "sentence", "word", "tag"
ROLES = {
    TEXT: ("text", "sentence", "document", "content"),
    START: ("start", "begin", "start_offset", "start_char", "offset_start"),
    END: ("end", "stop", "end_offset", "end_char", "offset_end"),
    LABEL: ("label", "entity_type", "type", "tag", "category"),
    ID: ("id", "doc_id", "document_id", "text_id"),
    MENTION: ("mention", "span", "span_text", "entity_text", "mention_text"),
    KB_ID: ("kb_id", "entity_id", "qid"),
    DOCUMENT: ("doc_id", "document_id", "text_id", "document", "doc"),
    SENTENCE: ("sentence #", "sentence_id", "sent_id", "sentence", "sent"),
    WORD: ("word", "token", "words", "tokens"),
    TAG: ("tag", "ner", "ner_tag", "bio", "iob", "label", "labels", "tags"),
}
"""Role of a column -> the names that it has, in any case, unless ``fields`` gives another one."""
CRLF = "\r\n"
_WHOLE = re.compile(r"\d+\.0")
_SPANS, _WORDS = (TEXT, START, END, LABEL), (WORD, TAG)


def read_tables(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield the documents of a table; its header decides which of two shapes it has.

    One span per row: columns for the text, the start and end of the span (characters, end
    exclusive) and its label; optional are an id of the text, by which rows belong to one document,
    the text of the span, by which offsets are checked, and an id of a knowledge base. A row with a
    text and without a span is a text without entities. Rows without an id belong together if
    their texts are equal; so do all rows if no id is repeated, but texts are: such ids are those of
    spans.

    One word per row: columns for the word and its tag. A sentence begins where the column of the
    sentence or of the document has a new value, or after an empty row. Tags and sentences are read
    as in ``columns``.

    Raises CorpusError, with the line, for invalid rows, and with the columns of the file if they
    are of neither shape, or are those of Label Studio; and ConfigError for settings of the other
    shape.
    """
    table = read_table(path, ROLES, options, report)
    if all(role in table.columns for role in _SPANS):
        options.refuse(("n_sents", "scheme"), f"{path} has one span per row")
        _note_columns(table, (*_SPANS, ID, MENTION, KB_ID), report)
        records = _read_spans(table, options, report)
        yield from write_records(path, records, nlp, options, report)
    elif all(role in table.columns for role in _WORDS):
        options.refuse(("alignment", "offsets", "spans_key"), f"{path} has one word per row")
        _note_columns(table, (*_WORDS, SENTENCE, DOCUMENT), report)
        sentences = list(_read_sentences(table, report))
        if not sentences:
            raise CorpusError(f"{path} contains no word.")
        yield from make_sentence_docs(path, nlp, sentences, options, report)
    else:
        refuse_table(path, table.header)
        names = ", ".join(map(repr, table.header))
        raise CorpusError(
            f"{path}: the columns are {names}. Needed are {_list(_SPANS)} (one span per row), or "
            f"{_list(_WORDS)} (one word per row). Give others by --fields, as in "
            "text=Sentence,label=Class. The format columns reads files without a header."
        )
    advance(path.stat().st_size)


def _list(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _note_columns(table: Table, roles: tuple[str, ...], report: Report) -> None:
    names = [f"{x} {table.header[table.columns[x]]!r}" for x in roles if x in table.columns]
    report.notes.append(f"columns: {', '.join(names)}")


def _read_spans(table: Table, options: ConvertOptions, report: Report) -> Iterator[Record]:
    rows = [row for row in table.rows() if not row.is_blank]
    key = TEXT if ID not in table.columns or _ids_of_spans(rows, report) else ID
    texts: dict[str, list[Row]] = {}
    if options.offsets in (AUTO, CHARACTERS):
        _count_line_ends_once(rows, key, report)
    for row in rows:
        if not row.cells[TEXT] and key == TEXT:
            raise CorpusError(f"{at_line(table.path, row.line)}: the text is empty.")
        texts.setdefault(row.cells[key] or row.cells[TEXT], []).append(row)
    for of_text in texts.values():
        yield _read_text(table.path, of_text, options, report)


def _count_line_ends_once(rows: Sequence[Row], key: str, report: Report) -> None:
    """Make CR LF in texts one character if more spans fit then: an editor or writer of Windows has
    made them of the line ends that offsets count."""
    texts = {row.cells[key]: row.cells[TEXT] for row in rows if CRLF in row.cells[TEXT]}
    fits, n_differ = [0, 0], 0
    for row in rows:
        text, place = texts.get(row.cells[key], ""), _place(row)
        forms = text, text.replace(CRLF, "\n")
        if place is not None and forms[0][slice(*place)] != forms[1][slice(*place)]:
            n_differ += 1
            for i, form in enumerate(forms):
                fits[i] += _fits(form, *place, row.cells.get(MENTION, ""))
    if n_differ and fits[1] >= fits[0]:
        what = "texts in whose offsets CR LF is one character, read so"
        if fits[1] == fits[0]:
            what = "texts with CR LF, which offsets may count once or twice: read as twice"
        first = next(row for row in rows if row.cells[key] in texts)
        report.count(what, f"line {first.line}", len(texts))
    if fits[1] > fits[0]:
        for row in rows:
            for role in {TEXT, MENTION, key} & row.cells.keys():
                row.cells[role] = row.cells[role].replace(CRLF, "\n")


def _place(row: Row) -> tuple[int, int] | None:
    """Start and end; None if they are missing or no numbers."""
    cells = [row.cells[role].strip().removesuffix(".0") for role in (START, END)]
    return (int(cells[0]), int(cells[1])) if all(map(is_offset, cells)) else None


def _fits(text: str, start: int, end: int, mention: str) -> bool:
    """Whether a span is its mention or, if none is given, begins and ends with words."""
    found = text[start:end]
    if mention:
        return found.replace(CRLF, "\n") == mention.replace(CRLF, "\n")
    is_inside = 0 <= start < end <= len(text)
    return is_inside and found == found.strip() and is_whole(text, start, end)


def _ids_of_spans(rows: Iterable[Row], report: Report) -> bool:
    """Whether the ids are those of spans: none is repeated, but texts are. The rows that repeat a
    text are counted."""
    texts: set[str] = set()
    ids: set[str] = set()
    repeated: list[Row] = []
    for row in rows:
        if row.cells[ID] in ids:
            return False
        ids.update([row.cells[ID]] if row.cells[ID] else [])
        repeated += [row] if row.cells[TEXT] in texts else []
        texts.update([row.cells[TEXT]] if row.cells[TEXT] else [])
    what = "rows with an id of their own but the text of an earlier row, read as its further spans"
    if repeated:
        report.count(what, f"line {repeated[0].line}", len(repeated))
    return bool(repeated)


def _read_text(path: Path, rows: list[Row], options: ConvertOptions, report: Report) -> Record:
    unit = CHARACTERS if options.offsets == AUTO else options.offsets
    text = next((row.cells[TEXT] for row in rows if row.cells[TEXT]), "")
    with errors_at(at_line(path, rows[0].line)):
        builder = RecordBuilder(text, f"line {rows[0].line}", report, unit)
    for row in rows:
        with errors_at(at_line(path, row.line)):
            if row.cells[TEXT] not in ("", text):
                raise CorpusError(f"the id {row.cells[ID]!r} has another text in an earlier line.")
            if any(row.cells[role].strip() for role in (START, END, LABEL)):
                _add_span(builder, row)
    return builder.record(rows[0].cells.get(ID) or None)


def _add_span(builder: RecordBuilder, row: Row) -> None:
    start, end = (_number(row, role) for role in (START, END))
    label = row.cells[LABEL].strip()
    quote = row.cells.get(MENTION) or None
    kb_id = row.cells.get(KB_ID, "").strip()
    if _WHOLE.fullmatch(kb_id):
        what = "ids that end in .0, as pandas writes whole numbers beside empty cells, kept so"
        builder.report.count(what, f"line {row.line}")
    builder.add_span(start, end, label, "the span", quote=quote, kb_id=kb_id)


def _number(row: Row, role: str) -> int:
    cell = row.cells[role].strip().removesuffix(".0")  # pandas writes 3.0 beside empty cells
    if not is_offset(cell):
        raise CorpusError(f"the {role} is {row.cells[role][:40]!r}, not a whole number.")
    return int(cell)


def _read_sentences(table: Table, report: Report) -> Iterator[Sentence]:
    sentence, current = Sentence(opens_document=False), {DOCUMENT: "", SENTENCE: ""}
    for row in table.rows():
        names = {role: row.cells.get(role, "").strip() for role in current}
        begins = {role for role, name in names.items() if name not in ("", current[role])}
        if (begins or row.is_blank) and sentence.words:
            yield sentence
            sentence = Sentence(opens_document=False)
        sentence.opens_document |= DOCUMENT in begins
        current = {role: name or current[role] for role, name in names.items()}
        if row.is_blank:
            continue
        if not row.cells[WORD].strip():
            report.count("rows left out: they have no word", f"line {row.line}")
            continue
        tag = parse_tag(row.cells[TAG].strip())
        if tag is None:
            raise CorpusError(
                f"{at_line(table.path, row.line)}: {row.cells[TAG]!r} is not a tag. A tag is O, or "
                "one of B I L O U E S, a hyphen and a label, as in B-person."
            )
        sentence.words.append(TaggedWord(row.line, row.cells[WORD].strip(), tag))
    if sentence.words:
        yield sentence
    if SENTENCE not in table.columns:
        report.notes.append("no column of sentences: only empty rows end a sentence")
