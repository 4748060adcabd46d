"""The sentences of mentions."""

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc

from ..model.packing import Array

CONTEXT = 32
"""Tokens before and after a mention that are its sentence in a document without sentences."""


def sentence_table(docs: Sequence[Doc], spans: Array, of_doc: Array) -> Array:
    """(n, 2) the token range of the sentences that contain each span: from the start of the
    sentence of its first token to the end of that of its last. In a document without sentences,
    ``CONTEXT`` tokens before and after the span belong to it."""
    table = np.stack([spans[:, 0] - CONTEXT, spans[:, 1] + CONTEXT], 1)
    for number in np.unique(of_doc).tolist():
        doc, own = docs[number], of_doc == number
        table[own] = np.clip(table[own], 0, len(doc))
        if doc.has_annotation("SENT_START"):
            starts = np.asarray([sent.start for sent in doc.sents])
            bounds = np.append(starts, len(doc))
            first = np.searchsorted(starts, spans[own, 0], side="right") - 1
            last = np.searchsorted(starts, spans[own, 1] - 1, side="right")
            table[own] = np.stack([starts[first], bounds[last]], 1)
    return table
