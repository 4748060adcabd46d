"""The JSON format in which CoNLL04 is distributed: words, entities and relations."""

from collections.abc import Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, Span

from .annotation_writer import AnnotationWriter, ParsedDoc
from .checks import (
    check_entity,
    errors_at,
    get_name,
    get_strings,
    get_value,
    require_items,
    require_object,
)
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import JsonObject, read_json_list
from .options import ConvertOptions
from .words import WordDoc


def read_conll04(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per record of a JSON list.

    Keys read: ``tokens``; ``entities``, each with ``type``, ``start`` and ``end`` (words, end
    exclusive); ``relations``, each with ``type``, ``head`` and ``tail`` (numbers of entities);
    optional ``orig_id``, stored in ``Doc.user_data["id"]`` as a string.

    Raises CorpusError, with the record, for an invalid record.
    """
    writer = AnnotationWriter(options.spans_key, report)
    for item in read_json_list(path, advance):
        with errors_at(f"{path}, {item.location}"):
            parsed = _parse(nlp, item, report)
        yield writer.write(parsed, item.location)
    writer.finish()


def _parse(nlp: Language, item: JsonObject, report: Report) -> ParsedDoc:
    data = item.data
    words = get_strings(data, "tokens", "the record")
    document = WordDoc(nlp, words, report, item.location)
    if data.get("orig_id") is not None:
        document.doc.user_data["id"] = str(data["orig_id"])
    entities: list[Span | None] = []
    for i, entity in enumerate(require_items(data, "entities")):
        owner = f"entity {i}"
        entity = require_object(entity, owner)
        start, end = (get_value(entity, key, int, owner) for key in ("start", "end"))
        entities.append(document.span(start, end, get_name(entity, "type", owner), owner))
    parsed = ParsedDoc(document.doc, [span for span in entities if span is not None])
    for i, relation in enumerate(require_items(data, "relations")):
        owner = f"relation {i}"
        relation = require_object(relation, owner)
        label = get_name(relation, "type", owner)
        head, tail = (
            entities[check_entity(get_value(relation, key, int, owner), len(entities), owner)]
            for key in ("head", "tail")
        )
        parsed.relations.append((head, tail, label))
    return parsed
