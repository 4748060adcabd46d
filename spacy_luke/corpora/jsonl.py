"""JSON lines with character offsets, as annotation tools write them."""

from collections.abc import Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import get_words_and_spaces

from ..errors import CorpusError
from .characters import make_text_doc, place_spans
from .checks import located
from .lines import Advance, ignore_progress
from .mentions import Marked, Writer
from .options import ConvertOptions
from .records import Record, read_records
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
    exclusive) or ``token_start`` and ``token_end`` (inclusive), and optionally ``kb_id`` and
    ``types``; ``relations``, see ``relation_records``; optionally ``tokens``, each with
    ``text``, ``start`` and ``end``, which replace the tokenizer; ``answer``; ``meta``, kept in
    ``Doc.user_data["meta"]``.

    Raises CorpusError naming the line for a record that is not as described.
    """
    writer = Writer(options.spans_key, report)
    for record in read_records(path, report, advance):
        if not record.text:
            report.count("records skipped: empty text", record.where)
            continue
        with located(f"{path}, {record.where}"):
            marked = _mark(_make_doc(nlp, record), record, options.alignment_or("strict"), report)
        yield writer.write(marked, record.where)
    writer.finish()


def _make_doc(nlp: Language, record: Record) -> Doc:
    """The record's text as a document, by its own tokens or by the tokenizer."""
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


def _mark(doc: Doc, record: Record, alignment: str, report: Report) -> Marked:
    doc, spans, unknown = place_spans(doc, record.spans, alignment, report, record.where)
    if record.meta is not None:
        doc.user_data[META] = record.meta
    types = [
        (spans[item], item.types)
        for item in record.spans
        if item.types is not None and item in spans
    ]
    places = {(item.start, item.end): span for item, span in spans.items()}
    relations: list[tuple[Span, Span, str]] = []
    for relation in record.relations:
        head, tail = places.get(relation.head), places.get(relation.tail)
        if head is None or tail is None:
            report.count("relations left out: one of their spans was", record.where)
        else:
            relations.append((head, tail, relation.label))
    return Marked(doc, list(spans.values()), unknown, types, relations)
