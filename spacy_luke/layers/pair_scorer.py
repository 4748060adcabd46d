"""``spacy-luke.PairScorer.v1``: scores relations of pairs of entities, in one of two modes.

``markers`` is the published form (Yamada et al. 2020, section 4.2): one sequence per pair, a linear
layer on [head; tail]. ``probe`` encodes the entities of a document together, each once, and scores
pairs from their states: 30 entities need one pass, not 870.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model
from torch import nn

from ..checkpoint.classes import ENTITY_PAIRS
from ..checkpoint.names import CLASSIFIER_BIAS
from ..inputs.placed_spans import PlacedSpans
from ..model.heads import LinearHead, PairHead
from ..model.packing import Array
from .encoder_module import Encoder
from .encoder_run import EncoderRun, in_parts
from .given_spans import ClassScores, GivenScorer, GivenSpans, span_states
from .shim import LearnRates
from .task_head import Head, HeadKind
from .task_layer import task_layer

MAX_PAIRS = 16384
"""Most pairs whose inner states are in memory at the same time."""
_NEAR = 4  # pieces: smaller distances share a bucket
_N_DISTANCES = 2 * 10


@dataclass(frozen=True)
class PairQuery:
    """Documents and pairs of their entities.

    spans: the mentions of the entities. entities: (n_spans,) the entity of each mention, entities
    counted over the batch. pairs: (n_pairs, 2) head and tail entity.
    """

    docs: Sequence[Doc]
    spans: GivenSpans
    entities: Array
    pairs: Array

    @property
    def of_doc(self) -> Array:
        """(n_pairs,) the document of each pair."""
        of_entity = np.zeros(int(self.entities.max(initial=-1)) + 1, dtype=np.int64)
        of_entity[self.entities] = self.spans.of_doc
        return of_entity[self.pairs[:, 0]]


def _parts(hidden: int, n_classes: int, linear: bool, bias: bool) -> Mapping[str, nn.Module]:
    if linear:
        return {"linear": LinearHead(hidden, 2, n_classes, bias)}
    return {"pairs": PairHead(hidden, n_classes, _N_DISTANCES)}


MARKED_HEAD = HeadKind(_parts, ENTITY_PAIRS.n_states, ENTITY_PAIRS.name)
PROBE_HEAD = HeadKind(_parts)
"""Has no published form: published classifiers read states that see each other."""


@dataclass
class PairScorer(GivenScorer[PairQuery]):
    """The settings of ``spacy-luke.PairScorer.v1``; see there."""

    node: ClassVar[str] = "luke-pair-scorer"
    name: ClassVar[str] = "PairScorer"

    @property
    def kind(self) -> HeadKind:
        return MARKED_HEAD if self.mode == "markers" else PROBE_HEAD

    def head_config(self, encoder: Encoder) -> dict[str, Any]:
        """A new head has no bias, as most published heads, unless the checkpoint's head has one."""
        return {"linear": self.mode == "markers", "bias": CLASSIFIER_BIAS in encoder.others}

    def fits(self, encoder: Model, query: PairQuery) -> Array:
        placed = query.spans.place(encoder, query.docs)
        if self.mode == "markers":
            marked = self.marked(encoder, query.spans, placed)
            return marked.fits(nearest_mentions(query, placed))
        return _both_fit(query, placed.fits)

    def score(self, run: EncoderRun, head: Head, query: PairQuery) -> ClassScores:
        if not len(query.pairs):
            return ClassScores(np.zeros(0, dtype=np.int64), run.zeros(0, head.n_classes))
        placed = query.spans.place(run.node, query.docs)
        score = self._markers if self.mode == "markers" else self._probe
        rows, logits = score(run, head, query, placed)
        return ClassScores(rows, run.zeros(0, head.n_classes) if logits is None else logits)

    def _markers(
        self, run: EncoderRun, head: Head, query: PairQuery, placed: PlacedSpans
    ) -> tuple[Array, torch.Tensor | None]:
        marked = self.marked(run.node, query.spans, placed)
        mentions = nearest_mentions(query, placed)
        rows = np.flatnonzero(marked.fits(mentions))
        if not len(rows):
            return rows, None
        linear = head.part("linear", LinearHead)
        logits = marked.classify(run, mentions[rows], linear, self.view, self.max_mention_pieces)
        return rows, logits

    def _probe(
        self, run: EncoderRun, head: Head, query: PairQuery, placed: PlacedSpans
    ) -> tuple[Array, torch.Tensor | None]:
        entities, words, _ = span_states(run, query.spans, placed)
        rows = np.flatnonzero(_both_fit(query, placed.fits))
        if not len(rows):
            return rows, None
        pair_head, index = head.part("pairs", PairHead), run.index
        as_head, as_tail = pair_head.entities(_of_entities(run, query, entities, placed.fits))
        running = pair_head.running(words)
        mentions = nearest_mentions(query, placed)[rows]
        starts, ends = placed.starts[mentions], placed.ends[mentions]
        low = ends.min(1)
        high = np.maximum(starts.max(1), low)
        distances = _buckets(starts[:, 1] - starts[:, 0])
        pairs = query.pairs[rows]

        def score(a: int, b: int) -> torch.Tensor:
            between = running.index_select(0, index(high[a:b]))
            return pair_head(
                as_head.index_select(0, index(pairs[a:b, 0])),
                as_tail.index_select(0, index(pairs[a:b, 1])),
                between - running.index_select(0, index(low[a:b])),
                index(distances[a:b]),
            ).float()

        bounds = range(0, len(rows), MAX_PAIRS)
        return rows, in_parts(run, score, [(i, min(i + MAX_PAIRS, len(rows))) for i in bounds])


def _of_entities(
    run: EncoderRun, query: PairQuery, states: torch.Tensor, fits: Array
) -> torch.Tensor:
    """(n_spans, H) -> (n_entities, H): the mean of an entity's mentions that fit."""
    entities = query.entities
    n = int(entities.max()) + 1
    if len(entities) == n and (entities == np.arange(n)).all():  # one mention each
        return states
    fitting = states.index_select(0, run.index(np.flatnonzero(fits)))
    sums = states.new_zeros((n, states.shape[1])).index_add(0, run.index(entities[fits]), fitting)
    counts = np.maximum(np.bincount(entities[fits], minlength=n), 1)
    return sums / run.index(counts).unsqueeze(-1)


def _both_fit(query: PairQuery, fits: Array) -> Array:
    """(n_pairs,) whether both entities of a pair have a mention that fits."""
    if not len(fits):
        return np.zeros(0, dtype=bool)
    has_fitting = np.bincount(query.entities[fits], minlength=query.entities.max() + 1) > 0
    return has_fitting[query.pairs].all(1)


def nearest_mentions(query: PairQuery, placed: PlacedSpans) -> Array:
    """(n_pairs, 2) the mentions of head and tail with the shortest range that contains both.

    If these do not fit a sequence, no others do (apart from the labels of typed markers).
    """
    entities, pairs = query.entities, query.pairs
    mentions = np.argsort(entities, kind="stable")
    first = np.searchsorted(entities[mentions], np.arange(int(entities.max(initial=-1)) + 2))
    if len(mentions) == len(first) - 1:
        return mentions[pairs]
    starts, ends = placed.starts, placed.ends
    last = int(ends.max(initial=0))
    # A mention without pieces is used only if there is no other.
    firsts, stops = (np.where(ends > starts, x, y) for x, y in ((starts, -last), (ends, last)))
    nearest = np.empty_like(pairs)
    for i, (head, tail) in enumerate(pairs.tolist()):
        heads, tails = (mentions[first[x] : first[x + 1]] for x in (head, tail))
        # (n_heads, n_tails) the length of the range that contains both mentions.
        lengths = np.maximum.outer(stops[heads], stops[tails])
        lengths -= np.minimum.outer(firsts[heads], firsts[tails])
        a, b = np.unravel_index(int(lengths.argmin()), lengths.shape)
        nearest[i] = heads[a], tails[b]
    return nearest


def _buckets(gaps: Array) -> Array:
    """(n,) buckets of signed distances in pieces from head to tail. Bucket 0 is the distance 0, 1
    to 9
    are positive distances and 11 to 19 negative ones: below 8, below 16, below 32, and so on."""
    size = np.minimum(np.log2(np.maximum(np.abs(gaps) / _NEAR, 1)), 8).astype(np.int64)
    return np.where(gaps == 0, 0, np.where(gaps > 0, 1 + size, 11 + size))


@registry.architectures("spacy-luke.PairScorer.v1")
def PairScorer_v1(
    encoder: Model,
    *,
    mode: Literal["markers", "probe"] = "probe",
    view: Literal["document", "sentence"] = "document",
    typed_markers: bool = False,
    max_mention_pieces: int | None = None,
    learn_rate_factor: float = 1.0,
) -> Model[PairQuery, ClassScores]:
    """Score pairs of entities.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one.
    mode: ``markers``: one sequence per pair, head and tail between marker pieces, as published;
        ``probe``: all entities of a window together.
    view: (``markers`` only) the text of a sequence: as much of the ``document`` as fits the window,
        or only the ``sentence`` (or sentences) of the pair.
    typed_markers: (``markers`` only) the markers contain the entity labels.
    max_mention_pieces: (``markers`` only) the number of a span's first pieces, markers included,
        that its positions use; 30 in published models, by default all.
    learn_rate_factor: learning rate of the head, relative to the config's.
    """
    scorer = PairScorer(mode, view, typed_markers, max_mention_pieces)
    return task_layer(encoder, scorer, LearnRates(learn_rate_factor))
