"""Scored candidate spans to entities, for a whole batch at once."""

import numpy as np

from ..ties import TOLERANCE, levels, likeliest

Array = np.ndarray


def decode(
    logits: Array,
    starts: Array,
    ends: Array,
    of_doc: Array,
    nil_bias: float,
    threshold: float,
    flat: bool,
    blocked: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Choose a label for every candidate; drop NIL; in flat mode drop what overlaps.

    Returns, in document order, the accepted rows of ``logits``, their classes and the classes'
    probabilities, each (n,).

    logits: (n, n_classes), NIL last. starts, ends: (n,) token ranges counted through the
    batch; of_doc: (n,) their documents. nil_bias is taken off the NIL logit before anything else.
    threshold: least probability of the label. In flat mode candidates are accepted by their largest
    logit if none of their tokens is taken yet (the published procedure); ties go to the earlier,
    then to the shorter span. blocked: (n_tokens,) tokens no entity may cover.
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
    likely = (top > logits[:, -1] + TOLERANCE) & (probability >= threshold - TOLERANCE)
    rows = np.flatnonzero(likely)
    if flat:
        order = rows[np.lexsort((ends[rows], starts[rows], -levels(top[rows], of_doc[rows])))]
        rows = order[select_disjoint(starts[order], ends[order], blocked)]
    rows = rows[np.lexsort((-top[rows], ends[rows], starts[rows]))]
    if len(rows):  # a suggester may propose a span twice
        again = (np.diff(starts[rows]) == 0) & (np.diff(ends[rows]) == 0)
        rows = rows[np.concatenate([[True], ~again])]
    return rows, best[rows], probability[rows]


def select_disjoint(starts: Array, ends: Array, blocked: Array | None = None) -> Array:
    """Indices of the spans that a greedy pass in the given order accepts.

    Works in rounds instead of a loop over spans: a span that comes first among all that share
    one of its tokens is accepted; what it overlaps is dropped.
    """
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    n_tokens = int(ends.max())
    free = np.ones(n_tokens, dtype=bool)
    if blocked is not None:
        free[: len(blocked)] = ~blocked[:n_tokens]
    left = np.arange(len(starts))
    accepted = []
    while len(left):
        covered = np.concatenate([[0], np.cumsum(free)])
        whole = covered[ends[left]] - covered[starts[left]] == ends[left] - starts[left]
        left = left[whole]
        lengths = ends[left] - starts[left]
        stops = np.cumsum(lengths)
        tokens = np.arange(stops[-1] if len(stops) else 0) + np.repeat(
            starts[left] - (stops - lengths), lengths
        )
        first = np.full(n_tokens, len(starts), dtype=np.int64)
        np.minimum.at(first, tokens, np.repeat(left, lengths))
        # A span wins its round if it is the first on all of its tokens.
        lost = np.repeat(left, lengths) != first[tokens]
        wins = left[np.add.reduceat(lost, stops - lengths) == 0] if len(left) else left
        accepted.append(wins)
        lengths = ends[wins] - starts[wins]
        stops = np.cumsum(lengths)
        tokens = np.arange(stops[-1] if len(stops) else 0) + np.repeat(
            starts[wins] - (stops - lengths), lengths
        )
        free[tokens] = False
    return np.sort(np.concatenate(accepted)) if accepted else np.zeros(0, dtype=np.int64)
