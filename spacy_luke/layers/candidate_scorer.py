"""``spacy-luke.CandidateScorer.v1``: scores the entities of a knowledge base that a mention may
mean, and that it means none of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from torch import nn

from ..inputs.placed_spans import span_pieces
from ..model.candidate_head import CandidateHead, MentionStates
from ..model.packing import Array
from ..validation import Positive, check_settings
from .encoder_module import Encoder
from .encoder_run import EncoderRun
from .entity_scorer import EntityQuery
from .given_spans import ClassScores, probe_states
from .shim import LearnRates
from .task_head import Head, HeadKind
from .task_layer import Scorer, task_layer

FEATURES = ("prior", "likeness", "type")
"""Of a candidate, computed without the text: the logarithm of its prior, that of the likeness of
alias and mention, and whether its type agrees with that of the mention."""
CONTEXT = 32
"""Tokens before and after a mention that are its sentence in a document without sentences."""


@dataclass(frozen=True)
class CandidateQuery(EntityQuery):
    """Mentions with their candidates.

    entities: (n_spans, K) rows of ``vectors``; -1 where a mention has fewer than K candidates.
    features: (n_spans, K, len(FEATURES)). vectors: (m, H) of length 1. described: (m,) whether an
    entity has a description.
    """

    entities: Array
    features: Array
    vectors: Array
    described: Array


def _parts(
    hidden: int, n_classes: int, temperature: float, similarity: float
) -> Mapping[str, nn.Module]:
    return {"candidates": CandidateHead(hidden, len(FEATURES), temperature, similarity)}


@dataclass
class CandidateScorer(Scorer[CandidateQuery, ClassScores]):
    """The settings of ``spacy-luke.CandidateScorer.v1``; see there."""

    temperature: Positive = 0.03
    similarity: float = 0.0

    node: ClassVar[str] = "luke-candidate-scorer"
    kind: ClassVar[HeadKind] = HeadKind(_parts)

    def __post_init__(self) -> None:
        check_settings("CandidateScorer", CandidateScorer, vars(self))

    def head_config(self, encoder: Encoder) -> dict[str, Any]:
        return {"temperature": self.temperature, "similarity": self.similarity}

    def fits(self, encoder: Model, query: CandidateQuery) -> Array:
        return query.spans.place(encoder, query.docs).fits

    def score(self, run: EncoderRun, head: Head, query: CandidateQuery) -> ClassScores:
        """Logits: (n_scored, 1 + K), first of "none of the candidates"."""
        placed = query.spans.place(run.node, query.docs)
        rows = np.flatnonzero(placed.fits)
        if not len(rows):
            return ClassScores(rows, run.zeros(0, 1 + query.entities.shape[1]))
        masks, pieces = probe_states(run, query.spans, placed)
        sentences = sentence_table(query.docs, placed.spans[rows], placed.of_doc[rows])
        of_sentences = span_pieces(placed.pieces, sentences, placed.of_doc[rows])
        states = MentionStates(
            piece_means(run, pieces, placed.starts[rows], placed.ends[rows]),
            piece_means(run, pieces, *of_sentences),
            masks.index_select(0, run.index(rows)),
        )
        logits = head.part("candidates", CandidateHead)(
            states,
            run.values(query.vectors),
            run.values(query.described),
            run.index(query.entities[rows]),
            run.values(query.features[rows]),
        )
        return ClassScores(rows, logits.float())


def piece_means(run: EncoderRun, states: torch.Tensor, starts: Array, ends: Array) -> torch.Tensor:
    """(n, H) means of the piece ranges [starts, ends), which are not empty."""
    # In float64, so that rounding of a difference does not depend on the pieces before it.
    sums = torch.cat([states.new_zeros((1, states.shape[1])), states]).double().cumsum(0)
    totals = sums.index_select(0, run.index(ends)) - sums.index_select(0, run.index(starts))
    return (totals / run.index(ends - starts)[:, None]).float()


def sentence_table(docs: Sequence[Doc], spans: Array, of_doc: Array) -> Array:
    """(n, 2) the token range of the sentences that contain each span: from the start of the
    sentence of its first token to the end of that of its last. In a document without sentences,
    ``CONTEXT`` tokens before and after the span belong to it."""
    table = np.stack([spans[:, 0] - CONTEXT, spans[:, 1] + CONTEXT], 1)
    for number in np.unique(of_doc).tolist():
        doc, own = docs[number], of_doc == number
        table[own] = np.clip(table[own], 0, len(doc))
        if doc.has_annotation("SENT_START"):
            starts = np.asarray([sent.start for sent in doc.sents])
            bounds = np.append(starts, len(doc))
            first = np.searchsorted(starts, spans[own, 0], side="right") - 1
            last = np.searchsorted(starts, spans[own, 1] - 1, side="right")
            table[own] = np.stack([starts[first], bounds[last]], 1)
    return table


@registry.architectures("spacy-luke.CandidateScorer.v1")
def CandidateScorer_v1(
    encoder: Model,
    *,
    temperature: float = 0.03,
    similarity: float = 0.0,
    learn_rate_factor: float = 1.0,
) -> Model[CandidateQuery, ClassScores]:
    """Score the candidates of mentions; see :class:`.CandidateHead`.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one.
    temperature: cosines are divided by it, and added to the logarithm of the prior.
    similarity: an untrained head scores "none of the candidates" like a candidate with this cosine
        and a prior of 1.
    learn_rate_factor: learning rate of the head, relative to the config's.
    """
    scorer = CandidateScorer(temperature, similarity)
    return task_layer(encoder, scorer, LearnRates(learn_rate_factor))
