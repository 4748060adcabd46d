"""The head that scores the candidates of a mention, and that it means none of them."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from .row_head import EntityRows, RowLogits

NAME_SHARE = 1 / 30
"""What counts of that by which the words' cosine with a mere name is below the best candidate's, if
the name's prior is known: the prior says better what a text means than how much the text is like a
name (benchmarks.linking)."""
LEARNED_SCALE = 2.0
"""Of what is learned: at the rates of configs/linker.cfg an update in the warm-up changes logits by
a few tenths, so that many mentions are needed to outweigh a prior."""


class MentionStates(NamedTuple):
    """States of mentions, each (n, H). words: the mean of a mention's pieces. sentence: the mean of
    its sentence's pieces. mask: the entity [MASK] at its place."""

    words: torch.Tensor
    sentence: torch.Tensor
    mask: torch.Tensor


class CandidateHead(nn.Module):
    """Scores candidates by features that were computed without the text (such as a prior), and by
    cosines with the vector of an entity: of the mention's words, and of its sentence if the entity
    has a description.

    Without training, a score is the sum of the features, the cosines divided by ``temperature``,
    and the logits of entity rows (:class:`.RowLogits`), if the encoder has them. Training adds a
    term that begins at 0: products of the entity's vector and learned projections of all states of
    the mention, which have length 1 there. It also learns the weights of the sum. If the prior of
    an entity without description is known, it counts less that its cosine with the words is below
    the best candidate's (:data:`NAME_SHARE`).

    similarity: an untrained head scores "none of the candidates" like a candidate with this cosine
    and no other features. rows: None if the encoder has no entity rows.
    """

    def __init__(
        self,
        hidden: int,
        n_features: int,
        temperature: float,
        similarity: float,
        rows: RowLogits | None = None,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.temperature, self.similarity = temperature, similarity
        self.words = nn.Linear(hidden, hidden, bias=False)
        self.sentence = nn.Linear(hidden, hidden, bias=False)
        self.mask = nn.Linear(hidden, hidden, bias=False)
        self.rows = rows
        n_terms = n_features + 3 + (rows is not None)
        self.classifier = nn.Linear(n_terms, 1, bias=False)
        self.nil = nn.Linear(hidden + n_terms, 1)
        self.dropout = nn.Dropout(dropout)

    def initialize(self) -> None:
        """Initialise as the untrained sum."""
        for layer in (self.words, self.sentence, self.mask, self.nil):
            nn.init.zeros_(layer.weight)
        nn.init.ones_(self.classifier.weight)
        nn.init.constant_(self.nil.bias, self.similarity / self.temperature)

    def forward(
        self,
        states: MentionStates,
        vectors: torch.Tensor,
        described: torch.Tensor,
        entities: torch.Tensor,
        features: torch.Tensor,
        prior_known: torch.Tensor,
        table: EntityRows | None = None,
    ) -> torch.Tensor:
        """Logits (n, 1 + K): of "none of the candidates", and of each candidate (-inf: no
        candidate).

        vectors: (m, H) of entities, of length 1; described: (m,) whether an entity has a
        description. entities: (n, K) rows of ``vectors``, or -1. features: (n, K, n_features).
        prior_known: (n, K) whether the features tell how often the mention's text means the entity.
        table: of the same m entities, if the encoder has rows.
        """
        mask, exists, rows = states.mask.float(), entities >= 0, entities.clamp(min=0)
        states = MentionStates(*(F.normalize(x.float(), dim=-1) for x in states))
        of_candidates, has_text = vectors[rows], described[rows]  # (n, K, H), (n, K)
        by_words = _products(states.words, of_candidates)
        # Not of what is no candidate: infinite times a gradient of 0 is NaN.
        counts_less = exists & prior_known & ~has_text
        lags = _lags(by_words, exists).masked_fill(~counts_less, 0.0)
        by_words = by_words + (1 - NAME_SHARE) * lags
        by_sentence = _products(states.sentence, of_candidates).masked_fill(~has_text, 0.0)
        cosines = torch.stack([by_words, by_sentence], -1) / self.temperature
        learned = self._learned(states, of_candidates)
        inner = torch.cat([features, cosines, learned.unsqueeze(-1)], -1)
        if self.rows is not None and table is not None:
            by_row = self.rows(mask, table, entities)
            inner = torch.cat([inner, by_row.unsqueeze(-1)], -1)
        logits = self.classifier(inner).squeeze(-1).masked_fill(~exists, -torch.inf)
        return torch.cat([self._nil(mask, inner, exists), logits], 1)

    def _learned(self, states: MentionStates, of_candidates: torch.Tensor) -> torch.Tensor:
        """(n, K) products. They are a term of their own, not a part of the cosine: there, the
        little that a few examples teach would count 1 / temperature times as much as a prior."""
        projected = (
            self.words(self.dropout(states.words))
            + self.sentence(self.dropout(states.sentence))
            + self.mask(self.dropout(states.mask))
        )
        return LEARNED_SCALE * _products(projected, self.dropout(of_candidates))

    def _nil(self, mask: torch.Tensor, inner: torch.Tensor, exists: torch.Tensor) -> torch.Tensor:
        """(n, 1) logits of "none of the candidates", from [MASK] and the best of each feature."""
        best = inner.new_zeros((len(inner), inner.shape[2]))
        if inner.shape[1]:
            best = inner.masked_fill(~exists[..., None], -torch.inf).amax(1)
            best = best.masked_fill(~exists.any(1, keepdim=True), 0.0)
        return self.nil(torch.cat([self.dropout(mask), best], -1))


def _products(of_mentions: torch.Tensor, of_candidates: torch.Tensor) -> torch.Tensor:
    """(n, K) dot products of (n, H) and (n, K, H)."""
    return torch.einsum("nh,nkh->nk", of_mentions, of_candidates)


def _lags(cosines: torch.Tensor, exists: torch.Tensor) -> torch.Tensor:
    """(n, K) how much each candidate is below the best one of its mention."""
    if not cosines.shape[1]:
        return cosines
    best = cosines.masked_fill(~exists, -torch.inf).amax(1, keepdim=True)
    return best - cosines
