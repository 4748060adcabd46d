"""Candidate spans, as spaCy's suggesters give them, in NumPy."""

import numpy as np
from thinc.api import Ops
from thinc.types import Ragged

Array = np.ndarray


def span_table(spans: Ragged, ops: Ops) -> Array:
    """(n_candidates, 2) start and end of each, in tokens of its document."""
    data = ops.to_numpy(spans.dataXd)
    return data.reshape(-1, 2).astype(np.int64) if data.size else np.zeros((0, 2), np.int64)


def doc_lengths(spans: Ragged, ops: Ops) -> Array:
    """(n_docs,) how many candidates each document has."""
    return ops.to_numpy(spans.lengths)
