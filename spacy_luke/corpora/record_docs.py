"""Records to documents: the one path of all formats of a text with spans and relations."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import CorpusError
from .annotation_writer import AnnotationWriter, ParsedDoc, RelationSpans
from .characters import CharSpan, align_spans, make_text_doc, overlapping_tokens
from .checks import errors_at
from .conversion_report import Report
from .options import ConvertOptions
from .records import Record

ALIGNMENT = "strict"
"""The default of the setting ``alignment`` for these formats."""
META, ID = "meta", "id"


def write_records(
    path: Path, records: Iterable[Record], nlp: Language, options: ConvertOptions, report: Report
) -> Iterator[Doc]:
    """Yield one document per record of a file; records without a text, and those with the text of
    an earlier one, are counted."""
    writer = AnnotationWriter(options.spans_key, report)
    earlier: set[str] = set()
    n_repeated = 0
    for record in records:
        if not record.text:
            report.count("records skipped: empty text", record.location)
            continue
        with errors_at(f"{path}, {record.location}"):
            parsed = parse_record(nlp, record, options.alignment_or(ALIGNMENT), report)
        n_repeated += record.text in earlier
        earlier.add(record.text)
        doc = writer.write(parsed, record.location)
        if record.partial and not doc.spans[writer.key]:  # an empty group would say "none"
            del doc.spans[writer.key]
        yield doc
    writer.finish()
    if n_repeated:
        report.notes.append(
            f"records with the text of an earlier one, each a document of its own: {n_repeated:,}"
        )


def parse_record(nlp: Language, record: Record, alignment: str, report: Report) -> ParsedDoc:
    """A record's document with its annotation. Raises CorpusError if tokens and text differ."""
    given = [span for span in record.spans if span.start < span.end]
    if len(given) < len(record.spans):
        n_empty = len(record.spans) - len(given)
        report.count("spans left out: they contain no character", record.location, n_empty)
    doc, spans, unknown = align_spans(
        _make_doc(nlp, record), given, alignment, report, record.location
    )
    if record.meta is not None:
        doc.user_data[META] = record.meta
    if record.name:
        doc.user_data[ID] = record.name
    unclear = (CharSpan(start, end, "") for start, end in record.unclear)
    unknown.update(*(overlapping_tokens(doc, place) for place in unclear))
    if record.partial:
        unknown.update(range(len(doc)))
    types = [
        (spans[item], item.types) for item in given if item.types is not None and item in spans
    ]
    places = {(item.start, item.end): span for item, span in spans.items()}
    relations: list[RelationSpans] = [
        (places.get(relation.head), places.get(relation.tail), relation.label)
        for relation in record.relations
    ]
    return ParsedDoc(doc, list(spans.values()), unknown, types, relations)


def _make_doc(nlp: Language, record: Record) -> Doc:
    """A document with the record's tokens, or else with those of the tokenizer."""
    if record.tokens is None:
        return make_text_doc(nlp, record.text)
    words: list[str] = []
    spaces: list[bool] = []
    place = 0
    for token in record.tokens:
        _add_gap(words, spaces, record.text[place : token.start])
        words.append(token.text)
        spaces.append(False)
        place = token.end
    _add_gap(words, spaces, record.text[place:])
    return Doc(nlp.vocab, words=words, spaces=spaces)


def _add_gap(words: list[str], spaces: list[bool], gap: str) -> None:
    """Text between tokens: a space belongs to the token before it, as in spaCy, and other white
    space is a token."""
    if gap.strip():
        raise CorpusError("the tokens do not spell out the text.")
    if words and gap.startswith(" "):
        spaces[-1], gap = True, gap[1:]
    if gap:
        words.append(gap)
        spaces.append(False)
