"""Documents from JSON lines with character offsets, the format of annotation tools."""

from collections.abc import Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import get_words_and_spaces

from ..errors import CorpusError
from .annotation_writer import AnnotationWriter, ParsedDoc, RelationSpans
from .characters import align_spans, make_text_doc
from .checks import errors_at
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .options import ConvertOptions
from .records import Record, read_records

META = "meta"


def read_jsonl(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per accepted record of a JSON lines file.

    Keys read: ``text``; ``spans``, each with ``label``, ``start`` and ``end`` (characters, end
    exclusive) or ``token_start`` and ``token_end`` (inclusive), and optional ``kb_id`` and
    ``types``; ``relations``, see ``relation_records``; optional ``tokens``, each with ``text``,
    ``start`` and ``end``, which replace the tokenizer; optional ``answer``; optional ``meta``,
    stored in ``Doc.user_data["meta"]``.

    Raises CorpusError, with the line, for an invalid record.
    """
    writer = AnnotationWriter(options.spans_key, report)
    for record in read_records(path, report, advance):
        if not record.text:
            report.count("records skipped: empty text", record.location)
            continue
        with errors_at(f"{path}, {record.location}"):
            parsed = parse_record(nlp, record, options.alignment_or("strict"), report)
        yield writer.write(parsed, record.location)
    writer.finish()


def _make_doc(nlp: Language, record: Record) -> Doc:
    """A document with the record's tokens, or else with those of the tokenizer."""
    if record.tokens is None:
        return make_text_doc(nlp, record.text)
    try:
        words, spaces = get_words_and_spaces([t.text for t in record.tokens], record.text)
    except ValueError as err:
        raise CorpusError("the tokens do not spell out the text.") from err
    doc = Doc(nlp.vocab, words=words, spaces=spaces)
    if doc.text != record.text:
        raise CorpusError("the tokens do not spell out the text.")
    return doc


def parse_record(nlp: Language, record: Record, alignment: str, report: Report) -> ParsedDoc:
    """A record's document with its annotation. Raises CorpusError if tokens and text differ."""
    doc, spans, unknown = align_spans(
        _make_doc(nlp, record), record.spans, alignment, report, record.location
    )
    if record.meta is not None:
        doc.user_data[META] = record.meta
    types = [
        (spans[item], item.types)
        for item in record.spans
        if item.types is not None and item in spans
    ]
    places = {(item.start, item.end): span for item, span in spans.items()}
    relations: list[RelationSpans] = [
        (places.get(relation.head), places.get(relation.tail), relation.label)
        for relation in record.relations
    ]
    return ParsedDoc(doc, list(spans.values()), unknown, types, relations)
