"""``Span._.score``: the score that a component gave to an entity or another span."""

from bisect import bisect_left

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup

from ..errors import InputError
from .group_spans import Row, row_of, rows_of

SCORES = "scores"
"""The attribute of a spans group with one score per span, as ``luke_ner`` and spaCy's ``spancat``
write it."""


def get_score(span: Span) -> float | None:
    """The score of a span, whoever wrote it to ``Doc.ents``: that of the same characters and label
    in a spans group with scores. None if no group with scores contains it. The last of several
    counts.

    Raises InputError if that group has more or fewer scores than spans.
    """
    row = row_of(span)
    for key, group in reversed(list(span.doc.spans.items())):
        if SCORES in group.attrs:
            i = _find(group, row)
            if i is not None:
                return _scores_of(key, group)[i]
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
            rows = zip(rows_of(group), _scores_of(key, group))
            found.update(reversed(list(rows)))  # of equal spans in a group the first counts
    return found


def _scores_of(key: str, group: SpanGroup) -> list[float]:
    # spaCy's spancat_singlelabel writes a column.
    scores = np.ravel(group.attrs[SCORES]).tolist()
    if len(scores) != len(group):
        raise InputError(
            f"Doc.spans[{key!r}] has {len(group)} spans and {len(scores)} scores, so nobody knows "
            f'whose they are. Remove attrs["{SCORES}"] of the group, or set all of them.'
        )
    return scores


def _find(group: SpanGroup, row: Row) -> int | None:
    """The index of a span in a group, which is looked up first where it is in a sorted group."""
    try:
        for i in range(bisect_left(group, row[:2], key=lambda x: row_of(x)[:2]), len(group)):
            found = row_of(group[i])
            if found == row:
                return i
            if found[:2] != row[:2]:
                break
    except IndexError:  # see group_spans
        pass
    return next((i for i, found in enumerate(rows_of(group)) if found == row), None)
