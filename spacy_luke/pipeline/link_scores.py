"""The scores of candidates: probabilities of a mention's entities, the best first."""

from collections.abc import Iterator

import numpy as np

from ..kb.text_table import TextTable
from ..ties import levels, likeliest
from .confidence import Confidence

Array = np.ndarray
Ranked = list[tuple[str, float]]


def ranked(
    logits: Array, rows: Array, ids: TextTable, confidence: Confidence, nil_bias: float
) -> Iterator[tuple[bool, Ranked]]:
    """For each mention whether it is linked to its best candidate, and (id, score) of all of its
    candidates, the best first.

    logits: (n, 1 + K), first of "NIL". rows: (n, K) of candidates in the knowledge base, or -1.
    ids: of the knowledge base. nil_bias: subtracted from the logit of "NIL".
    """
    logits = logits.astype(np.float64)
    logits[:, :1] -= nil_bias
    exp = np.exp(logits - logits.max(-1, keepdims=True))
    of_label = np.zeros(logits.shape, dtype=np.int64)
    scores = confidence.scores(of_label, exp / exp.sum(-1, keepdims=True))
    accepted, best = confidence.accepts(of_label, scores), likeliest(logits)
    of_mention = np.repeat(np.arange(len(rows)), rows.shape[1])
    order_of = levels(logits[:, 1:].ravel(), of_mention).reshape(rows.shape)
    for i, own in enumerate(rows):
        # Equal ones (see ties.py) in the order of candidates, the best first.
        order = np.argsort(-order_of[i, : np.count_nonzero(own >= 0)], kind="stable")
        if best[i]:
            order = np.append(best[i] - 1, order[order != best[i] - 1])
        candidates = [(ids[int(own[j])], float(scores[i, 1 + j])) for j in order.tolist()]
        yield bool(best[i] and accepted[i, best[i]]), candidates
