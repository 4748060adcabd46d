"""The JSON format of TACRED and its revisions: words, a subject, an object, their relation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import CorpusError
from .annotation_writer import AnnotationWriter, ParsedDoc
from .brackets import PLAIN, TABLES
from .checks import errors_at, get_name, get_strings, get_value
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import JsonObject, read_json_list
from .options import ConvertOptions
from .words import WordDoc

NO_RELATION = "no_relation"


def read_tacred(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per record of a JSON list.

    Keys read: ``id``, stored in ``Doc.user_data["id"]``; ``token``, the words; ``subj_start``,
    ``subj_end`` (inclusive), ``subj_type``, and the same for ``obj``; ``relation``. The spans have
    the ids ``subj`` and ``obj`` and their types as labels. The subject is the relation's head.
    ``brackets`` defaults to ``plain``.

    Raises CorpusError, with the record, for an invalid record.
    """
    writer = AnnotationWriter(options.spans_key, report)
    for item in read_json_list(path, advance):
        with errors_at(f"{path}, {item.location}"):
            parsed = _parse(nlp, item, options.brackets_or(PLAIN), report)
        writer.pairs_without_relation += not parsed.relations
        yield writer.write(parsed, item.location)
    writer.finish(NO_RELATION)


def _parse(nlp: Language, item: JsonObject, brackets: str, report: Report) -> ParsedDoc:
    data = item.data
    name = get_value(data, "id", str, "the record")
    relation = get_name(data, "relation", "the record")
    tokens = get_strings(data, "token", "the record")
    words = [TABLES[brackets].get(word, word) for word in tokens]
    document = WordDoc(nlp, words, report, item.location)
    document.doc.user_data["id"] = name
    subject, object_ = (_side(document, data, side) for side in ("subj", "obj"))
    parsed = ParsedDoc(document.doc, [span for span in (subject, object_) if span is not None])
    if relation != NO_RELATION:
        parsed.relations.append((subject, object_, relation))
    return parsed


def _side(document: WordDoc, data: dict[str, Any], side: str) -> Span | None:
    first = get_value(data, f"{side}_start", int, "the record")
    last = get_value(data, f"{side}_end", int, "the record")
    label = get_name(data, f"{side}_type", "the record")
    if not 0 <= first <= last < document.n_words:
        raise CorpusError(
            f"{side}_start is {first} and {side}_end {last}, but the record has "
            f"{document.n_words} words."
        )
    return document.span(first, last + 1, label, side, span_id=side)
