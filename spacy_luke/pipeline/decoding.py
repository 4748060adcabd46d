"""Choose entities from scored candidate spans, for a whole batch at once."""

import numpy as np

from ..inputs.alignment import ranges
from ..ties import TOLERANCE, levels, likeliest
from .confidence import Confidence

Array = np.ndarray


def decode(
    logits: Array,
    starts: Array,
    ends: Array,
    of_doc: Array,
    nil_bias: float,
    confidence: Confidence,
    flat: bool,
    blocked: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Choose a label for every candidate and drop NIL; in flat mode also drop overlaps.

    Returns, in document order, the accepted rows of ``logits``, their classes and scores, each
    (n_accepted,).

    logits: (n, n_classes), NIL last. starts, ends: (n,) token ranges, tokens counted over the
    batch. of_doc: (n,) their documents. nil_bias: subtracted from the NIL logit first. confidence:
    makes scores of probabilities, and accepts them. flat: accept candidates in the order of their
    largest logits if none of their tokens is taken (the published procedure); ties go to the
    earlier, then to the shorter span. blocked: (n_tokens,) tokens no entity may cover, in flat
    mode.

    A least score is applied last: a span that does not reach it still takes its tokens. So a higher
    one only removes entities, and those that are written are among those that it was chosen on.
    """
    logits = np.array(logits, dtype=np.float64)
    if not len(logits) or logits.shape[1] < 2:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, np.zeros(0)
    logits[:, -1] -= nil_bias
    best = likeliest(logits[:, :-1])
    top = logits[np.arange(len(logits)), best]
    peak = logits.max(-1, keepdims=True)
    probability = np.exp(top - peak[:, 0]) / np.exp(logits - peak).sum(-1)
    scores = confidence.scores(best, probability)
    rows = np.flatnonzero(top > logits[:, -1] + TOLERANCE)
    if flat:
        order = rows[np.lexsort((ends[rows], starts[rows], -levels(top[rows], of_doc[rows])))]
        rows = order[select_disjoint(starts[order], ends[order], blocked)]
    rows = rows[np.lexsort((-top[rows], ends[rows], starts[rows]))]
    if len(rows):  # a suggester may propose a span twice
        repeated = (np.diff(starts[rows]) == 0) & (np.diff(ends[rows]) == 0)
        rows = rows[np.concatenate([[True], ~repeated])]
    rows = rows[confidence.accepts(best[rows], scores[rows])]
    return rows, best[rows], scores[rows]


def select_disjoint(starts: Array, ends: Array, blocked: Array | None = None) -> Array:
    """Indices of the spans that a greedy pass in the given order accepts, ascending.

    Works in rounds instead of a loop over spans: each round accepts every span that is the first
    among all remaining spans on each of its tokens, and drops the spans that overlap it.
    """
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    n_tokens = int(ends.max())
    free = np.ones(n_tokens, dtype=bool)
    if blocked is not None:
        free[: len(blocked)] = ~blocked[:n_tokens]
    remaining = np.arange(len(starts))
    accepted = []
    while len(remaining):
        # Spans [0, 2), [1, 3), [3, 4) of free tokens T T T T: n_free is 0 1 2 3 4.
        n_free = np.concatenate([[0], np.cumsum(free)])
        lengths = ends[remaining] - starts[remaining]
        remaining = remaining[n_free[ends[remaining]] - n_free[starts[remaining]] == lengths]
        if not len(remaining):
            break
        lengths = ends[remaining] - starts[remaining]  # 2 2 1
        tokens = ranges(starts[remaining], ends[remaining])  # 0 1 1 2 3
        span_of_token = np.repeat(remaining, lengths)  # 0 0 1 1 2
        first = np.full(n_tokens, len(starts), dtype=np.int64)
        np.minimum.at(first, tokens, span_of_token)  # 0 0 1 2
        overlapped = span_of_token != first[tokens]  # F F T F F: span 1 has to wait
        n_overlapped = np.add.reduceat(overlapped, np.cumsum(lengths) - lengths)
        winners = remaining[n_overlapped == 0]
        accepted.append(winners)
        free[ranges(starts[winners], ends[winners])] = False
    return np.sort(np.concatenate(accepted)) if accepted else np.zeros(0, dtype=np.int64)
