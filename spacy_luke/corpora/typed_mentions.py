"""Entity typing: the formats of Ultra-Fine Entity Typing, Open Entity and FIGER."""

from collections.abc import Callable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from .brackets import KEEP, unescape
from .characters import CharSpan, check_offsets, make_text_doc, place_spans
from .checks import (
    check_unicode,
    get_names,
    get_strings,
    get_value,
    located,
    need_items,
    need_object,
)
from .lines import Advance, ignore_progress
from .mentions import Marked, Writer
from .objects import Located, read_json_lines, read_json_list
from .options import ConvertOptions
from .report import Report
from .words import WordDoc

LABEL = "MENTION"


def read_ufet(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document for each line of Ultra-Fine Entity Typing.

    Keys read: ``left_context_token``, ``mention_span`` (words separated by spaces),
    ``right_context_token``, ``y_str`` (the types); optionally ``annot_id``, kept in
    ``Doc.user_data["id"]``. Escaped brackets are kept, unless ``brackets`` says otherwise. Raises
    CorpusError naming the line for one that is not as described.
    """
    brackets = options.brackets_or(KEEP)

    def mark(item: Located) -> Marked:
        data = item.data
        left = get_strings(data, "left_context_token", "the record")
        right = get_strings(data, "right_context_token", "the record")
        mention = get_value(data, "mention_span", str, "the record")
        check_unicode(mention)
        types = get_names(data, "y_str", "the record")
        words = [unescape(word, brackets) for word in (*left, *mention.split(), *right)]
        document = WordDoc(nlp, words, report, item.where)
        if data.get("annot_id") is not None:
            document.doc.user_data["id"] = str(data["annot_id"])
        end = len(words) - len(right)
        span = document.span(len(left), end, LABEL, "mention_span")
        if span is None:
            return Marked(document.doc)
        return Marked(document.doc, [span], types=[(span, types)])

    return _write(path, read_json_lines(path, advance), mark, options, report)


def read_openentity(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document for each record of a JSON list, as Open Entity is passed on.

    Keys read: ``sent``; ``start`` and ``end`` of the mention (characters, end exclusive);
    ``labels`` (the types). A token that the mention cuts is split, unless ``alignment`` says
    otherwise. Escaped brackets are kept, unless ``brackets`` says otherwise. Raises CorpusError
    naming the record for one that is not as described.
    """
    brackets = options.brackets_or(KEEP)

    def mark(item: Located) -> Marked:
        data = item.data
        text = get_value(data, "sent", str, "the record")
        check_unicode(text)
        start, end = (get_value(data, key, int, "the record") for key in ("start", "end"))
        check_offsets("the mention", start, end, text)
        # Brackets that become shorter move the mention.
        parts = (text[:start], text[start:end], text[end:])
        before, inside, after = (unescape(part, brackets) for part in parts)
        mention = CharSpan(len(before), len(before) + len(inside), LABEL)
        types = get_names(data, "labels", "the record")
        placed = place_spans(
            make_text_doc(nlp, before + inside + after),
            [mention],
            options.alignment_or("split"),
            report,
            item.where,
        )
        spans = list(placed.spans.values())
        return Marked(placed.doc, spans, placed.unknown, [(span, types) for span in spans])

    return _write(path, read_json_list(path, advance), mark, options, report)


def read_figer(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document for each line of a file in FIGER's format.

    Keys read: ``tokens``; ``mentions``, each with ``start`` and ``end`` (words, end exclusive)
    and ``labels`` (the types). Raises CorpusError naming the line for one that is not as
    described.
    """

    def mark(item: Located) -> Marked:
        words = get_strings(item.data, "tokens", "the record")
        document = WordDoc(nlp, words, report, item.where)
        marked = Marked(document.doc)
        for i, mention in enumerate(need_items(item.data, "mentions")):
            owner = f"mention {i}"
            mention = need_object(mention, owner)
            start, end = (get_value(mention, key, int, owner) for key in ("start", "end"))
            types = get_names(mention, "labels", owner)
            span = document.span(start, end, LABEL, owner)
            if span is not None:
                marked.spans.append(span)
                marked.types.append((span, types))
        return marked

    return _write(path, read_json_lines(path, advance), mark, options, report)


def _write(
    path: Path,
    items: Iterator[Located],
    mark: Callable[[Located], Marked],
    options: ConvertOptions,
    report: Report,
) -> Iterator[Doc]:
    writer = Writer(options.spans_key, report)
    for item in items:
        with located(f"{path}, {item.where}"):
            marked = mark(item)
        if options.types:
            marked.types = [
                (span, tuple(name for name in names if name in options.types))
                for span, names in marked.types
            ]
        yield writer.write(marked, item.where)
    writer.finish()
