"""Entity states of given spans, in one of two modes.

``probe``: all spans of a window are [MASK] entities of one sequence; they do not see each other.
``markers``: one sequence per row of a query, with marker pieces around the row's spans; these see
each other, as published for relations and entity types. The second span is [MASK2], if the
vocabulary has it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model

from ..inputs.marked import Marked, Markers, View, context_windows, marker_ids, pack_marked
from ..inputs.placed_spans import PlacedSpans, bounded
from ..model.network import AttentionPattern
from ..model.packing import Array, Entities, LukeInputs
from ..report import LOGGER
from ..validation import Count, check_settings
from . import encoder_run
from .encoder_run import EncoderRun, in_parts, place
from .task_layer import Query, Scorer

Mode = Literal["probe", "markers"]


@dataclass
class GivenSpans:
    """Spans of a batch of documents. table: (n, 2) token ranges; of_doc: (n,) the document of each,
    ascending; labels: n strings."""

    table: Array
    of_doc: Array
    labels: Sequence[str]

    def __len__(self) -> int:
        return len(self.table)

    def place(self, encoder: Model, docs: Sequence[Doc]) -> PlacedSpans:
        return place(encoder, docs, self.table, self.of_doc)

    def label_ids(self, run: EncoderRun) -> Array:
        """(n,) the encoder's ids of the spans' coarse labels; 0 for labels without embedding."""
        names = run.encoder.network.config.entity_labels
        ids = {label: i + 1 for i, label in enumerate(names)}
        return np.asarray([ids.get(label, 0) for label in self.labels], dtype=np.int64)


class ClassScores(NamedTuple):
    """rows: (n_scored,) the rows that were scored. logits: (n_scored, C), or their gradients."""

    rows: Array
    logits: Any


@dataclass
class GivenScorer(Scorer[Query, ClassScores]):
    """The base of scorers of given spans. The architectures document the settings."""

    mode: Mode = "probe"
    view: View = "document"
    typed_markers: bool = False
    max_mention_pieces: Count | None = None

    name: ClassVar[str] = ""
    fixed: ClassVar[tuple[str, ...]] = ("mode",)

    def __post_init__(self) -> None:
        check_settings(self.name, GivenScorer, vars(self))
        unused = (self.view != "document", self.typed_markers, self.max_mention_pieces is not None)
        if self.mode == "probe" and any(unused):
            LOGGER.warning(
                "%s: view, typed_markers and max_mention_pieces are settings of mode 'markers'; "
                "they have no effect, because mode is 'probe'.",
                self.name,
            )

    def marked(self, encoder: Model, spans: GivenSpans, placed: PlacedSpans) -> "MarkedSpans":
        return MarkedSpans(encoder_run.window(encoder), spans, placed, self.typed_markers)


class SpanStates(NamedTuple):
    """entities: (n_spans, H) of spans, zeros for a span that was not encoded. pieces: (n_pieces, H)
    of words. Each is from the window that the span or piece belongs to. sequences: (n_spans,) the
    number of the sequence that has each span as an entity input, or -1."""

    entities: torch.Tensor
    pieces: torch.Tensor
    sequences: Array


@dataclass(frozen=True)
class EntityInputs:
    """How spans become entity inputs.

    attention: in ``probe`` they do not see each other, in ``full`` (as pretrained) they do.
    max_entities: (``full`` only) most of a sequence; windows with more are repeated.
    max_mention_pieces: the number of a span's first pieces that its positions use; None: all.
    """

    attention: AttentionPattern = "probe"
    max_entities: int = 0
    max_mention_pieces: int | None = None


def span_states(
    run: EncoderRun,
    spans: GivenSpans,
    placed: PlacedSpans,
    inputs: EntityInputs = EntityInputs(),
    ids: Array | None = None,
    only: Array | None = None,
) -> SpanStates:
    """States of all spans and pieces.

    ids: (n_spans,) the entity whose row is the input of each span; by default [MASK].
    only: rows of spans that fit; if given, only windows with these are encoded, and pieces of
        other windows are left out.
    """
    label_ids = spans.label_ids(run)
    if ids is None:
        ids = np.full(len(spans), run.encoder.mask_id, dtype=np.int64)
    if only is not None:
        encoded = np.isin(placed.owner, placed.owner[only])
        placed = replace(placed, owner=np.where(encoded, placed.owner, -1))
    sequences = np.full(len(spans), -1, dtype=np.int64)
    entities = run.zeros(len(spans), run.encoder.hidden_size)
    rows, parts, words = [], [], [entities[:0]]
    limit = inputs.max_entities if inputs.attention == "full" else 0
    n_sequences = 0
    for batch in placed.batches(run.max_rows, limit, all_windows=only is None):
        own = batch.rows
        given = batch.entities(ids[own], label_ids[own], inputs.max_mention_pieces or 0)
        states = run.encode(LukeInputs(batch, given), inputs.attention)
        sequences[own] = n_sequences + batch.sequences
        n_sequences += batch.n_sequences
        rows.append(own)
        parts.append(states.entities)
        words.append(states.words.index_select(0, run.index(placed.own_rows(batch))))
    if parts:
        entities = entities.index_copy(0, run.index(np.concatenate(rows)), torch.cat(parts))
    return SpanStates(entities, torch.cat(words), sequences)


class MarkedSpans:
    """Placed spans that are scored between marker pieces.

    Rows are (n, m) indices of spans: the m spans of a row are in one sequence. size: pieces per
    sequence, without the special pieces. typed: whether markers contain the spans' labels.
    """

    def __init__(self, size: int, spans: GivenSpans, placed: PlacedSpans, typed: bool):
        self.size, self.spans, self.placed = size, spans, placed
        labels = sorted(set(spans.labels)) if typed else []
        numbers = {label: i + 1 for i, label in enumerate(labels)}
        self.kinds = np.asarray([numbers.get(x, 0) for x in spans.labels], dtype=np.int64)
        self.markers = self._markers(labels)

    def _markers(self, labels: Sequence[str]) -> Markers:
        """The markers of each kind of span. Kind 0 has no label."""
        tokenizer = self.placed.tokenizer
        openings = [np.zeros(0, dtype=np.int64)]
        for label in labels:
            words = label.replace("_", " ").replace("-", " ").lower().split()
            parts = tokenizer.encode_words([f" {word}" for word in ("*", *words, "*")])
            openings.append(np.concatenate(parts))
        return Markers(marker_ids(tokenizer), openings)

    def fits(self, rows: Array) -> Array:
        """(n,) whether the spans of each row, with their markers, fit a sequence."""
        starts, ends = self.placed.starts[rows], self.placed.ends[rows]
        return (ends > starts).all(1) & (ends.max(1) - starts.min(1) <= self._room(rows))

    def _room(self, rows: Array) -> Array:
        """(n,) the number of pieces of text that the sequence of each row has room for."""
        lengths = self.markers.opening_lengths(self.kinds[rows])
        return self.size - lengths.sum(1) - rows.shape[1]

    def classify(
        self,
        run: EncoderRun,
        rows: Array,
        classify: Callable[[torch.Tensor], torch.Tensor],
        view: View,
        max_mention_pieces: int | None,
    ) -> torch.Tensor:
        """Classify rows that fit. Returns (n, C).

        classify: (k, m, H) entity states -> (k, C). max_mention_pieces: the number of a span's
        first pieces, markers included, that its positions use. See also :func:`.in_parts`.
        """
        pieces, docs, tokenizer = self.placed.pieces, self.placed.docs, self.placed.tokenizer
        starts, ends, kinds = self.placed.starts[rows], self.placed.ends[rows], self.kinds[rows]
        of_doc, room = self.placed.of_doc[rows[:, 0]], self._room(rows)
        low, high = context_windows(docs, pieces, of_doc, starts.min(1), ends.max(1), room, view)
        label_ids = self.spans.label_ids(run)[rows]
        costs = high - low + 2 + self.markers.opening_lengths(kinds).sum(1) + 2 * rows.shape[1]
        parts = list(bounded(costs, encoder_run.MAX_ROWS))

        def score(a: int, b: int) -> torch.Tensor:
            marked = pack_marked(
                pieces,
                tokenizer,
                starts[a:b],
                ends[a:b],
                low[a:b],
                high[a:b],
                self.markers,
                kinds[a:b],
            )
            if max_mention_pieces is not None:
                marked.ends = np.minimum(marked.ends, marked.starts + max_mention_pieces)
            return classify(self.states(run, marked, label_ids[a:b])).float()

        return in_parts(run, score, parts)

    def states(self, run: EncoderRun, marked: Marked, label_ids: Array) -> torch.Tensor:
        """Entity states (n, m, H): of a sequence's spans the first is [MASK], the second
        [MASK2]."""
        n, m = marked.starts.shape
        vocab = run.encoder.entities
        second = vocab.mask_id if vocab.mask2_id is None else vocab.mask2_id
        entities = Entities(
            np.tile(np.asarray([vocab.mask_id, second])[:m], n),
            marked.starts.ravel(),
            marked.ends.ravel(),
            np.arange(n + 1, dtype=np.int64) * m,
            label_ids.ravel(),
        )
        return run.encode(LukeInputs(marked.words, entities), "full").entities.reshape(n, m, -1)
