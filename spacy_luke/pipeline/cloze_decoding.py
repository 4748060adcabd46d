"""Scores of the mentions of a passage to completions: mentions of one entity are merged."""

from collections.abc import Iterator

import numpy as np

from ..annotations.queries import Completion, merge_mentions
from ..calibration import sigmoid
from ..layers.cloze_scorer import ClozeQuery
from ..ties import levels, likeliest
from .confidence import Confidence

Array = np.ndarray


def complete(
    query: ClozeQuery, rows: Array, logits: Array, confidence: Confidence
) -> Iterator[list[Completion]]:
    """The completions of each query, best first; of equal ones the first in the text.

    rows, logits: (n_scored,) the candidates that were scored. An entity has the score and the text
    of its best mention. Entities of which no mention was scored, and those with a score that
    ``confidence`` does not accept, are left out.
    """
    of_rows = np.full(len(query.of_query), -np.inf)
    of_rows[rows] = logits
    low = 0
    for spans in query.candidates:
        own = of_rows[low : low + len(spans)]
        low += len(spans)
        entities = [x for x in merge_mentions(spans) if np.isfinite(own[x]).any()]
        best = [x[int(likeliest(own[x][None])[0])] for x in entities]
        values = own[[x[int(own[x].argmax())] for x in entities]]
        scores = confidence.scores(np.zeros(len(best), dtype=np.int64), sigmoid(values))
        accepted = confidence.accepts(np.zeros(len(best), dtype=np.int64), scores)
        order = np.argsort(-levels(values, np.zeros(len(best))), kind="stable")
        yield [
            Completion(spans[best[i]].text, tuple(spans[j] for j in entities[i]), float(scores[i]))
            for i in order.tolist()
            if accepted[i]
        ]
