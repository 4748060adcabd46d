"""The JSON of TACRED and its revisions: words, a subject, an object and their relation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import CorpusError
from .brackets import PLAIN, TABLES
from .checks import get_name, get_strings, get_value, located
from .lines import Advance, ignore_progress
from .mentions import Marked, Writer
from .objects import Located, read_json_list
from .options import ConvertOptions
from .report import Report
from .words import WordDoc

NO_RELATION = "no_relation"


def read_tacred(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document for each record of a JSON list.

    Keys read: ``id``, kept in ``Doc.user_data["id"]``; ``token``, whose escaped brackets become
    brackets unless ``brackets`` says otherwise; ``subj_start``, ``subj_end`` (inclusive),
    ``subj_type``, and the same of ``obj``; ``relation``. The spans have the ids ``subj`` and
    ``obj`` and their types as labels; the subject is the relation's head.

    Raises CorpusError naming the record for one that is not as described.
    """
    writer = Writer(options.spans_key, report)
    for item in read_json_list(path, advance):
        with located(f"{path}, {item.where}"):
            marked, related = _mark(nlp, item, options.brackets_or(PLAIN), report)
        writer.pairs_without_relation += not related
        yield writer.write(marked, item.where)
    writer.finish(NO_RELATION)


def _mark(nlp: Language, item: Located, brackets: str, report: Report) -> tuple[Marked, bool]:
    """The record's document with its annotation, and whether it gives a relation."""
    data = item.data
    name = get_value(data, "id", str, "the record")
    relation = get_name(data, "relation", "the record")
    tokens = get_strings(data, "token", "the record")
    words = [TABLES[brackets].get(word, word) for word in tokens]
    document = WordDoc(nlp, words, report, item.where)
    document.doc.user_data["id"] = name
    subject, object_ = (_side(document, data, side) for side in ("subj", "obj"))
    marked = Marked(document.doc, [span for span in (subject, object_) if span is not None])
    if relation != NO_RELATION:
        if subject is None or object_ is None:
            report.count("relations left out: one of their spans was", item.where)
        else:
            marked.relations.append((subject, object_, relation))
    return marked, relation != NO_RELATION


def _side(document: WordDoc, data: dict[str, Any], side: str) -> Span | None:
    first = get_value(data, f"{side}_start", int, "the record")
    last = get_value(data, f"{side}_end", int, "the record")
    label = get_name(data, f"{side}_type", "the record")
    if not 0 <= first <= last < document.n_words:
        raise CorpusError(
            f"{side}_start is {first} and {side}_end {last}, in a record of "
            f"{document.n_words} words."
        )
    return document.span(first, last + 1, label, side, span_id=side)
