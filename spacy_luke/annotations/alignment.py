"""Reference and predicted documents, whose tokens may differ.

``Example.alignment`` compares both documents at each access, and ``Token.is_sent_start`` looks
through its document when it is set: for each span or token, that is quadratic in the length.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from spacy.attrs import SENT_START
from spacy.tokens import Doc, Span
from spacy.training import Example


def aligned_spans(example: Example, spans: Iterable[Span]) -> list[tuple[int, int] | None]:
    """For each span of the reference the tokens [start, end) of the predicted document that have
    its text, or None. As ``Example.get_aligned_spans_y2x`` with overlaps, which leaves them out."""
    y2x, doc = example.alignment.y2x, example.predicted
    found: list[tuple[int, int] | None] = []
    for span in spans:
        tokens = y2x[span.start : span.end]
        place = (int(tokens[0]), int(tokens[-1]) + 1) if len(tokens) else None
        same = place is not None and _compared(doc[slice(*place)]) == _compared(span)
        found.append(place if same else None)
    return found


def aligned_sent_starts(example: Example) -> list[bool | None]:
    """Whether each token of the predicted document starts a sentence of the reference; None if the
    reference has no sentence starts. A sentence starts at its first token that has a counterpart:
    white space has none. (``Example.get_aligned_sent_starts`` fails there.)"""
    if not example.reference.has_annotation("SENT_START"):
        return [None] * len(example.predicted)
    y2x = example.alignment.y2x
    starts: list[bool | None] = [False] * len(example.predicted)
    for sent in example.reference.sents:
        tokens = y2x[sent.start : sent.end]
        if len(tokens):
            starts[int(tokens[0])] = True
    return starts


def _compared(span: Span) -> str:
    return span.text.lower().strip().replace(" ", "")


def set_sent_starts(doc: Doc, starts: Iterable[bool | None]) -> None:
    """Set whether each token starts a sentence; None: not known. The document has no parse."""
    values = [0 if x is None else 1 if x else -1 for x in starts]
    array: Any = np.asarray(values, dtype=np.int64).astype(np.uint64)
    doc.from_array([SENT_START], array)
