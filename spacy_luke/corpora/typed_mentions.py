"""Entity typing: the formats of Ultra-Fine Entity Typing, Open Entity and FIGER."""

from collections.abc import Callable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from .annotation_writer import MENTION, AnnotationWriter, ParsedDoc
from .brackets import KEEP, unescape
from .characters import CharSpan, align_spans, check_offsets, make_text_doc
from .checks import (
    check_unicode,
    errors_at,
    get_names,
    get_strings,
    get_value,
    require_items,
    require_object,
)
from .conversion_report import Report
from .lines import Advance, ignore_progress
from .objects import JsonObject, read_json_list, read_json_objects
from .options import ConvertOptions
from .words import WordDoc


def read_ufet(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per line of Ultra-Fine Entity Typing.

    Keys read: ``left_context_token``, ``mention_span`` (words separated by spaces),
    ``right_context_token``, ``y_str`` (the types); optional ``annot_id``, stored in
    ``Doc.user_data["id"]``. ``brackets`` defaults to ``keep``. Raises CorpusError, with the line,
    for an invalid record.
    """
    brackets = options.brackets_or(KEEP)

    def parse(item: JsonObject) -> ParsedDoc:
        data = item.data
        left = get_strings(data, "left_context_token", "the record")
        right = get_strings(data, "right_context_token", "the record")
        mention = get_value(data, "mention_span", str, "the record")
        check_unicode(mention)
        types = get_names(data, "y_str", "the record")
        words = [unescape(word, brackets) for word in (*left, *mention.split(), *right)]
        document = WordDoc(nlp, words, report, item.location)
        if data.get("annot_id") is not None:
            document.doc.user_data["id"] = str(data["annot_id"])
        end = len(words) - len(right)
        span = document.span(len(left), end, MENTION, "mention_span")
        if span is None:
            return ParsedDoc(document.doc)
        return ParsedDoc(document.doc, [span], types=[(span, types)])

    return _write(path, read_json_objects(path, advance), parse, options, report)


def read_openentity(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per record of a JSON list, the format in which Open Entity is distributed.

    Keys read: ``sent``; ``start`` and ``end`` of the mention (characters, end exclusive);
    ``labels`` (the types). ``alignment`` defaults to ``split``, ``brackets`` to ``keep``. Raises
    CorpusError, with the record, for an invalid record.
    """
    brackets = options.brackets_or(KEEP)

    def parse(item: JsonObject) -> ParsedDoc:
        data = item.data
        text = get_value(data, "sent", str, "the record")
        check_unicode(text)
        start, end = (get_value(data, key, int, "the record") for key in ("start", "end"))
        check_offsets("the mention", start, end, text)
        # Replacing brackets before the mention shifts it: "-LRB- Ada" becomes "( Ada".
        parts = (text[:start], text[start:end], text[end:])
        before, inside, after = (unescape(part, brackets) for part in parts)
        mention = CharSpan(len(before), len(before) + len(inside), MENTION)
        types = get_names(data, "labels", "the record")
        placed = align_spans(
            make_text_doc(nlp, before + inside + after),
            [mention],
            options.alignment_or("split"),
            report,
            item.location,
        )
        spans = list(placed.spans.values())
        return ParsedDoc(placed.doc, spans, placed.unknown, [(span, types) for span in spans])

    return _write(path, read_json_list(path, advance), parse, options, report)


def read_figer(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per line of a file in FIGER's format.

    Keys read: ``tokens``; ``mentions``, each with ``start`` and ``end`` (words, end exclusive)
    and ``labels`` (the types). Raises CorpusError, with the line, for an invalid record.
    """

    def parse(item: JsonObject) -> ParsedDoc:
        words = get_strings(item.data, "tokens", "the record")
        document = WordDoc(nlp, words, report, item.location)
        parsed = ParsedDoc(document.doc)
        for i, mention in enumerate(require_items(item.data, "mentions")):
            owner = f"mention {i}"
            mention = require_object(mention, owner)
            start, end = (get_value(mention, key, int, owner) for key in ("start", "end"))
            types = get_names(mention, "labels", owner)
            span = document.span(start, end, MENTION, owner)
            if span is not None:
                parsed.spans.append(span)
                parsed.types.append((span, types))
        return parsed

    return _write(path, read_json_objects(path, advance), parse, options, report)


def _write(
    path: Path,
    items: Iterator[JsonObject],
    parse: Callable[[JsonObject], ParsedDoc],
    options: ConvertOptions,
    report: Report,
) -> Iterator[Doc]:
    writer = AnnotationWriter(options.spans_key, report)
    for item in items:
        with errors_at(f"{path}, {item.location}"):
            parsed = parse(item)
        if options.types:
            parsed.types = [
                (span, tuple(name for name in names if name in options.types))
                for span, names in parsed.types
            ]
        yield writer.write(parsed, item.location)
    writer.finish()
