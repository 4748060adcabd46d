"""The JSON of DocRED and its revisions: documents, entities with mentions, and relations."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..errors import CorpusError
from .checks import (
    check_entity,
    check_strings,
    get_items,
    get_name,
    get_value,
    kind_of,
    located,
    need_items,
    need_object,
)
from .lines import Advance, ignore_progress
from .mentions import Marked, Writer
from .objects import Located, read_json_list
from .options import ConvertOptions
from .report import Report
from .words import WordDoc


def read_docred(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document, with sentence starts, for each record of a JSON list.

    Keys read: ``sents``, lists of words; ``vertexSet``, a list of mentions for each entity, each
    with ``sent_id``, ``pos`` (words of the sentence, end exclusive) and ``type``; ``labels``,
    each with the entities ``h`` and ``t`` and the relation ``r``, which may be absent;
    ``title``, kept in ``Doc.user_data["title"]``.

    Every mention is a span with its type as label and the number of its entity as ``kb_id_``.
    A relation is kept once, between the first mentions of its entities.

    Raises CorpusError naming the record for one that is not as described.
    """
    writer = Writer(options.spans_key, report)
    unlabelled = 0
    for item in read_json_list(path, advance):
        with located(f"{path}, {item.where}"):
            marked, n_sents = _mark(nlp, item, report)
        unlabelled += item.data.get("labels") is None
        yield writer.write(marked, item.where, n_sents)
    writer.finish()
    if unlabelled:
        report.notes.append(f"{unlabelled} documents have no labels, so no relation is known")


def _mark(nlp: Language, item: Located, report: Report) -> tuple[Marked, int]:
    """The record's document with its annotation, and its number of sentences."""
    data = item.data
    sentences = [
        check_strings(words, f"sentence {i}") for i, words in enumerate(need_items(data, "sents"))
    ]
    firsts = list(accumulate((len(words) for words in sentences), initial=0))
    words = [word for words in sentences for word in words]
    begins = [first for first, sentence in zip(firsts, sentences) if sentence]
    document = WordDoc(nlp, words, report, item.where, begins)
    if data.get("title") is not None:
        document.doc.user_data["title"] = get_value(data, "title", str, "the record")
    entities = [
        _read_entity(document, mentions, i, sentences, firsts, item.where, report)
        for i, mentions in enumerate(need_items(data, "vertexSet"))
    ]
    relations = _read_relations(data, entities, item.where, report)
    spans = [span for mentions in entities for span in mentions]
    return Marked(document.doc, spans, relations=relations), len(begins)


def _read_entity(
    document: WordDoc,
    mentions: Any,
    number: int,
    sentences: list[list[str]],
    firsts: list[int],
    where: str,
    report: Report,
) -> list[Span]:
    """The mentions of an entity in the order of the text, each place once."""
    if not isinstance(mentions, list):
        raise CorpusError(f"entity {number} is {kind_of(mentions)}, not a list of mentions.")
    found: dict[tuple[int, int], Span] = {}
    for i, mention in enumerate(mentions):
        owner = f"mention {i} of entity {number}"
        mention = need_object(mention, owner)
        sentence = get_value(mention, "sent_id", int, owner)
        if not 0 <= sentence < len(sentences):
            raise CorpusError(
                f"{owner} is in sentence {sentence}, in a record of {len(sentences)} sentences."
            )
        start, end = _read_place(mention, owner, len(sentences[sentence]))
        if _says_another_name(mention, sentences[sentence][start:end]):
            report.count("mentions whose name is not what their words say, taken by words", where)
        first = firsts[sentence]
        span = document.span(
            first + start, first + end, get_name(mention, "type", owner), owner, kb_id=str(number)
        )
        if span is None:
            continue
        known = found.setdefault((span.start, span.end), span)
        if known is not span:
            what = "repeated mentions of an entity taken once"
            report.count(
                what if known.label == span.label else f"{what}, with the first type", where
            )
    return [found[place] for place in sorted(found)]


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


def _says_another_name(mention: dict[str, Any], words: list[str]) -> bool:
    """Whether the mention has a name that is spelt differently, white space aside."""
    name = mention.get("name")
    return isinstance(name, str) and "".join(name.split()) != "".join("".join(words).split())


def _read_relations(
    data: dict[str, Any], entities: list[list[Span]], where: str, report: Report
) -> list[tuple[Span, Span, str]]:
    """Head, tail and label, between the first mentions of entities."""
    relations = []
    for i, item in enumerate(get_items(data, "labels")):
        owner = f"label {i}"
        item = need_object(item, owner)
        label = get_name(item, "r", owner)
        head, tail = (
            entities[check_entity(get_value(item, key, int, owner), len(entities), owner)]
            for key in ("h", "t")
        )
        if head and tail:
            relations.append((head[0], tail[0], label))
        else:
            report.count("relations left out: an entity of theirs has no mention", where)
    return relations
