"""``Span._.score``: the score that a component gave to an entity or another span."""

from bisect import bisect_left
from collections.abc import Sequence
from struct import Struct

from spacy.tokens import Doc, Span, SpanGroup
from srsly import msgpack_loads

from ..errors import InputError

SCORES = "scores"
"""The attribute of a spans group with one score per span, as ``luke_ner`` and spaCy's ``spancat``
write it."""

Row = tuple[int, int, int]

_SPAN = Struct(">QQQllll")
"""How ``SpanGroup.to_bytes`` writes a span: id, kb_id, label, start, end, start_char, end_char."""


def get_score(span: Span) -> float | None:
    """The score of a span, whoever wrote it to ``Doc.ents``: that of the same characters and label
    in a spans group with scores. None if no group with scores contains it. The last of several
    counts.

    Raises InputError if that group has more or fewer scores than spans.
    """
    row = _row(span)
    for key, group in reversed(list(span.doc.spans.items())):
        if SCORES in group.attrs:
            i = _find(group, row)
            if i is not None:
                return float(_scores_of(key, group)[i])
    return None


def set_score(span: Span, score: object) -> None:
    """Raises InputError: a score has one place, which is its group."""
    raise InputError(
        "Span._.score is read from the spans groups of the document. Set the scores of a group: "
        'doc.spans["mine"].attrs["scores"] = [0.9, 0.7]'
    )


def scores_of(doc: Doc) -> dict[Row, float]:
    """(start_char, end_char, label) -> score of all spans that have one: as :func:`get_score`, at
    once."""
    found: dict[Row, float] = {}
    for key, group in doc.spans.items():
        if SCORES in group.attrs:
            rows = zip(_rows(group), map(float, _scores_of(key, group)))
            found.update(reversed(list(rows)))  # of equal spans in a group the first counts
    return found


def _scores_of(key: str, group: SpanGroup) -> Sequence[float]:
    scores = group.attrs[SCORES]
    if len(scores) != len(group):
        raise InputError(
            f"Doc.spans[{key!r}] has {len(group)} spans and {len(scores)} scores, so nobody knows "
            f'whose they are. Remove attrs["{SCORES}"] of the group, or set all of them.'
        )
    return scores


def _row(span: Span) -> Row:
    return span.start_char, span.end_char, span.label


def _find(group: SpanGroup, row: Row) -> int | None:
    """The index of a span in a group, which is looked up first where it is in a sorted group."""
    try:
        for i in range(bisect_left(group, row[:2], key=lambda x: _row(x)[:2]), len(group)):
            found = _row(group[i])
            if found == row:
                return i
            if found[:2] != row[:2]:
                break
    except IndexError:  # see _rows
        pass
    return next((i for i, found in enumerate(_rows(group)) if found == row), None)


def _rows(group: SpanGroup) -> list[Row]:
    """The spans of a group, also after ``Doc.retokenize`` has merged tokens: spaCy moves characters
    but not tokens of groups then, and raises IndexError for spans that would end behind the text.
    """
    try:
        return [_row(span) for span in group]
    except IndexError:
        rows = [_SPAN.unpack(packed) for packed in msgpack_loads(group.to_bytes())["spans"]]
        return [(start, end, label) for _, _, label, _, _, start, end in rows]
