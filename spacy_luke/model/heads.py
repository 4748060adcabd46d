"""Task heads, with the shapes of the published files (Yamada et al. 2020, section 4)."""

import torch
import torch.nn.functional as F
from torch import nn


class SpanHead(nn.Module):
    """Span NER: [first piece; last piece; entity] -> classes, 3H -> C with a bias.

    The class order is the caller's. Word states are projected before they are gathered, so
    the cost on words does not grow with the number of spans.
    """

    def __init__(self, hidden: int, n_classes: int, dropout: float = 0.1):
        super().__init__()
        self.classifier = nn.Linear(3 * hidden, n_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        words: torch.Tensor,
        entities: torch.Tensor,
        first: torch.Tensor,
        last: torch.Tensor,
    ) -> torch.Tensor:
        """words: (n_pieces, H), entities: (n_spans, H), first, last: (n_spans,) rows of words
        -> logits (n_spans, C)."""
        on_first, on_last, on_entity = self.classifier.weight.chunk(3, dim=1)
        words = self.dropout(words)
        return (
            F.linear(words, on_first).index_select(0, first)
            + F.linear(words, on_last).index_select(0, last)
            + F.linear(self.dropout(entities), on_entity, self.classifier.bias)
        )


class SpanFilter(nn.Module):
    """A light scorer of spans on word states: is there any entity here?

    gelu(start(first) + end(last) + width) -> one logit. Linear in words and spans, so that
    all spans of a text can be scored and only the best become entity tokens.
    """

    def __init__(self, hidden: int, size: int, max_width: int, dropout: float = 0.1):
        super().__init__()
        self.start = nn.Linear(hidden, size)
        self.end = nn.Linear(hidden, size)
        self.width = nn.Embedding(max_width + 1, size)
        self.output = nn.Linear(size, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        words: torch.Tensor,
        first: torch.Tensor,
        last: torch.Tensor,
        widths: torch.Tensor,
    ) -> torch.Tensor:
        """words: (n_pieces, H); first, last: rows; widths: in words; -> logits (n_spans,).

        Widths above the table's last row share that row.
        """
        words = self.dropout(words)
        widths = widths.clamp(max=self.width.num_embeddings - 1)
        inner = (
            self.start(words).index_select(0, first)
            + self.end(words).index_select(0, last)
            + self.width(widths)
        )
        return self.output(F.gelu(inner)).squeeze(-1)


class EntityTypingHead(nn.Module):
    """Entity typing: H -> C with a bias, on the entity state."""

    def __init__(self, hidden: int, n_classes: int, dropout: float = 0.1):
        super().__init__()
        self.classifier = nn.Linear(hidden, n_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, entities: torch.Tensor) -> torch.Tensor:
        """(n, H) -> (n, C)."""
        return self.classifier(self.dropout(entities))


class RelationHead(nn.Module):
    """Relations: 2H -> C on [head; tail]; without a bias, as in most published files."""

    def __init__(self, hidden: int, n_classes: int, bias: bool = False, dropout: float = 0.1):
        super().__init__()
        self.classifier = nn.Linear(2 * hidden, n_classes, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, head: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        """head, tail: (n, H) -> (n, C)."""
        return self.classifier(self.dropout(torch.cat([head, tail], -1)))


class PairHead(nn.Module):
    """Relations between entities that were encoded together, in ``probe``.

    There no state knows which pair is asked about, and a linear layer on [head; tail] would
    score the two apart. Ours: gelu(head + tail + head * tail + between + distance) -> C, each a
    projection. What belongs to one entity or one word is computed once, not once a pair;
    ``between`` is a weighted mean of the words between the two (their likelihood to tell relations
    is learned).
    """

    def __init__(self, hidden: int, n_classes: int, n_distances: int, dropout: float = 0.1):
        super().__init__()
        self.head = nn.Linear(hidden, 2 * hidden)
        self.tail = nn.Linear(hidden, 2 * hidden)
        self.product = nn.Linear(hidden, hidden, bias=False)
        self.words = nn.Linear(hidden, hidden + 1)
        self.distance = nn.Embedding(n_distances, hidden)
        self.classifier = nn.Linear(hidden, n_classes)
        self.dropout = nn.Dropout(dropout)

    def entities(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(n_entities, H) -> what each is as a head and as a tail, (n_entities, 2H) both."""
        states = self.dropout(states)
        return self.head(states), self.tail(states)

    def running(self, words: torch.Tensor) -> torch.Tensor:
        """(n_pieces, H) -> (n_pieces + 1, H + 1) running sums of weighted words and of weights,
        in float64, so that differences do not depend on what stands before."""
        projected = self.words(self.dropout(words)).double()
        weights = torch.exp(projected[:, -1:].clamp(-10, 10))
        sums = torch.cat([projected[:, :-1] * weights, weights], -1).cumsum(0)
        return torch.cat([sums.new_zeros((1, sums.shape[1])), sums])

    def forward(
        self,
        head: torch.Tensor,
        tail: torch.Tensor,
        between: torch.Tensor,
        distances: torch.Tensor,
    ) -> torch.Tensor:
        """head, tail: (n, 2H) of :meth:`entities`; between: (n, H + 1) differences of
        :meth:`running`, zeros where no word is between; distances: (n,) buckets -> (n, C)."""
        head_sum, head_factor = head.chunk(2, -1)
        tail_sum, tail_factor = tail.chunk(2, -1)
        product = self.product(torch.tanh(head_factor) * torch.tanh(tail_factor))
        mean = (between[:, :-1] / between[:, -1:].clamp(min=1e-9)).to(product.dtype)
        inner = head_sum + tail_sum + product + mean + self.distance(distances)
        return self.classifier(self.dropout(F.gelu(inner)))


class MaskedHead(nn.Module):
    """Masked words or entities: dense, GELU, LayerNorm, decoder tied to an embedding table.

    ``size`` is the width of that table: H for words, the entity embedding size for entities.
    """

    def __init__(self, hidden: int, size: int, n_classes: int, eps: float):
        super().__init__()
        self.dense = nn.Linear(hidden, size)
        self.norm = nn.LayerNorm(size, eps=eps)
        self.bias = nn.Parameter(torch.zeros(n_classes))

    def forward(self, states: torch.Tensor, table: torch.Tensor | None = None) -> torch.Tensor:
        """(n, H), table (n_classes, size) -> (n, n_classes); without a table, the (n, size)
        features that the decoder would multiply."""
        features = self.norm(F.gelu(self.dense(states)))
        return features if table is None else F.linear(features, table, self.bias)
