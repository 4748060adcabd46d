"""Spans scored as entities: the network of ``luke_ner``.

Three modes. ``full`` and ``probe`` make every candidate span a [MASK] entity token, with the
published attention or with probe attention. ``two-stage`` first scores all candidates with a
light filter on word states, keeps the best k, and only those become (probe) entity tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Ragged
from thinc.util import torch2xp

from ..errors import ConfigError
from ..inputs.alignment import Pieces
from ..inputs.batch import Batch, pack, span_pieces
from ..inputs.windows import Layout, Windows
from ..model.packing import Array, LukeInputs
from .head_module import head_of, task_node
from .session import Session, packed_entities
from .shim import LearnRates
from .span_module import SpanModule

Mode = Literal["two-stage", "probe", "full"]
NETWORK = "luke-span-network"


class SpanQuery(NamedTuple):
    """docs and, for each, token ranges (n, 2). keep: (n,) candidates that must pass the
    filter, whatever it thinks of them (gold spans while training)."""

    docs: Sequence[Doc]
    spans: Ragged
    keep: Array | None = None


class SpanScores(NamedTuple):
    """Scores, or their gradients.

    asked: (n_asked,) candidates that became entity tokens, and logits: (n_asked, n_classes).
    filtered: (n_filtered,) candidates the filter scored, and filter_logits: (n_filtered,);
    both empty without a filter.
    """

    asked: Array
    logits: Any
    filtered: Array
    filter_logits: Any


@dataclass
class SpanSettings:
    """The settings of ``spacy-luke.SpanScorer.v1``; see there."""

    mode: Mode = "two-stage"
    candidates_per_word: float = 1.0
    filter_threshold: float = 0.01
    layout: Layout | None = None
    max_pieces: int = 16
    max_entities: int = 128
    filter_size: int = 128
    rates: LearnRates | None = None

    @property
    def head_type(self) -> type[SpanModule]:
        return SpanModule

    def head_config(self, network: Model) -> dict[str, Any]:
        """A filter of size 0 is none."""
        return {"filter_size": self.filter_size if self.mode == "two-stage" else 0}

    def __post_init__(self) -> None:
        if self.layout is None:
            self.layout = "context" if self.mode == "full" else "document"
        for name, allowed in (
            ("mode", ("two-stage", "probe", "full")),
            ("layout", ("document", "sentence", "context")),
        ):
            if getattr(self, name) not in allowed:
                raise ConfigError(
                    f"SpanScorer.{name} is {getattr(self, name)!r}; use one of {allowed}."
                )
        if not self.candidates_per_word > 0:
            raise ConfigError(
                f"SpanScorer.candidates_per_word is {self.candidates_per_word}; it must be above 0."
            )
        if not 0.0 <= self.filter_threshold < 1.0:
            raise ConfigError(
                f"SpanScorer.filter_threshold is {self.filter_threshold}; it must be at least 0 "
                "and below 1."
            )
        for name in ("max_pieces", "max_entities", "filter_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"SpanScorer.{name} must be at least 1.")


def span_network(encoder: Model, settings: SpanSettings) -> Model[SpanQuery, SpanScores]:
    """The layer: one encoder (or listener) node, and a shim with the span module."""
    return task_node(NETWORK, encoder, settings, _forward, settings.rates or LearnRates())


def _forward(
    model: Model, query: SpanQuery, is_train: bool
) -> tuple[SpanScores, Callable[[SpanScores], list]]:
    settings: SpanSettings = model.attrs["settings"]
    module: SpanModule = head_of(model)
    module.train(is_train)
    module.set_dropout(float(model.attrs["dropout_rate"]))
    session = Session(model.layers[0], query.docs, is_train)
    asking = _Asking(session, settings, module, query)
    with session.task():
        parts = [asking.group(*bounds) for bounds in asking.groups()]
    asked = np.concatenate([part.asked for part in parts])
    filtered = np.concatenate([part.filtered for part in parts])
    logits = torch.cat([part.logits for part in parts])
    filter_logits = torch.cat([part.filter_logits for part in parts])
    scores = SpanScores(
        asked,
        torch2xp(logits.detach()),
        filtered,
        torch2xp(filter_logits.detach()),
    )

    def backprop(d_scores: SpanScores) -> list:
        session.backprop((logits, filter_logits), (d_scores.logits, d_scores.filter_logits))
        return []

    return scores, backprop


def askable(network: Model, query: SpanQuery) -> Array:
    """(n_candidates,) whether its pieces, the limits and the window let a candidate be asked."""
    settings: SpanSettings = network.attrs["settings"]
    session = Session(network.layers[0], query.docs, is_train=False)
    return _Asking(session, settings, head_of(network), query).owner >= 0


class _Part(NamedTuple):
    asked: Array
    logits: torch.Tensor
    filtered: Array
    filter_logits: torch.Tensor


class _Asking:
    """One forward pass: candidates to piece ranges, windows, and scores group by group."""

    def __init__(
        self, session: Session, settings: SpanSettings, module: SpanModule, query: SpanQuery
    ):
        self.session, self.settings, self.module = session, settings, module
        spans = _spans(query.spans)
        docs = np.repeat(np.arange(len(query.docs)), _numpy(query.spans.lengths))
        self.widths = spans[:, 1] - spans[:, 0]
        self.keep = query.keep
        cuts = None
        if session.settings.tokenization == "mentions":
            valid = self.widths > 0
            cuts = [spans[(docs == i) & valid] for i in range(len(query.docs))]
        self.pieces: Pieces = session.align(query.docs, cuts)
        self.starts, self.ends = span_pieces(self.pieces, spans, docs)
        fits = (self.ends > self.starts) & (self.ends - self.starts <= settings.max_pieces)
        # With a token without pieces (white space) at an end it would be the same question as the
        # candidate without that token.
        has_pieces = self.pieces.token_ends > self.pieces.token_starts
        tokens = self.pieces.token_offsets[docs[fits]][:, None] + spans[fits] - [0, 1]
        fits[fits] = has_pieces[tokens].all(axis=1)
        self.windows: Windows = session.cut(
            query.docs,
            self.pieces,
            settings.layout or "document",
            self.starts[fits],
            self.ends[fits],
        )
        self.owner = np.where(fits, self.windows.of_spans(self.starts, self.ends), -1)
        self.max_entities = settings.max_entities if settings.mode != "two-stage" else 0

    def groups(self) -> Sequence[tuple[int, int]]:
        return list(self.session.groups(self.windows, self.owner, self.max_entities))

    def group(self, low: int, high: int) -> _Part:
        batch = pack(
            self.pieces,
            self.windows,
            self.owner,
            self.starts,
            self.ends,
            self.session.module.pieces,
            self.max_entities,
            all_windows=self.settings.mode == "two-stage",  # as components that share a word pass
            within=(low, high),
        )
        if not len(batch.questions):
            return self._nothing()
        if self.settings.mode == "two-stage":
            return self._two_stage(batch)
        inputs = LukeInputs(batch.words, packed_entities(batch, self.session))
        states = self.session.encode(inputs, self.settings.mode)
        logits = self._classify(batch, states.words, states.entities)
        return _Part(batch.questions.rows, logits, *self._nothing()[2:])

    def _two_stage(self, batch: Batch) -> _Part:
        questions, session = batch.questions, self.session
        n_words = self._words_of_sequences(batch)
        word_pass = session.encode_words(batch.words, n_words)
        assert self.module.filter is not None
        filter_logits = self.module.filter(
            word_pass.states,
            session.index(questions.first),
            session.index(questions.last),
            session.index(self.widths[questions.rows]),
        ).float()
        forced = None if self.keep is None else self.keep[questions.rows]
        best = best_per_sequence(
            filter_logits.detach().cpu().numpy(),
            questions.sequences,
            n_words,
            forced,
            self._least_logit,
        )
        kept = Batch(batch.words, questions.take(best), batch.windows, batch.first_of_window)
        entities = session.encode_entities(word_pass, packed_entities(kept, session))
        logits = self._classify(kept, word_pass.states, entities)
        return _Part(kept.questions.rows, logits, questions.rows, filter_logits)

    @property
    def _least_logit(self) -> float:
        """What a kept candidate's filter logit must reach. Training asks about k in any case:
        the head learns "no entity" from what a filter of the first steps would drop."""
        least = self.settings.filter_threshold
        if self.session.is_train or not least:
            return -np.inf
        return float(np.log(least) - np.log1p(-least))

    def _classify(self, batch: Batch, words: torch.Tensor, entities: torch.Tensor) -> torch.Tensor:
        first, last = batch.questions.first, batch.questions.last
        index = self.session.index
        return self.module.head(words, entities, index(first), index(last)).float()

    def _words_of_sequences(self, batch: Batch) -> Array:
        """(n_sequences,) how many candidates to keep: k times the words a window answers for."""
        windows = self.windows
        starts = np.unique(
            self.pieces.token_starts[self.pieces.token_ends > self.pieces.token_starts]
        )
        shown = batch.windows
        counts = np.searchsorted(starts, windows.own_ends[shown]) - np.searchsorted(
            starts, windows.own_starts[shown]
        )
        return np.ceil(counts * self.settings.candidates_per_word).astype(np.int64)

    def _nothing(self) -> _Part:
        rows = np.zeros(0, dtype=np.int64)
        empty = torch.zeros(0, device=self.session.device)
        return _Part(rows, empty.reshape(0, self.module.n_classes), rows, empty)


def best_per_sequence(
    scores: Array,
    sequences: Array,
    limits: Array,
    forced: Array | None = None,
    least: float = -np.inf,
) -> Array:
    """Sorted indices of the ``limits[s]`` best scores of each sequence s that are at least
    ``least``, ties by position.

    forced: (n,) candidates that are kept in any case, within the limit where it is large
        enough and beyond it where not.
    """
    ranking = scores if forced is None else np.where(forced, np.inf, scores)
    order = np.lexsort((-ranking, sequences))
    counts = np.bincount(sequences, minlength=len(limits))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = (rank < limits[sequences[order]]) & (ranking[order] >= least)
    if forced is not None:
        kept |= forced[order]
    return np.sort(order[kept])


def _spans(spans: Ragged) -> Array:
    data = _numpy(spans.dataXd)
    return data.reshape(-1, 2).astype(np.int64) if data.size else np.zeros((0, 2), dtype=np.int64)


def _numpy(array: Any) -> Array:
    return array.get() if hasattr(array, "get") else np.asarray(array)
