"""Choose how many candidates the filter of a two-stage ``luke_ner`` lets through."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..calibration import logit
from ..layers.span_network import SpanQuery, SpanScores, to_numpy
from ..layers.task_layer import scorer_of
from .thresholds import Goal
from .trial import Trial

CANDIDATES_PER_WORD = (0.5, 1.0, 2.0)
THRESHOLDS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2)
_LOSS = 5e-4
"""What a cheaper setting may cost: the twentieth part of a point of F, or of recall."""

Prediction = tuple[SpanQuery, SpanScores]


@dataclass(frozen=True)
class FilterChoice:
    """Settings of ``spacy-luke.SpanScorer.v1``. asked: candidates that became entity inputs, per
    word. r, f: from 0 to 1, on the development data."""

    candidates_per_word: float
    filter_threshold: float
    asked: float
    r: float
    f: float


def open_filter(trial: Trial) -> None:
    """Predict with so many candidates that the filter hardly matters, in two-stage mode."""
    scorer = scorer_of(trial.pipe.model)
    if _is_two_stage(scorer):
        scorer.candidates_per_word = max(scorer.candidates_per_word, *CANDIDATES_PER_WORD)
        scorer.filter_threshold = 0.0
        trial.predictions = trial.predict()


def choose_filter(trial: Trial, goal: Goal, before: tuple[float, float]) -> FilterChoice | None:
    """Set, in two-stage mode, the settings that ask about the fewest candidates without loss of F
    and, if a recall is wanted, of recall. The trial's predictions are those of :func:`open_filter`,
    and afterwards those of these settings.

    before: the settings that are kept if the component finds nothing that is right.
    """
    scorer = scorer_of(trial.pipe.model)
    if not _is_two_stage(scorer):
        return None
    n_words = max(sum(len(doc) for batch in trial.batches for doc in batch), 1)
    tried: list[tuple[FilterChoice, list[Prediction]]] = []
    most, of_most = scorer.candidates_per_word, trial.predictions
    for k in sorted({*CANDIDATES_PER_WORD, before[0]}):
        scorer.candidates_per_word, scorer.filter_threshold = k, 0.0
        predictions = of_most if k == most else trial.predict()
        for threshold in THRESHOLDS:
            kept = [(query, _passing(query, scores, threshold)) for query, scores in predictions]
            asked = sum(len(scores.rows) for _, scores in kept) / n_words
            _, r, f = trial.answers(kept).prf()
            tried.append((FilterChoice(k, threshold, asked, r, f), kept))
    best_r, best_f = (max(getattr(x, name) for x, _ in tried) for name in "rf")
    if not best_f:
        scorer.candidates_per_word, scorer.filter_threshold = before
        trial.predictions = trial.predict()
        return None
    enough = [
        x
        for x in tried
        if x[0].f >= best_f - _LOSS and (goal.recall is None or x[0].r >= best_r - _LOSS)
    ] or tried[-len(THRESHOLDS) :][:1]
    choice, trial.predictions = min(enough, key=lambda x: (x[0].asked, x[0].candidates_per_word))
    scorer.candidates_per_word = choice.candidates_per_word
    scorer.filter_threshold = choice.filter_threshold
    config = trial.nlp.get_pipe_config(trial.name)["model"]
    config["candidates_per_word"] = choice.candidates_per_word
    config["filter_threshold"] = choice.filter_threshold
    # What is enough to predict is not enough to learn from, if this pipeline is trained again.
    scorer.train_candidates_per_word = scorer.train_candidates_per_word or before[0]
    config["train_candidates_per_word"] = scorer.train_candidates_per_word
    return choice


def _is_two_stage(scorer: Any) -> bool:
    return getattr(scorer, "mode", None) == "two-stage"


def _passing(query: SpanQuery, scores: SpanScores, threshold: float) -> SpanScores:
    """The scores of the candidates that pass the filter: those that a prediction with this
    threshold would have, because entity inputs do not see each other."""
    if not threshold:
        return scores
    logits = np.full(len(query.table), np.inf)
    logits[scores.filtered] = to_numpy(scores.filter_logits)
    kept = logits[scores.rows] >= logit(np.asarray(threshold))
    if query.known is not None:
        kept |= query.known.asked[scores.rows]
    return scores._replace(rows=scores.rows[kept], logits=scores.logits[kept])
