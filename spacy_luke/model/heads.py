"""The modules of task heads (Yamada et al. 2020, section 4)."""

import torch
import torch.nn.functional as F
from torch import nn

from .activation import gelu
from .ranges import range_means


class LinearHead(nn.Module):
    """A linear classifier on concatenated states, as published: [entity] for entity typing,
    [head; tail] for relations (mostly without a bias), [first piece; last piece; entity] for NER;
    and, not published, [first piece; last piece; mean of the pieces; entity].
    """

    def __init__(
        self, hidden: int, n_states: int, n_classes: int, bias: bool = True, dropout: float = 0.1
    ):
        super().__init__()
        self.classifier = nn.Linear(n_states * hidden, n_classes, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(n, n_states, H) -> (n, C)."""
        return self.classifier(self.dropout(states.flatten(1)))

    def on_pieces(
        self, words: torch.Tensor, first: torch.Tensor, last: torch.Tensor, entities: torch.Tensor
    ) -> torch.Tensor:
        """:meth:`forward` of the states [words[first]; words[last]; entities] or, with four states,
        [words[first]; words[last]; mean of words[first] to words[last]; entities].

        words: (n_pieces, H); first, last: (n,); entities: (n, H) -> (n, C). Words are multiplied
        with their part of the weight before they are gathered: the cost does not grow with the
        spans.
        """
        of_first, of_last, *of_mean, of_entity = self.classifier.weight.split(words.shape[1], dim=1)
        words = self.dropout(words)
        total = F.linear(words, of_first).index_select(0, first)
        total = total + F.linear(words, of_last).index_select(0, last)
        for weight in of_mean:
            total = total + range_means(F.linear(words, weight), first, last + 1)
        return total + F.linear(self.dropout(entities), of_entity, self.classifier.bias)


def apart(logits: torch.Tensor, label_weight: float) -> torch.Tensor:
    """Whether there is an entity, and which it is, as two questions. (n, C) -> (n, C) logits, whose
    softmax has the probabilities of both; that of the likeliest label is its log odds. (Logarithms
    of probabilities near 1 would be equal, and of two overlapping entities none would be better.)

    logits: the last is that of "no entity", and nothing but it says how probable that is; the
    others say which label an entity has. label_weight: the factor of their gradient.

    logits [2, 2, 0] -> probabilities [1/4, 1/4, 1/2] -> log [1/3, 1/3, 2/3]
    """
    labels, nil = logits[:, :-1], logits[:, -1:]
    if not labels.shape[1]:
        return nil
    labels = labels + (label_weight - 1) * (labels - labels.detach())
    logs = torch.cat([F.logsigmoid(-nil) + F.log_softmax(labels, dim=1), F.logsigmoid(nil)], dim=1)
    likeliest = logs[:, :-1].argmax(dim=1, keepdim=True)
    others = logs.detach().scatter(1, likeliest, -torch.inf).logsumexp(dim=1, keepdim=True)
    return logs - others


class SpanFilter(nn.Module):
    """A fast scorer of spans on word states: the logit that a span is an entity.

    output(gelu(start(first word) + end(last word) + width)). The cost is linear in words and spans,
    so all spans of a text can be scored, and only the best become entity inputs.
    """

    def __init__(self, hidden: int, size: int, max_width: int, dropout: float = 0.1):
        super().__init__()
        self.start = nn.Linear(hidden, size)
        self.end = nn.Linear(hidden, size)
        self.width = nn.Embedding(max_width + 1, size)
        self.output = nn.Linear(size, 1)
        self.dropout = nn.Dropout(dropout)

    def initialize(self) -> None:
        """Initialise so that few spans pass. Otherwise the first training steps only learn that."""
        nn.init.constant_(self.output.bias, -2.0)

    def forward(
        self,
        words: torch.Tensor,
        first: torch.Tensor,
        last: torch.Tensor,
        widths: torch.Tensor,
    ) -> torch.Tensor:
        """Logits (n_spans,) of spans.

        words: (n_pieces, H). first, last: (n_spans,) rows of words. widths: (n_spans,) in words;
        larger widths than the table's last row use that row.
        """
        words = self.dropout(words)
        widths = widths.clamp(max=self.width.num_embeddings - 1)
        inner = (
            self.start(words).index_select(0, first)
            + self.end(words).index_select(0, last)
            + self.width(widths)
        )
        return self.output(gelu(inner)).squeeze(-1)


class NamePrior(nn.Module):
    """What a list of names says of a span, as logits that are added to the classifier's: the sum of
    a row per feature (:class:`..layers.known_spans.KnownFeatures`). Zero until it is set.
    """

    def __init__(self, n_features: int, n_classes: int):
        super().__init__()
        self.classifier = nn.Linear(n_features, n_classes, bias=False)

    def initialize(self) -> None:
        nn.init.zeros_(self.classifier.weight)

    def forward(
        self, features: torch.Tensor, weights: torch.Tensor, offsets: torch.Tensor
    ) -> torch.Tensor:
        """features, weights: (n,); offsets: (n_spans,) the first of each -> (n_spans, C)."""
        table = self.classifier.weight.t()
        return F.embedding_bag(
            features, table, offsets, per_sample_weights=weights.to(table.dtype), mode="sum"
        )


class PairHead(nn.Module):
    """Scores relations between entities that were encoded together, in ``probe``.

    In ``probe`` no state depends on the pair that is scored, and a linear layer on [head; tail]
    would score the two independently. This head computes classifier(gelu(head + tail + head * tail
    + between + distance)), with a projection of each. Projections of entities and words are
    computed once, not once per pair. ``between`` is a mean of the words between the two, with
    learned weights.
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

    def initialize(self) -> None:
        """Initialise with larger weights than BERT's: with those the product of head and tail stays
        close to 0 for hundreds of steps."""
        for layer in (self.head, self.tail, self.product, self.words):
            nn.init.xavier_uniform_(layer.weight)

    def entities(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(n_entities, H) -> projections of each as a head and as a tail, both (n_entities, 2H)."""
        states = self.dropout(states)
        return self.head(states), self.tail(states)

    def running(self, words: torch.Tensor) -> torch.Tensor:
        """(n_pieces, H) -> (n_pieces + 1, H + 1) running sums of weighted words and of weights.
        In float64, so that rounding of a difference does not depend on the words before it."""
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
        """Logits (n, C) of pairs.

        head, tail: (n, 2H) of :meth:`entities`. between: (n, H + 1) differences of :meth:`running`,
        zeros if no word is between the two. distances: (n,) buckets.
        """
        head_sum, head_factor = head.chunk(2, -1)
        tail_sum, tail_factor = tail.chunk(2, -1)
        product = self.product(torch.tanh(head_factor) * torch.tanh(tail_factor))
        mean = (between[:, :-1] / between[:, -1:].clamp(min=1e-9)).to(product.dtype)
        inner = head_sum + tail_sum + product + mean + self.distance(distances)
        return self.classifier(self.dropout(gelu(inner)))


class MaskedTransform(nn.Module):
    """The features of masked words or entities: dense, GELU, LayerNorm. Their product with a row of
    a table is the logit of that row, without its bias.

    size: the width of that table: H for words, the entity embedding size for entities.
    """

    def __init__(self, hidden: int, size: int, eps: float):
        super().__init__()
        self.dense = nn.Linear(hidden, size)
        self.norm = nn.LayerNorm(size, eps=eps)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(n, H) -> (n, size)."""
        return self.norm(gelu(self.dense(states)))


class MaskedHead(MaskedTransform):
    """Predicts masked words or entities: features, and a decoder tied to a table. Callers give it
    the table (in pretraining :class:`..pretraining.objective.PretrainingModel`)."""

    def __init__(self, hidden: int, size: int, n_classes: int, eps: float):
        super().__init__(hidden, size, eps)
        self.bias = nn.Parameter(torch.zeros(n_classes))

    def forward(self, states: torch.Tensor, table: torch.Tensor | None = None) -> torch.Tensor:
        """states (n, H), table (n_classes, size) -> logits (n, n_classes). Without a table: the
        features (n, size), which the decoder multiplies with the table."""
        features = super().forward(states)
        return features if table is None else F.linear(features, table, self.bias)
