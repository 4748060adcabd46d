"""The JSON of DocRED and its revisions: documents, entities with mentions, and relations."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..annotations.annotated import set_annotated
from ..errors import CorpusError
from .annotation_writer import AnnotationWriter, ParsedDoc, RelationSpans
from .checks import (
    check_entity,
    check_strings,
    errors_at,
    get_items,
    get_name,
    get_value,
    kind_of,
    require_items,
    require_object,
)
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import JsonObject, read_json_list
from .options import ConvertOptions
from .words import WordDoc


def read_docred(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document with sentence starts per record of a JSON list.

    Keys read: ``sents``, lists of words; ``vertexSet``, a list of mentions per entity, each with
    ``sent_id``, ``pos`` (words of the sentence, end exclusive) and ``type``; optional ``labels``,
    each with the entities ``h`` and ``t`` and the relation ``r`` (without ``labels``, the relations
    of the document are unknown); optional ``title``, stored in
    ``Doc.user_data["title"]``.

    A mention becomes a span: its label is the type, its ``kb_id_`` the number of the entity.
    A relation is stored once, between the first mentions of its entities.

    Raises CorpusError, with the record, for an invalid record.
    """
    writer = AnnotationWriter(options.spans_key, report)
    n_unlabelled = 0
    for item in read_json_list(path, advance):
        with errors_at(f"{path}, {item.location}"):
            parsed, n_sents = _parse(nlp, item, report)
        if item.data.get("labels") is None:  # as of a test file: withheld, and not absent
            n_unlabelled += 1
            set_annotated(parsed.doc, "relations", False)
        yield writer.write(parsed, item.location, n_sents)
    writer.finish()
    if n_unlabelled:
        report.notes.append(
            f"{n_unlabelled} documents have no labels: their relations are unknown, neither "
            "learned nor scored"
        )


def _parse(nlp: Language, item: JsonObject, report: Report) -> tuple[ParsedDoc, int]:
    """Returns the document with its annotation, and its number of sentences."""
    data = item.data
    sentences = [
        check_strings(words, f"sentence {i}")
        for i, words in enumerate(require_items(data, "sents"))
    ]
    offsets = list(accumulate((len(words) for words in sentences), initial=0))
    words = [word for words in sentences for word in words]
    begins = [first for first, sentence in zip(offsets, sentences) if sentence]
    document = WordDoc(nlp, words, report, item.location, begins)
    if data.get("title") is not None:
        document.doc.user_data["title"] = get_value(data, "title", str, "the record")
    entities = [
        _read_entity(document, mentions, i, sentences, offsets, item.location, report)
        for i, mentions in enumerate(require_items(data, "vertexSet"))
    ]
    relations = _read_relations(data, entities, item.location, report)
    spans = [span for mentions in entities for span in mentions]
    return ParsedDoc(document.doc, spans, relations=relations), len(begins)


def _read_entity(
    document: WordDoc,
    mentions: Any,
    number: int,
    sentences: list[list[str]],
    offsets: list[int],
    location: str,
    report: Report,
) -> list[Span]:
    """The distinct mentions of an entity in text order. offsets: first word per sentence."""
    if not isinstance(mentions, list):
        raise CorpusError(f"entity {number} is {kind_of(mentions)}, not a list of mentions.")
    by_place: dict[tuple[int, int], Span] = {}
    for i, mention in enumerate(mentions):
        owner = f"mention {i} of entity {number}"
        mention = require_object(mention, owner)
        sentence = get_value(mention, "sent_id", int, owner)
        if not 0 <= sentence < len(sentences):
            raise CorpusError(
                f"{owner} has sent_id {sentence}, but the record has {len(sentences)} sentences."
            )
        start, end = _read_place(mention, owner, len(sentences[sentence]))
        if _name_differs(mention, sentences[sentence][start:end]):
            report.count(
                "mentions whose name is not what their words say, taken by words", location
            )
        offset = offsets[sentence]
        span = document.span(
            offset + start, offset + end, get_name(mention, "type", owner), owner, kb_id=str(number)
        )
        if span is None:
            continue
        first = by_place.setdefault((span.start, span.end), span)
        if first is not span:
            what = "repeated mentions of an entity taken once"
            report.count(
                what if first.label == span.label else f"{what}, with the first type", location
            )
    return [by_place[place] for place in sorted(by_place)]


def _read_place(mention: dict[str, Any], owner: str, n_words: int) -> tuple[int, int]:
    place = mention.get("pos")
    if not isinstance(place, list) or [type(edge) for edge in place] != [int, int]:
        raise CorpusError(f"pos of {owner} is {place!r}, not two whole numbers.")
    start, end = place
    if not 0 <= start < end <= n_words:
        raise CorpusError(
            f"{owner} goes from word {start} to {end}, in a sentence of {n_words} words."
        )
    return start, end


def _name_differs(mention: dict[str, Any], words: list[str]) -> bool:
    """Whether the mention's ``name`` differs from its words, ignoring white space."""
    name = mention.get("name")
    return isinstance(name, str) and "".join(name.split()) != "".join("".join(words).split())


def _read_relations(
    data: dict[str, Any], entities: list[list[Span]], location: str, report: Report
) -> list[RelationSpans]:
    """(head, tail, label) of each relation; head and tail are first mentions."""
    relations: list[RelationSpans] = []
    for i, item in enumerate(get_items(data, "labels")):
        owner = f"label {i}"
        item = require_object(item, owner)
        label = get_name(item, "r", owner)
        head, tail = (
            entities[check_entity(get_value(item, key, int, owner), len(entities), owner)]
            for key in ("h", "t")
        )
        if head and tail:
            relations.append((head[0], tail[0], label))
        else:
            report.count("relations left out: an entity of theirs has no mention", location)
    return relations
