"""JSON lines with character offsets, as annotation tools write them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import get_words_and_spaces

from ..errors import CorpusError
from .lines import Advance, ignore_progress, place
from .options import ConvertOptions
from .records import Record, SpanRecord, read_records
from .report import Report

META = "meta"


def read_jsonl(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document for each accepted record of a JSON lines file.

    Keys read: ``text``; ``spans``, each with ``label``, ``start`` and ``end`` (characters, end
    exclusive) or ``token_start`` and ``token_end`` (inclusive), and optionally ``kb_id``;
    optionally ``tokens``, each with ``text``, ``start`` and ``end``, which replace the
    tokenizer; ``answer``; ``meta``, kept in ``Doc.user_data["meta"]``.

    ``Doc.spans[options.spans_key]`` takes every span that aligns with the tokens. ``Doc.ents``
    takes those that share no token with another. Entity annotation is left missing, not set to
    "outside", on the other tokens under a span that could not be an entity.

    Raises CorpusError naming the line for a record that is not as described.
    """
    stored = Stored()
    for record in read_records(path, report, advance):
        if not record.text:
            report.count("records skipped: empty text", f"line {record.line}")
            continue
        doc = _make_doc(nlp, path, record)
        if record.meta is not None:
            doc.user_data[META] = record.meta
        spans, lost = _align(doc, record, options.alignment, report)
        stored.add(_store(doc, spans, lost, options.spans_key), record.line)
        report.add_doc(doc, spans)
        yield doc
    stored.describe(options.spans_key, report)


class Stored:
    """Totals of where the spans of a file went."""

    def __init__(self) -> None:
        self.spans = 0
        self.ents = 0
        self.mixed_docs = 0
        self.first = ""

    def add(self, counts: tuple[int, int], line: int) -> None:
        """Take a document's numbers of spans and of entities."""
        spans, ents = counts
        self.spans += spans
        self.ents += ents
        if ents < spans:
            self.mixed_docs += 1
            self.first = self.first or f"line {line}"

    def describe(self, key: str, report: Report) -> None:
        """Write the totals into the report."""
        report.notes.append(
            f"doc.spans[{key!r}] holds {self.spans} spans, doc.ents {self.ents} of them"
        )
        if self.mixed_docs:
            what = f"overlapping spans kept in doc.spans[{key!r}] and left out of doc.ents"
            where = f"{self.first}; {self.mixed_docs} documents"
            report.count(what, where, self.spans - self.ents)


def _make_doc(nlp: Language, path: Path, record: Record) -> Doc:
    """The record's text as a document, by its own tokens or by the tokenizer."""
    if record.tokens is None:
        doc = nlp.make_doc(record.text)
    else:
        try:
            words, spaces = get_words_and_spaces([t.text for t in record.tokens], record.text)
        except ValueError as err:
            raise CorpusError(
                f"{place(path, record.line)}: the tokens do not spell out the text."
            ) from err
        doc = Doc(nlp.vocab, words=words, spaces=spaces)
    if doc.text != record.text:
        raise CorpusError(
            f"{place(path, record.line)}: the tokenizer of {nlp.lang!r} changes the text, so "
            "character offsets would shift. Give tokens in the record."
        )
    return doc


def _align(
    doc: Doc, record: Record, alignment: str, report: Report
) -> tuple[list[Span], list[SpanRecord]]:
    """The record's spans as spans of the document, and the ones that do not align."""
    spans: list[Span] = []
    lost: list[SpanRecord] = []
    where = f"line {record.line}"
    for item in dict.fromkeys(record.spans):
        span = _char_span(doc, item, "strict")
        if span is None and alignment != "strict":
            span = _char_span(doc, item, alignment)
            if span is not None:
                report.count(f"spans moved to token boundaries ({alignment})", where)
        if span is None:
            report.count(f"spans left out: they cut a token (alignment {alignment})", where)
            lost.append(item)
        else:
            spans.append(span)
    repeats = len(record.spans) - len(set(record.spans))
    if repeats:
        report.count("repeated spans taken once", where, repeats)
    return spans, lost


def _char_span(doc: Doc, item: SpanRecord, mode: str) -> Span | None:
    span = doc.char_span(
        item.start, item.end, label=item.label, kb_id=item.kb_id, alignment_mode=mode
    )
    return span if span is not None and len(span) else None


def _store(doc: Doc, spans: list[Span], lost: Iterable[SpanRecord], key: str) -> tuple[int, int]:
    """Set ``doc.spans[key]`` and ``doc.ents``; return how many spans each of them holds."""
    doc.spans[key] = spans
    covered = [0] * len(doc)
    for span in spans:
        for i in range(span.start, span.end):
            covered[i] += 1
    ents = [span for span in spans if all(covered[i] == 1 for i in range(span.start, span.end))]
    unknown = {i for i, times in enumerate(covered) if times > 1}
    for span in spans:
        if span not in ents:
            unknown.update(range(span.start, span.end))
    for item in lost:
        unknown.update(
            token.i for token in doc if token.idx < item.end and item.start < token.idx + len(token)
        )
    unknown.difference_update(i for ent in ents for i in range(ent.start, ent.end))
    missing = [doc[i : i + 1] for i in sorted(unknown)]
    doc.set_ents(ents, missing=missing, default="outside")
    return len(spans), len(ents)
