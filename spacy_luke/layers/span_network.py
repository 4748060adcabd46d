"""The scorer of candidate spans: the computation of ``luke_ner``.

In the modes ``full`` and ``probe`` every candidate span is an entity input [MASK], with the
published attention or with probe attention. In ``two-stage`` a fast filter on word states scores
all candidates, and only the best k become entity inputs, with probe attention.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Ragged
from torch import nn

from ..checkpoint.classes import ENTITY_SPANS
from ..inputs.alignment import ranges
from ..inputs.placed_spans import Batch, PlacedSpans
from ..inputs.windows import Layout
from ..model.heads import LinearHead, NamePrior, SpanFilter, apart
from ..model.packing import Array, Entities, LukeInputs
from ..ties import TOLERANCE, levels
from ..validation import Count, Positive, check_numbers, check_settings
from .arrays import to_numpy
from .encoder_module import Encoder
from .encoder_run import EncoderRun, place
from .known_spans import RELATIONS, KnownFeatures
from .task_head import Head, HeadKind
from .task_layer import Scorer, head_of

Mode = Literal["two-stage", "probe", "full"]
NIL = "NIL"
"""The published name of the class "no entity". Here it is the last class, as in ``spancat``."""
_MAX_WIDTH = 32


class SpanQuery(NamedTuple):
    """Documents and their candidate spans, token ranges (n, 2). keep: (n,) candidates that pass the
    filter whatever their score (gold spans in training). known: what is known of the candidates,
    of which known spans are asked about beside those that pass; None if nothing is. suggested:
    (n,) candidates that would be there without the known spans; None if all would."""

    docs: Sequence[Doc]
    spans: Ragged
    keep: Array | None = None
    known: KnownFeatures | None = None
    suggested: Array | None = None

    @property
    def table(self) -> Array:
        """(n, 2) start and end of each candidate, tokens counted in its document."""
        data = to_numpy(self.spans.dataXd)
        return data.reshape(-1, 2).astype(np.int64)

    @property
    def of_doc(self) -> Array:
        """(n,) the document of each candidate."""
        return np.repeat(np.arange(len(self.docs)), to_numpy(self.spans.lengths))


class SpanScores(NamedTuple):
    """Scores, or their gradients.

    rows: (n_rows,) the candidates that became entity inputs. In training, those of which a list of
        names says something are in it twice, or only as with the list if they would not be asked
        about without it. logits: (n_rows, n_classes).
    filtered: (n_filtered,) the candidates that the filter scored. filter_logits: (n_filtered,).
        Both are empty without a filter.
    """

    rows: Array
    logits: Any
    filtered: Array
    filter_logits: Any


def _parts(
    hidden: int,
    n_classes: int,
    filter_size: int,
    known_labels: Sequence[str] = (),
    label_weight: float | None = None,
) -> Mapping[str, nn.Module]:
    """The classifier; in two-stage mode, the filter (filter_size 0: none); and what the labels of
    known spans say, if there are any."""
    n_states = (SPAN_HEAD if label_weight is None else APART_HEAD).width
    parts: dict[str, nn.Module] = {"head": LinearHead(hidden, n_states, n_classes)}
    if filter_size:
        parts["filter"] = SpanFilter(hidden, filter_size, _MAX_WIDTH)
    if known_labels:
        parts["known"] = NamePrior(len(RELATIONS) * len(known_labels), n_classes)
    return parts


SPAN_HEAD = HeadKind(_parts, ENTITY_SPANS.n_states, ENTITY_SPANS.name, NIL)
APART_HEAD = HeadKind(_parts, ENTITY_SPANS.n_states + 1, ENTITY_SPANS.name, NIL)
"""Reads the mean of a candidate's pieces, too; no published classifier does."""


@dataclass
class SpanScorer(Scorer[SpanQuery, SpanScores]):
    """The settings of ``spacy-luke.SpanScorer.v1``; see there."""

    node: ClassVar[str] = "luke-span-network"
    fixed: ClassVar[tuple[str, ...]] = ("mode", "filter_size", "label_weight")

    mode: Mode = "two-stage"
    candidates_per_word: Positive = 1.0
    filter_threshold: Annotated[float, Field(ge=0, lt=1)] = 0.01
    layout: Layout | None = None
    max_pieces: Count = 16
    max_entities: Count = 128
    filter_size: Count = 128
    predict_layout: Layout | None = None
    train_candidates_per_word: Positive | None = None
    label_weight: Positive | None = None

    @property
    def kind(self) -> HeadKind:
        return SPAN_HEAD if self.label_weight is None else APART_HEAD

    def __post_init__(self) -> None:
        if self.layout is None:
            self.layout = "context" if self.mode == "full" else "document"
        check_settings("SpanScorer", SpanScorer, vars(self))

    def head_config(self, encoder: Encoder) -> dict[str, Any]:
        # The head has it, not this setting alone: in pipelines of earlier revisions spaCy sets the
        # factory's default, and their heads know of none.
        more = {} if self.label_weight is None else {"label_weight": self.label_weight}
        return {"filter_size": self.filter_size if self.mode == "two-stage" else 0, **more}

    def place(self, encoder: Model, query: SpanQuery, is_train: bool) -> PlacedSpans:
        own = None if is_train else self.predict_layout
        layout = own or self.layout or "document"
        return place(encoder, query.docs, query.table, query.of_doc, layout, self.max_pieces)

    def fits(self, encoder: Model, query: SpanQuery) -> Array:
        return self.place(encoder, query, is_train=False).fits

    def score(self, run: EncoderRun, head: Head, query: SpanQuery) -> SpanScores:
        placed = self.place(run.node, query, run.is_train)
        known = _KnownInput(run, head, query)
        no_scores = SpanScores(_NO_ROWS, run.zeros(0, head.n_classes), _NO_ROWS, run.zeros(0))
        parts = [no_scores]
        if self.mode == "two-stage":
            # Windows without candidates are encoded too: components that share word passes need
            # them.
            limits = self._limits(placed.n_words(), run.is_train)
            for batch in placed.batches(run.max_rows):
                if len(batch.rows):
                    parts.append(self._two_stage(run, head, placed, batch, limits, query, known))
        else:
            for batch in placed.batches(run.max_rows, self.max_entities, all_windows=False):
                entities, mean = known.entities(batch)
                states = run.encode(LukeInputs(batch, entities), self.mode)
                logits = _classify(run, head, batch, states.words, mean(states.entities))
                rows, logits = known.added(batch.rows, logits, _suggested(query, batch.rows))
                parts.append(no_scores._replace(rows=rows, logits=logits))
        return SpanScores(
            np.concatenate([part.rows for part in parts]),
            torch.cat([part.logits for part in parts]),
            np.concatenate([part.filtered for part in parts]),
            torch.cat([part.filter_logits for part in parts]),
        )

    def _two_stage(
        self,
        run: EncoderRun,
        head: Head,
        placed: PlacedSpans,
        batch: Batch,
        limits: "_Limits",
        query: SpanQuery,
        known: "_KnownInput",
    ) -> SpanScores:
        """Filter the candidates of a batch and score the best."""
        most, always = (x[batch.windows] for x in limits)
        word_pass = run.encode_words(batch, most)
        suggested = np.flatnonzero(_suggested(query, batch.rows))
        candidates = batch.take(suggested)
        lengths = placed.spans[candidates.rows] @ [-1, 1]
        index = run.index
        filter_logits = head.part("filter", SpanFilter)(
            word_pass.states, index(candidates.first), index(candidates.last), index(lengths)
        ).float()
        filtered = filter_logits.detach().cpu().numpy()
        if not run.is_train:  # an update raises for its loss
            check_numbers(filtered)
        best = best_per_sequence(
            filtered,
            candidates.sequences,
            most,
            None if query.keep is None else query.keep[candidates.rows],
            self._least_logit,
            always,
        )
        asked = np.union1d(suggested[best], known.asked(batch.rows))
        kept = batch.take(asked)
        entities, mean = known.entities(kept)
        states = mean(run.encode_entities(word_pass, entities))
        logits = _classify(run, head, kept, word_pass.states, states)
        rows, logits = known.added(kept.rows, logits, np.isin(asked, suggested[best]))
        return SpanScores(rows, logits, candidates.rows, filter_logits)

    def passing(self, placed: PlacedSpans, query: SpanQuery, scores: SpanScores) -> SpanScores:
        """The scores that a prediction with these settings would have, of those of a filter that
        lets more through: the score of an entity input does not depend on the others.

        placed: the query's spans, of :meth:`place`.
        """
        best = best_per_sequence(
            to_numpy(scores.filter_logits),
            placed.owner[scores.filtered],
            self._limits(placed.n_words(), is_train=False).most,
            least=self._least_logit,
        )
        asked = np.zeros(len(placed.owner), dtype=bool)
        asked[scores.filtered[best]] = True
        if query.known is not None:
            asked |= query.known.asked
        kept = asked[scores.rows]
        return scores._replace(rows=scores.rows[kept], logits=scores.logits[kept])

    def _limits(self, n_words: Array, is_train: bool) -> "_Limits":
        """n_words: (n_windows,). In training the best are scored whatever the filter says: the head
        learns "no entity" from candidates that the filter drops, too."""
        most = np.ceil(n_words * self.candidates_per_word).astype(np.int64)
        if not is_train:
            return _Limits(most, np.zeros_like(most))
        per_word = self.train_candidates_per_word or self.candidates_per_word
        always = np.ceil(n_words * per_word).astype(np.int64)
        # Without a threshold no candidate is likely, and nothing but the number counts.
        return _Limits(np.maximum(most, always) if self.filter_threshold else always, always)

    @property
    def _least_logit(self) -> float:
        """The lowest filter logit of a candidate that is scored, but for those that always are."""
        least = self.filter_threshold
        return float(np.log(least) - np.log1p(-least)) if least else -np.inf


class _Limits(NamedTuple):
    """Numbers of a window's best candidates, each (n_windows,). most: that may become entity
    inputs. always: that do, however unlikely."""

    most: Array
    always: Array


class _KnownInput:
    """What is known of candidates, in the calls of the network: the entity's own row instead of
    [MASK] where the encoder has one, and logits that are added."""

    def __init__(self, run: EncoderRun, head: Head, query: SpanQuery):
        known = query.known
        self.run, self.known = run, known
        has_prior = known is not None and len(known.features) > 0
        self.prior = head.part("known", NamePrior) if has_prior else None
        self.offsets = self.ids = None
        if known is not None and known.titles:
            entities = run.encoder.entities
            languages = [doc.vocab.lang or None for doc in query.docs]
            of_doc = query.of_doc.tolist()
            self.offsets, self.ids = known.rows_of(
                lambda title, i: entities.find(title, languages[of_doc[i]]), run.encoder.mask_id
            )

    def asked(self, rows: Array) -> Array:
        """The numbers of the rows whose candidates are known spans; in training, of which something
        can be learned."""
        if self.known is None:
            return _NO_ROWS
        asked = self.known.asked[rows]
        if self.run.is_train:
            asked = asked & (self.known.counts[rows] > 0)
        return np.flatnonzero(asked)

    def entities(self, batch: Batch) -> tuple[Entities, Callable[[torch.Tensor], torch.Tensor]]:
        """The entity inputs of candidates, several for one with several rows; and a function that
        gives each candidate the mean of its states."""
        if self.offsets is None or self.ids is None:
            return batch.entities(self.run.encoder.mask_id), lambda states: states
        low, counts = self.offsets[batch.rows], np.diff(self.offsets)[batch.rows]
        owner = np.repeat(np.arange(len(counts)), counts)
        entities = batch.take(owner).entities(self.ids[ranges(low, low + counts)])
        if (counts == 1).all():
            return entities, lambda states: states
        index, total = self.run.index(owner), self.run.index(counts)

        def mean(states: torch.Tensor) -> torch.Tensor:
            sums = states.new_zeros((len(counts), states.shape[1])).index_add(0, index, states)
            return sums / total[:, None]

        return entities, mean

    def added(
        self, rows: Array, logits: torch.Tensor, of_text: Array
    ) -> tuple[Array, torch.Tensor]:
        """Rows, and logits (n, C) to which what is known is added. Those of candidates of which
        nothing is known are equal.

        of_text: (n,) candidates that would be scored without the list, too. In training they come
        as without the list, from which the text learns; and all of which something is known come
        with it, from which the list alone learns what it adds to that text. If the text were told
        of names while it learns, or had to learn from others than without it, it would learn less
        about them, and do worse on all others.
        """
        index, n = self.run.index, len(rows)
        if self.known is None:
            return rows, logits
        if not self.run.is_train:
            return rows, logits if self.prior is None else logits + self._said(np.arange(n), rows)
        text = np.flatnonzero(of_text)
        all_rows, all_logits = [rows[text]], [logits[index(text)]]
        if self.prior is not None:
            told = np.flatnonzero(self.known.counts[rows])
            all_rows.append(rows[told])
            all_logits.append(logits.detach()[index(told)] + self._said(told, rows))
        return np.concatenate(all_rows), torch.cat(all_logits)

    def _said(self, which: Array, rows: Array) -> torch.Tensor:
        """(n, C) what is known of some of the rows."""
        assert self.prior is not None and self.known is not None
        features, weights, offsets = self.known.of(rows[which])
        index = self.run.index
        return self.prior(index(features), self.run.values(weights), index(offsets))


_NO_ROWS: Array = np.zeros(0, dtype=np.int64)


def _suggested(query: SpanQuery, rows: Array) -> Array:
    """(n,) whether candidates would be there without the known spans."""
    return np.ones(len(rows), bool) if query.suggested is None else query.suggested[rows]


def _classify(
    run: EncoderRun, head: Head, batch: Batch, words: torch.Tensor, entities: torch.Tensor
) -> torch.Tensor:
    """words: (n_pieces, H), entities: (n_rows, H) -> (n_rows, n_classes)."""
    first, last = run.index(batch.first), run.index(batch.last)
    logits = head.part("head", LinearHead).on_pieces(words, first, last, entities).float()
    weight = head.config.get("label_weight")
    return logits if weight is None else apart(logits, weight)


def set_prior(model: Model, logits: Array) -> None:
    """Set what known spans add to the logits. logits: (n_features, n_classes)."""
    weight = head_of(model).part("known", NamePrior).classifier.weight
    with torch.no_grad():
        weight.copy_(torch.from_numpy(logits.T.copy()))


def best_per_sequence(
    scores: Array,
    sequences: Array,
    limits: Array,
    forced: Array | None = None,
    least: float = -np.inf,
    always: Array | None = None,
) -> Array:
    """Sorted indices of the ``limits[s]`` best scores of each sequence s that are at least
    ``least``, or among its ``always[s]`` best; of equal scores the first.

    forced: (n,) candidates that are always kept; they count towards the limit, and may exceed it.

    scores [3, 1, 2, 5], sequences [0, 0, 0, 1], limits [2, 1] -> [0, 2, 3]; with least 4 -> [3],
    and with always [1, 0] as well -> [0, 3].
    """
    ranking = scores if forced is None else np.where(forced, np.inf, scores)
    order = np.lexsort((-levels(ranking, sequences), sequences))
    counts = np.bincount(sequences, minlength=len(limits))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    good = ranking[order] >= least - TOLERANCE
    if always is not None:
        good |= rank < always[sequences[order]]
    kept = (rank < limits[sequences[order]]) & good
    if forced is not None:
        kept |= forced[order]
    return np.sort(order[kept])
