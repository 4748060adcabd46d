"""Choose how many candidates the filter of a two-stage ``luke_ner`` lets through."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..inputs.placed_spans import PlacedSpans
from ..layers.span_network import SpanQuery, SpanScorer, SpanScores
from ..layers.task_layer import encoder_below, scorer_of
from .thresholds import Goal
from .trial import Trial

CANDIDATES_PER_WORD = (0.5, 1.0)
MOST_CANDIDATES_PER_WORD = 2.0
"""Tried where a recall is wanted: for the best F, two candidates a word were no better than one
(docs/results/ner_training.md)."""
THRESHOLDS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2)
_LOSS = 5e-4
"""What a cheaper setting may cost: the twentieth part of a point of F, or of recall."""

Prediction = tuple[SpanQuery, SpanScores]
Setting = tuple[float, float]
"""Candidates per word, and the threshold of the filter."""


@dataclass(frozen=True)
class FilterChoice:
    """Settings of ``spacy-luke.SpanScorer.v1``. asked: candidates that became entity inputs, per
    word. r, f: from 0 to 1, on the development data."""

    candidates_per_word: float
    filter_threshold: float
    asked: float
    r: float
    f: float


@dataclass(frozen=True)
class OpenFilter:
    """What a two-stage component predicts with so many candidates that the filter hardly matters:
    the network runs once, and predictions with any setting are made of it.

    before: the component's setting. tried: the candidates per word that are compared.
    """

    scorer: SpanScorer
    predictions: list[Prediction]
    placed: list[PlacedSpans]
    before: Setting
    tried: list[float]

    def passing(self, setting: Setting) -> list[Prediction]:
        """Predictions with a setting."""
        with _set(self.scorer, setting):
            return [
                (query, self.scorer.passing(placed, query, scores))
                for (query, scores), placed in zip(self.predictions, self.placed)
            ]


def open_filter(trial: Trial, goal: Goal) -> OpenFilter | None:
    """None if the component is not in two-stage mode. Gives the trial the predictions with the
    component's settings."""
    scorer = scorer_of(trial.pipe.model)
    if getattr(scorer, "mode", None) != "two-stage":
        return None
    before = scorer.candidates_per_word, scorer.filter_threshold
    more = () if goal.recall is None else (MOST_CANDIDATES_PER_WORD,)
    tried = sorted({*CANDIDATES_PER_WORD, *more, before[0]})
    with _set(scorer, (tried[-1], 0.0)):
        predictions = trial.predict()
    node = encoder_below(trial.pipe.model)
    placed = [scorer.place(node, query, is_train=False) for query, _ in predictions]
    opened = OpenFilter(scorer, predictions, placed, before, tried)
    trial.predictions = opened.passing(before)
    return opened


def choose_filter(trial: Trial, goal: Goal, opened: OpenFilter) -> FilterChoice | None:
    """Set the settings that ask about the fewest candidates without loss of F and, if a recall is
    wanted, of recall, and give the trial the predictions with them. None if the component finds
    nothing that is right: then the settings stay as they were."""
    scorer = opened.scorer
    n_words = max(sum(len(doc) for batch in trial.batches for doc in batch), 1)
    tried: list[FilterChoice] = []
    for k in opened.tried:
        for threshold in THRESHOLDS:
            predictions = opened.passing((k, threshold))
            asked = sum(len(scores.rows) for _, scores in predictions) / n_words
            _, r, f = trial.answers(predictions).prf()
            tried.append(FilterChoice(k, threshold, asked, r, f))
    best_r, best_f = (max(getattr(x, name) for x in tried) for name in "rf")
    if not best_f:
        trial.predictions = opened.passing(opened.before)
        return None
    enough = [
        x for x in tried if x.f >= best_f - _LOSS and (goal.recall is None or x.r >= best_r - _LOSS)
    ] or tried[-len(THRESHOLDS) :][:1]
    choice = min(enough, key=lambda x: (x.asked, x.candidates_per_word))
    trial.predictions = opened.passing((choice.candidates_per_word, choice.filter_threshold))
    scorer.candidates_per_word = choice.candidates_per_word
    scorer.filter_threshold = choice.filter_threshold
    config = trial.nlp.get_pipe_config(trial.name)["model"]
    config["candidates_per_word"] = choice.candidates_per_word
    config["filter_threshold"] = choice.filter_threshold
    # What is enough to predict is not enough to learn from, if this pipeline is trained again.
    scorer.train_candidates_per_word = scorer.train_candidates_per_word or opened.before[0]
    config["train_candidates_per_word"] = scorer.train_candidates_per_word
    return choice


@contextmanager
def _set(scorer: SpanScorer, setting: Setting) -> Iterator[None]:
    before = scorer.candidates_per_word, scorer.filter_threshold
    scorer.candidates_per_word, scorer.filter_threshold = setting
    try:
        yield
    finally:
        scorer.candidates_per_word, scorer.filter_threshold = before
