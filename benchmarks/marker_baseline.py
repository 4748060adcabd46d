"""The baseline of relations and typing: a plain classifier between marker pieces.

One sequence per row, ``@ head @ ... # tail # ...``, laid out as in the ``markers`` mode, but
without entity tokens: a linear layer on [first special piece; first marker of each span]. It takes
the place of the model in ``luke_relation`` or ``luke_entity_typing``, so that rows, loss and
decoding are the same. Mentions are not merged here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from torch import nn

from spacy_luke.inputs.marked import Marked
from spacy_luke.layers import entity_scorer, pair_scorer
from spacy_luke.layers.encoder_module import Encoder
from spacy_luke.layers.encoder_run import EncoderRun, window
from spacy_luke.layers.entity_scorer import EntityQuery
from spacy_luke.layers.given_spans import ClassScores, GivenScorer, MarkedSpans
from spacy_luke.layers.pair_scorer import PairQuery
from spacy_luke.layers.shim import LearnRates
from spacy_luke.layers.task_head import Head, HeadKind
from spacy_luke.layers.task_layer import task_layer
from spacy_luke.model.heads import LinearHead

PAIRS = "spacy-luke.benchmarks.MarkerPairs.v1"
ENTITIES = "spacy-luke.benchmarks.MarkerEntities.v1"
Array = np.ndarray
Query = TypeVar("Query", PairQuery, EntityQuery)


def _parts(hidden: int, n_classes: int, n_spans: int) -> Mapping[str, nn.Module]:
    return {"linear": LinearHead(hidden, 1 + n_spans, n_classes)}


class MarkedWords(MarkedSpans):
    """Marked sequences of words alone; their first states are handed on instead of entities'."""

    def states(self, run: EncoderRun, marked: Marked, classes: Array) -> torch.Tensor:
        """(n, 1 + m, H)."""
        firsts = marked.words.offsets[:-1, None]
        rows = np.concatenate([firsts, firsts + marked.starts], axis=1)
        return run.encode_words(marked.words).states[run.index(rows)]


@dataclass
class MarkerScorer(GivenScorer[Query]):
    """For the components whose model's node is ``node``."""

    mode: Any = "markers"
    kind: ClassVar[HeadKind] = HeadKind(_parts)
    n_spans: ClassVar[int]

    def head_config(self, encoder: Encoder) -> dict[str, Any]:
        return {"n_spans": self.n_spans}

    def fits(self, encoder: Model, query: Query) -> Array:
        return self._marked(encoder, query).fits(_spans(query))

    def score(self, run: EncoderRun, head: Head, query: Query) -> ClassScores:
        marked, spans = self._marked(run.node, query), _spans(query)
        linear = head.part("linear", LinearHead)
        rows = np.flatnonzero(marked.fits(spans))
        if not len(rows):
            return ClassScores(rows, run.zeros(0, head.n_classes))

        def classify(states: torch.Tensor) -> torch.Tensor:
            return linear(states).float()

        return ClassScores(rows, marked.classify(run, spans[rows], classify, self.view, None))

    def _marked(self, encoder: Model, query: Query) -> MarkedWords:
        placed = query.spans.place(encoder, query.docs)
        return MarkedWords(window(encoder), query.spans, placed, typed=False)


class PairMarkers(MarkerScorer[PairQuery]):
    node, n_spans = pair_scorer.PairScorer.node, 2


class EntityMarkers(MarkerScorer[EntityQuery]):
    node, n_spans = entity_scorer.EntityScorer.node, 1


@registry.architectures(PAIRS)
def MarkerPairs_v1(encoder: Model, learn_rate_factor: float = 1.0) -> Model[PairQuery, ClassScores]:
    """For ``luke_relation`` without ``merge_entities``."""
    return task_layer(encoder, PairMarkers(), LearnRates(learn_rate_factor))


@registry.architectures(ENTITIES)
def MarkerEntities_v1(
    encoder: Model, learn_rate_factor: float = 1.0
) -> Model[EntityQuery, ClassScores]:
    """For ``luke_entity_typing``."""
    return task_layer(encoder, EntityMarkers(), LearnRates(learn_rate_factor))


def _spans(query: Query) -> Array:
    """(n, m) the spans of each row."""
    if isinstance(query, EntityQuery):
        return np.arange(len(query.spans))[:, None]
    if len(np.unique(query.entities)) < len(query.entities):
        raise ValueError("The marker baseline takes no merged entities.")
    return query.pairs
