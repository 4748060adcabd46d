"""The spans of a spans group, also after ``Doc.retokenize`` has merged tokens.

spaCy moves the characters of a group's spans then, but not their tokens: such a span has the text
of other tokens, or ends behind the document, and reading it raises IndexError.
"""

from struct import Struct

from spacy.tokens import Doc, Span, SpanGroup
from srsly import msgpack_loads

Row = tuple[int, int, int]
"""start_char, end_char, label."""

_SPAN = Struct(">QQQllll")
"""How ``SpanGroup.to_bytes`` writes a span: id, kb_id, label, start, end, start_char, end_char."""


def row_of(span: Span) -> Row:
    return span.start_char, span.end_char, span.label


def rows_of(group: SpanGroup) -> list[Row]:
    """The rows of a group, whose characters are right."""
    try:
        return [row_of(span) for span in group]
    except IndexError:
        return [(start, end, label) for _, _, label, _, _, start, end in _unpack(group)]


def spans_on_characters(doc: Doc, group: SpanGroup) -> list[Span]:
    """The spans of a group with the tokens of their characters. Those that are not on token
    boundaries any more are left out."""
    return [span for span in spans_by_row(doc, group) if span is not None]


def spans_by_row(doc: Doc, group: SpanGroup) -> list[Span | None]:
    """All spans of a group with the tokens of their characters; None for those that are not on
    token boundaries any more."""
    try:
        if all(_has_own_tokens(span) for span in group):
            return [*group]
    except IndexError:
        pass
    return [
        doc.char_span(start, end, label=label, kb_id=kb_id, span_id=span_id)
        for span_id, kb_id, label, _, _, start, end in _unpack(group)
    ]


def copy_of(group: SpanGroup) -> SpanGroup:
    """A copy of a group; the group itself if spaCy cannot read its spans."""
    try:
        return group.copy()
    except IndexError:
        return group


def _unpack(group: SpanGroup) -> list[tuple[int, ...]]:
    return [_SPAN.unpack(packed) for packed in msgpack_loads(group.to_bytes())["spans"]]


def _has_own_tokens(span: Span) -> bool:
    if not len(span):
        return True
    last = span.doc[span.end - 1]
    return (span.doc[span.start].idx, last.idx + len(last)) == (span.start_char, span.end_char)
