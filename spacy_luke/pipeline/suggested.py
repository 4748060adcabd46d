"""The candidates that a suggester proposes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc
from thinc.api import NumpyOps
from thinc.types import Ragged

from ..layers.arrays import to_numpy

Suggester = Callable[..., Ragged]


def suggested(suggester: Suggester, docs: Sequence[Doc]) -> Ragged:
    """The candidates of documents, token ranges (n, 2), each once and in their order: a suggester
    that reads a spans group proposes spans with equal tokens several times.

    They are read on the host alone, so the suggester is given NumPy's operations.
    """
    spans = suggester(docs, ops=NumpyOps())
    data, lengths = to_numpy(spans.dataXd), to_numpy(spans.lengths)
    table = data.reshape(-1, 2).astype(np.int64)
    of_doc = np.repeat(np.arange(len(lengths)), lengths)
    width = int(table.max(initial=0)) + 1
    _, first = np.unique((of_doc * width + table[:, 0]) * width + table[:, 1], return_index=True)
    if len(first) == len(table):
        return spans
    kept = np.sort(first)
    counts: Any = np.bincount(of_doc[kept], minlength=len(lengths))
    return Ragged(table[kept].astype(np.int32), counts.astype(lengths.dtype))
