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


class MentionStates(NamedTuple):
    """States of mentions, each (n, H). words: the mean of a mention's pieces. sentence: the mean of
    its sentence's pieces. mask: the entity [MASK] at its place."""

    words: torch.Tensor
    sentence: torch.Tensor
    mask: torch.Tensor


class CandidateHead(nn.Module):
    """Scores candidates by features that were computed without the text (such as a prior), and by
    cosines with the vector of an entity: of the mention, and of its sentence if the entity has a
    description.

    Without training, a mention is the mean of its words, and a score is the sum of the features,
    the cosines divided by ``temperature``, and the logits of entity rows (:class:`.RowLogits`), if
    the encoder has them. Training adds learned projections of all states to the mention, and of its
    vector to an entity, and learns the weights of the sum. If the prior of an entity without
    description is known, it counts less that its cosine with the words is below the best
    candidate's (:data:`NAME_SHARE`).

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
        self.entity = nn.Linear(hidden, hidden, bias=False)
        self.rows = rows
        n_terms = n_features + 2 + (rows is not None)
        self.classifier = nn.Linear(n_terms, 1, bias=False)
        self.nil = nn.Linear(hidden + n_terms, 1)
        self.dropout = nn.Dropout(dropout)

    def initialize(self) -> None:
        """Initialise as the untrained sum."""
        for layer in (self.words, self.sentence, self.mask, self.entity, self.nil):
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

        vectors: (m, H) of entities; described: (m,) whether an entity has a description.
        entities: (n, K) rows of ``vectors``, or -1. features: (n, K, n_features).
        prior_known: (n, K) whether the features tell how often the mention's text means the entity.
        table: of the same m entities, if the encoder has rows.
        """
        states = MentionStates(*(x.float() for x in states))
        exists, rows = entities >= 0, entities.clamp(min=0)
        vectors = F.normalize(vectors + self.entity(self.dropout(vectors)), dim=-1)
        of_candidates = vectors[rows]  # (n, K, H)
        by_mention = self._by_mention(states, of_candidates, exists, prior_known & ~described[rows])
        sentences = F.normalize(states.sentence, dim=-1)
        by_sentence = torch.einsum("nh,nkh->nk", sentences, of_candidates)
        by_sentence = by_sentence.masked_fill(~described[rows], 0.0)
        cosines = torch.stack([by_mention, by_sentence], -1) / self.temperature
        inner = torch.cat([features, cosines], -1)
        if self.rows is not None and table is not None:
            by_row = self.rows(states.mask, table, entities)
            inner = torch.cat([inner, by_row.unsqueeze(-1)], -1)
        logits = self.classifier(inner).squeeze(-1).masked_fill(~exists, -torch.inf)
        return torch.cat([self._nil(states.mask, inner, exists), logits], 1)

    def _by_mention(
        self,
        states: MentionStates,
        of_candidates: torch.Tensor,
        exists: torch.Tensor,
        mere_names: torch.Tensor,
    ) -> torch.Tensor:
        """(n, K) cosines of the sum of a mention's words and what is learned. Those of mere names
        are raised by what does not count, which is less if what is learned outweighs the words.
        mere_names: (n, K) entities without description whose prior is known."""
        words = F.normalize(states.words, dim=-1)
        learned = (
            self.words(self.dropout(states.words))
            + self.sentence(self.dropout(states.sentence))
            + self.mask(self.dropout(states.mask))
        )
        cosines = torch.einsum("nh,nkh->nk", F.normalize(words + learned, dim=-1), of_candidates)
        lags = _lags(torch.einsum("nh,nkh->nk", words, of_candidates), exists)
        length = (words + learned).norm(dim=-1, keepdim=True).clamp(min=1.0)
        return cosines + (1 - NAME_SHARE) * lags.masked_fill(~mere_names, 0.0) / length

    def _nil(self, mask: torch.Tensor, inner: torch.Tensor, exists: torch.Tensor) -> torch.Tensor:
        """(n, 1) logits of "none of the candidates", from [MASK] and the best of each feature."""
        best = inner.new_zeros((len(inner), inner.shape[2]))
        if inner.shape[1]:
            best = inner.masked_fill(~exists[..., None], -torch.inf).amax(1)
            best = best.masked_fill(~exists.any(1, keepdim=True), 0.0)
        return self.nil(torch.cat([self.dropout(mask), best], -1))


def _lags(cosines: torch.Tensor, exists: torch.Tensor) -> torch.Tensor:
    """(n, K) how much each candidate is below the best one of its mention."""
    if not cosines.shape[1]:
        return cosines
    best = cosines.masked_fill(~exists, -torch.inf).amax(1, keepdim=True)
    return best - cosines
