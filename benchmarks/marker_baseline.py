"""The baseline of relations and typing: a plain classifier between marker pieces.

One sequence a question, ``@ head @ ... # tail # ...``, laid out as in the ``markers`` mode, but
without entity tokens: a linear layer on [first special piece; first marker of each span]. It takes
the place of the model in ``luke_relation`` or ``luke_entity_typing``, so that questions, loss and
decoding are the same. Mentions are not merged here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from thinc.util import torch2xp
from torch import nn

from spacy_luke.inputs.marked import Marked, View
from spacy_luke.layers import entity_scorer, pair_scorer
from spacy_luke.layers.asking import Asking, Way
from spacy_luke.layers.entity_scorer import EntityQuery, EntityScores
from spacy_luke.layers.head_module import HeadModule, fresh_weights, head_of, task_node
from spacy_luke.layers.pair_scorer import PairQuery, PairScores
from spacy_luke.layers.session import Session
from spacy_luke.layers.shim import LearnRates

PAIRS = "spacy-luke.benchmarks.MarkerPairs.v1"
ENTITIES = "spacy-luke.benchmarks.MarkerEntities.v1"
Array = np.ndarray
Query = PairQuery | EntityQuery
Scores = PairScores | EntityScores


class MarkerHead(HeadModule):
    """Dropout and a linear layer, (1 + n_spans) H -> C with a bias."""

    def __init__(self, hidden: int, n_classes: int, n_spans: int):
        super().__init__(hidden=hidden, n_classes=n_classes, n_spans=n_spans)
        self.linear = nn.Linear((1 + n_spans) * hidden, n_classes)
        self.dropout = nn.Dropout(0.1)
        fresh_weights(self)

    @property
    def classifier(self) -> nn.Linear:
        return self.linear

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(n, 1 + n_spans, H) -> (n, C)."""
        return self.linear(self.dropout(states.flatten(1))).float()


@dataclass
class MarkerSettings:
    """mode, view, typed_markers: as the package's own layers have them, which look at them to
    say what a window holds."""

    n_spans: int
    mode: Way = "markers"
    view: View = "document"
    typed_markers: bool = False

    @property
    def head_type(self) -> type[MarkerHead]:
        return MarkerHead

    def head_config(self, network: Model) -> dict[str, Any]:
        return {"n_spans": self.n_spans}


@registry.architectures(PAIRS)
def MarkerPairs_v1(encoder: Model, learn_rate_factor: float = 1.0) -> Model[PairQuery, PairScores]:
    """For ``luke_relation`` without ``merge_entities``."""
    rates = LearnRates(learn_rate_factor)
    return task_node(pair_scorer.NETWORK, encoder, MarkerSettings(2), _forward, rates)


@registry.architectures(ENTITIES)
def MarkerEntities_v1(
    encoder: Model, learn_rate_factor: float = 1.0
) -> Model[EntityQuery, EntityScores]:
    """For ``luke_entity_typing``."""
    rates = LearnRates(learn_rate_factor)
    return task_node(entity_scorer.NETWORK, encoder, MarkerSettings(1), _forward, rates)


class AskingWords(Asking):
    """Marked sequences of words alone; their first states are handed on instead of entities'."""

    def _runner(
        self, marked: Marked, classes: Array, classify: Callable[[torch.Tensor], torch.Tensor]
    ) -> Callable[[torch.Tensor], torch.Tensor]:
        session, firsts = self.session, marked.words.offsets[:-1, None]
        rows = np.concatenate([firsts, firsts + marked.starts], axis=1)

        def run(_: torch.Tensor) -> torch.Tensor:
            states = session.encode_words(marked.words).states
            return classify(states[session.index(rows)])

        return run


def _questions(query: Query) -> Array:
    """(n, m) the spans of each question."""
    if isinstance(query, EntityQuery):
        return np.arange(len(query.spans))[:, None]
    if len(np.unique(query.entities)) < len(query.entities):
        raise ValueError("The marker baseline takes no merged entities.")
    return query.pairs


def _forward(
    model: Model, query: Query, is_train: bool
) -> tuple[Scores, Callable[[Scores], list[Any]]]:
    head: MarkerHead = head_of(model)
    head.train(is_train)
    head.set_dropout(float(model.attrs["dropout_rate"]))
    session = Session(model.layers[0], query.docs, is_train)
    questions = _questions(query)
    with session.task():
        asking = AskingWords(session, query.docs, query.spans)
        asked = np.flatnonzero(asking.fitting(questions, False))
        logits = torch.zeros(0, head.n_classes, device=session.device)
        if len(asked):
            logits = asking.marked(questions[asked], "document", False, head)

    def backprop(d_scores: Scores) -> list[Any]:
        session.backprop((logits,), (d_scores.logits,))
        return []

    scores = EntityScores if isinstance(query, EntityQuery) else PairScores
    return scores(asked, torch2xp(logits.detach())), backprop
