"""Choose how many candidates the filter of a two-stage ``luke_ner`` lets through."""

from typing import NamedTuple

import numpy as np

from ..calibration import logit
from ..layers.span_network import SpanQuery, SpanScores, to_numpy
from ..layers.task_layer import scorer_of
from .trial import Trial

CANDIDATES_PER_WORD = (0.5, 1.0, 2.0)
THRESHOLDS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2)
_TOLERANCE = 5e-4
"""F that a cheaper setting may cost: the twentieth part of a point."""

Prediction = tuple[SpanQuery, SpanScores]


class FilterChoice(NamedTuple):
    """Settings of ``spacy-luke.SpanScorer.v1``. asked: candidates that became entity inputs, per
    word. f: from 0 to 1, on the development data."""

    candidates_per_word: float
    filter_threshold: float
    asked: float
    f: float


def choose_filter(trial: Trial) -> FilterChoice | None:
    """Set, in two-stage mode, the settings that ask about the fewest candidates without loss of F;
    the trial's predictions are those of these settings then."""
    scorer = scorer_of(trial.pipe.model)
    if getattr(scorer, "mode", None) != "two-stage":
        return None
    n_words = max(sum(len(doc) for batch in trial.batches for doc in batch), 1)
    tried: list[tuple[FilterChoice, list[Prediction]]] = []
    for k in sorted({*CANDIDATES_PER_WORD, scorer.candidates_per_word}):
        scorer.candidates_per_word, scorer.filter_threshold = k, 0.0
        predictions = trial.predict()
        for threshold in THRESHOLDS:
            kept = [(query, _passing(query, scores, threshold)) for query, scores in predictions]
            asked = sum(len(scores.rows) for _, scores in kept) / n_words
            _, _, f = trial.answers(kept).prf()
            tried.append((FilterChoice(k, threshold, asked, f), kept))
    best = max(choice.f for choice, _ in tried)
    enough = [x for x in tried if x[0].f >= best - _TOLERANCE]
    choice, trial.predictions = min(enough, key=lambda x: (x[0].asked, x[0].candidates_per_word))
    scorer.candidates_per_word = choice.candidates_per_word
    scorer.filter_threshold = choice.filter_threshold
    config = trial.nlp.get_pipe_config(trial.name)["model"]
    config["candidates_per_word"] = choice.candidates_per_word
    config["filter_threshold"] = choice.filter_threshold
    return choice


def _passing(query: SpanQuery, scores: SpanScores, threshold: float) -> SpanScores:
    """The scores of the candidates that pass the filter: those that a prediction with this
    threshold would have, because entity inputs do not see each other."""
    if not threshold:
        return scores
    logits = np.full(len(query.table), np.inf)
    logits[scores.filtered] = to_numpy(scores.filter_logits)
    kept = logits[scores.rows] >= logit(np.asarray(threshold))
    return scores._replace(rows=scores.rows[kept], logits=scores.logits[kept])
