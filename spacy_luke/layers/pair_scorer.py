"""``spacy-luke.PairScorer.v1``: relations of pairs of spans, by either way to ask.

``markers`` is the published form (Yamada et al. 2020, section 4.2): one sequence a pair, a linear
layer on [head; tail]. ``probe`` encodes the entities of a document together, each once, and scores
pairs on their states: 30 entities cost one pass, not 870.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from thinc.util import torch2xp
from torch import nn
from torch.utils.checkpoint import checkpoint

from ..checkpoint.classes import ENTITY_PAIRS
from ..model.heads import PairHead, RelationHead
from ..model.packing import Array
from .asking import Asking, AskSettings, GivenSpans
from .head_module import HeadModule, fresh_weights, has_published_bias, head_of, task_node
from .session import Session
from .shim import LearnRates

NETWORK = "luke-pair-scorer"
MAX_PAIRS = 16384
"""Pairs whose inner states are in memory at a time."""
_NEAR = 4
_N_DISTANCES = 2 * 10


class PairQuery(NamedTuple):
    """docs; spans: their mentions. entities: (n_spans,) the entity that a mention is of, counted
    through the batch. pairs: (n_pairs, 2) head and tail entity."""

    docs: Sequence[Doc]
    spans: GivenSpans
    entities: Array
    pairs: Array


class PairScores(NamedTuple):
    """asked: (n_asked,) rows of the pairs that could be asked about; logits: (n_asked, C)."""

    asked: Array
    logits: Any


@dataclass
class PairSettings(AskSettings):
    """The settings of ``spacy-luke.PairScorer.v1``; see there."""

    scorer: ClassVar[str] = "PairScorer"

    @property
    def head_type(self) -> type["PairModule"]:
        return PairModule if self.mode == "markers" else ProbePairModule

    def head_config(self, network: Model) -> dict[str, Any]:
        """Published heads mostly have no bias, so a fresh one has none either."""
        return {"linear": self.mode == "markers", "bias": has_published_bias(network)}


class PairModule(HeadModule):
    """The relation head of either way."""

    architecture: ClassVar[str] = ENTITY_PAIRS.name
    width: ClassVar[int] = ENTITY_PAIRS.n_states

    def __init__(self, hidden: int, n_classes: int, linear: bool, bias: bool):
        super().__init__(hidden=hidden, n_classes=n_classes, linear=linear, bias=bias)
        self.linear = RelationHead(hidden, n_classes, bias) if linear else None
        self.pairs = None if linear else PairHead(hidden, n_classes, _N_DISTANCES)
        fresh_weights(self)
        if self.pairs is not None:
            # As wide as deep layers are drawn: with smaller weights the product of head and tail
            # is next to nothing for hundreds of steps.
            for layer in (self.pairs.head, self.pairs.tail, self.pairs.product, self.pairs.words):
                nn.init.xavier_uniform_(layer.weight)

    @property
    def classifier(self) -> nn.Linear:
        head = self.pairs if self.linear is None else self.linear
        assert head is not None
        return head.classifier


class ProbePairModule(PairModule):
    """The head of ``probe``, which has no published form: a published classifier reads two states
    that know of each other."""

    architecture: ClassVar[str] = ""


@registry.architectures("spacy-luke.PairScorer.v1")
def PairScorer_v1(
    encoder: Model,
    *,
    mode: Literal["markers", "probe"] = "probe",
    view: Literal["document", "sentence"] = "document",
    typed_markers: bool = False,
    max_mention_pieces: int | None = None,
    learn_rate_factor: float = 1.0,
) -> Model[PairQuery, PairScores]:
    """Score pairs of entities.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one.
    mode: ``markers``: one sequence a pair, head and tail between marker pieces, as published;
        ``probe``: all entities of a window at once.
    view: what a sequence of ``markers`` shows: as much of the ``document`` as the window holds, or
        only the ``sentence`` (or sentences) of the pair.
    typed_markers: the markers also name the entity labels (``markers`` only).
    max_mention_pieces: the positions of a span stop after so many pieces, its markers counted; 30
        in published models, by default all (``markers`` only).
    learn_rate_factor: learning rate of the head, relative to the config's.
    """
    settings = PairSettings(mode, view, typed_markers, max_mention_pieces)
    return task_node(NETWORK, encoder, settings, _forward, LearnRates(learn_rate_factor))


def askable(model: Model, query: PairQuery) -> Array:
    """(n_pairs,) whether the window lets a pair be asked about."""
    session = Session(model.layers[0], query.docs, is_train=False)
    return _Pairs(session, model.attrs["settings"], head_of(model), query).askable()


def _forward(
    model: Model, query: PairQuery, is_train: bool
) -> tuple[PairScores, Callable[[PairScores], list]]:
    module: PairModule = head_of(model)
    module.train(is_train)
    module.set_dropout(float(model.attrs["dropout_rate"]))
    session = Session(model.layers[0], query.docs, is_train)
    pairs = _Pairs(session, model.attrs["settings"], module, query)
    with session.task():
        asked, logits = pairs.score()

    def backprop(d_scores: PairScores) -> list:
        session.backprop((logits,), (d_scores.logits,))
        return []

    return PairScores(asked, torch2xp(logits.detach())), backprop


class _Pairs:
    """One forward pass."""

    def __init__(
        self, session: Session, settings: PairSettings, module: PairModule, query: PairQuery
    ):
        self.session, self.settings, self.module, self.query = session, settings, module, query
        self.asking = Asking(session, query.docs, query.spans)

    def askable(self) -> Array:
        if self.settings.mode == "markers":
            return self.asking.fitting(self._nearest(), self.settings.typed_markers)
        return self._asked_of(self.asking.shown())

    def score(self) -> tuple[Array, torch.Tensor]:
        if not len(self.query.pairs):
            return np.zeros(0, dtype=np.int64), self._none()
        return self._markers() if self.settings.mode == "markers" else self._probe()

    def _markers(self) -> tuple[Array, torch.Tensor]:
        questions, settings = self._nearest(), self.settings
        typed = settings.typed_markers
        asked = np.flatnonzero(self.asking.fitting(questions, typed))
        if not len(asked):
            return asked, self._none()
        head = self.module.linear
        assert head is not None

        def classify(states: torch.Tensor) -> torch.Tensor:
            return head(states[:, 0], states[:, 1]).float()

        logits = self.asking.marked(
            questions[asked], settings.view, typed, classify, settings.max_mention_pieces
        )
        return asked, logits

    def _probe(self) -> tuple[Array, torch.Tensor]:
        probed = self.asking.probe()
        asked = np.flatnonzero(self._asked_of(probed.fits))
        if not len(asked):
            return asked, self._none()
        head, index = self.module.pairs, self.session.index
        assert head is not None
        as_head, as_tail = head.entities(self._of_entities(probed.entities, probed.fits))
        running = head.running(probed.words)
        mentions = self._nearest()[asked]
        starts, ends = self.asking.starts[mentions], self.asking.ends[mentions]
        low = ends.min(1)
        high = np.maximum(starts.max(1), low)
        distances = _buckets(starts[:, 1] - starts[:, 0])
        pairs = self.query.pairs[asked]

        def score(part: slice, _: torch.Tensor) -> torch.Tensor:
            between = running.index_select(0, index(high[part]))
            return head(
                as_head.index_select(0, index(pairs[part, 0])),
                as_tail.index_select(0, index(pairs[part, 1])),
                between - running.index_select(0, index(low[part])),
                index(distances[part]),
            ).float()

        parts = [slice(i, i + MAX_PAIRS) for i in range(0, len(asked), MAX_PAIRS)]
        # Of no use to the head: it tells the checkpoint whose random state dropout draws from.
        device = torch.zeros(0, device=self.session.device)
        if self.session.is_train and len(parts) > 1:  # computed again for the gradient
            found = [checkpoint(score, part, device, use_reentrant=False) for part in parts]
        else:
            found = [score(part, device) for part in parts]
        return asked, torch.cat(found)

    def _of_entities(self, states: torch.Tensor, fits: Array) -> torch.Tensor:
        """(n_spans, H) -> (n_entities, H): the mean of an entity's mentions."""
        owners = self.query.entities
        n = int(owners.max()) + 1
        if len(owners) == n and (owners == np.arange(n)).all():
            return states
        index = self.session.index(owners[fits])
        kept = states.index_select(0, self.session.index(np.flatnonzero(fits)))
        sums = states.new_zeros((n, states.shape[1])).index_add(0, index, kept)
        counts = np.maximum(np.bincount(owners[fits], minlength=n), 1)
        return sums / self.session.index(counts).unsqueeze(-1)

    def _asked_of(self, fits: Array) -> Array:
        """(n_pairs,) whether both entities of a pair have a mention that fits."""
        if not len(fits):
            return np.zeros(0, dtype=bool)
        known = np.bincount(self.query.entities[fits], minlength=self.query.entities.max() + 1) > 0
        return known[self.query.pairs].all(1)

    def _nearest(self) -> Array:
        """(n_pairs, 2) the mentions of head and tail that take the least room together.

        Where these do not fit a sequence, no others do (labels of typed markers aside).
        """
        entities, pairs = self.query.entities, self.query.pairs
        mentions = np.argsort(entities, kind="stable")
        first = np.searchsorted(entities[mentions], np.arange(int(entities.max(initial=-1)) + 2))
        if len(mentions) == len(first) - 1:
            return mentions[pairs]
        starts, ends = self.asking.starts, self.asking.ends
        last = int(ends.max(initial=0))
        # A mention without pieces is taken where there is no other.
        firsts, stops = (np.where(ends > starts, x, y) for x, y in ((starts, -last), (ends, last)))
        nearest = np.empty_like(pairs)
        for i, (head, tail) in enumerate(pairs.tolist()):
            heads, tails = (mentions[first[x] : first[x + 1]] for x in (head, tail))
            room = np.maximum.outer(stops[heads], stops[tails])
            room -= np.minimum.outer(firsts[heads], firsts[tails])
            a, b = np.unravel_index(int(room.argmin()), room.shape)
            nearest[i] = heads[a], tails[b]
        return nearest

    def _none(self) -> torch.Tensor:
        return torch.zeros(0, self.module.n_classes, device=self.session.device)


def _buckets(gaps: Array) -> Array:
    """(n,) buckets of signed distances in pieces from head to tail, growing by factors of two."""
    size = np.minimum(np.log2(np.maximum(np.abs(gaps) / _NEAR, 1)), 8).astype(np.int64)
    return np.where(gaps == 0, 0, np.where(gaps > 0, 1 + size, 11 + size))
