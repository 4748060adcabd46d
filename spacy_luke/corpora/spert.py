"""The JSON in which CoNLL04 is passed on: words, entities and relations between them."""

from collections.abc import Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, Span

from .checks import check_entity, get_name, get_strings, get_value, located, need_items, need_object
from .lines import Advance, ignore_progress
from .mentions import Marked, Writer
from .objects import Located, read_json_list
from .options import ConvertOptions
from .report import Report
from .words import WordDoc


def read_conll04(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document for each record of a JSON list.

    Keys read: ``tokens``; ``entities``, each with ``type``, ``start`` and ``end`` (words, end
    exclusive); ``relations``, each with ``type``, ``head`` and ``tail`` (numbers of entities);
    optionally ``orig_id``, kept in ``Doc.user_data["id"]`` as a string.

    Raises CorpusError naming the record for one that is not as described.
    """
    writer = Writer(options.spans_key, report)
    for item in read_json_list(path, advance):
        with located(f"{path}, {item.where}"):
            marked = _mark(nlp, item, report)
        yield writer.write(marked, item.where)
    writer.finish()


def _mark(nlp: Language, item: Located, report: Report) -> Marked:
    data = item.data
    words = get_strings(data, "tokens", "the record")
    document = WordDoc(nlp, words, report, item.where)
    if data.get("orig_id") is not None:
        document.doc.user_data["id"] = str(data["orig_id"])
    entities: list[Span | None] = []
    for i, entity in enumerate(need_items(data, "entities")):
        owner = f"entity {i}"
        entity = need_object(entity, owner)
        start, end = (get_value(entity, key, int, owner) for key in ("start", "end"))
        entities.append(document.span(start, end, get_name(entity, "type", owner), owner))
    marked = Marked(document.doc, [span for span in entities if span is not None])
    for i, relation in enumerate(need_items(data, "relations")):
        owner = f"relation {i}"
        relation = need_object(relation, owner)
        label = get_name(relation, "type", owner)
        head, tail = (
            entities[check_entity(get_value(relation, key, int, owner), len(entities), owner)]
            for key in ("head", "tail")
        )
        if head is None or tail is None:
            report.count("relations left out: one of their spans was", item.where)
        else:
            marked.relations.append((head, tail, label))
    return marked
