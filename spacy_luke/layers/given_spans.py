"""Entity states of spans that are given, in one of two modes.

``probe``: all spans of a window are [MASK] entities of one sequence that do not see each other.
``markers``: one sequence per row of a query, its spans between marker pieces and seeing each other,
as published for relations and entity types.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model
from torch.utils.checkpoint import checkpoint

from ..inputs.marked import Marked, Markers, View, context_windows, marker_ids, pack_marked
from ..inputs.placed_spans import PlacedSpans, bounded
from ..model.packing import Array, Entities, LukeInputs
from ..report import LOGGER
from ..validation import Count, check_settings
from . import encoder_run
from .encoder_run import EncoderRun, place
from .task_layer import Query, Scorer

Mode = Literal["probe", "markers"]


@dataclass
class GivenSpans:
    """Spans of a batch of documents. table: (n, 2) token ranges; of_doc: (n,) ascending;
    labels: n."""

    table: Array
    of_doc: Array
    labels: Sequence[str]

    def __len__(self) -> int:
        return len(self.table)

    def place(self, encoder: Model, docs: Sequence[Doc]) -> PlacedSpans:
        return place(encoder, docs, self.table, self.of_doc)

    def classes(self, run: EncoderRun) -> Array:
        """(n,) the spans' labels as the encoder numbers them; 0 for those it has no vector of."""
        known = run.encoder.network.config.entity_labels
        classes = {label: i + 1 for i, label in enumerate(known)}
        return np.asarray([classes.get(label, 0) for label in self.labels], dtype=np.int64)


class ClassScores(NamedTuple):
    """rows: (n_scored,) the rows of the query that were scored; logits: (n_scored, C), or their
    gradients."""

    rows: Array
    logits: Any


@dataclass
class GivenScorer(Scorer[Query, ClassScores]):
    """How the layer of given spans scores; its architecture says what each setting means."""

    mode: Mode = "probe"
    view: View = "document"
    typed_markers: bool = False
    max_mention_pieces: Count | None = None

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_settings(self.name, GivenScorer, vars(self))
        unused = (self.view != "document", self.typed_markers, self.max_mention_pieces is not None)
        if self.mode == "probe" and any(unused):
            LOGGER.warning(
                "%s: view, typed_markers and max_mention_pieces are settings of mode 'markers'; "
                "mode is 'probe', and they change nothing.",
                self.name,
            )

    def marked(self, encoder: Model, spans: GivenSpans, placed: PlacedSpans) -> "MarkedSpans":
        return MarkedSpans(encoder_run.window(encoder), spans, placed, self.typed_markers)


def probe_states(
    run: EncoderRun, spans: GivenSpans, placed: PlacedSpans
) -> tuple[torch.Tensor, torch.Tensor]:
    """States of all spans, each from the window that answers for it: (n_spans, H), with zeros for
    a span that does not fit; and of all words, (n_pieces, H)."""
    classes = spans.classes(run)
    entities = run.zeros(len(spans), run.encoder.hidden_size)
    rows, parts, words = [], [], [entities[:0]]
    for batch in placed.batches(run.max_rows):
        given = batch.entities(run.encoder.mask_id, classes[batch.rows])
        states = run.encode(LukeInputs(batch, given), "probe")
        rows.append(batch.rows)
        parts.append(states.entities)
        words.append(states.words.index_select(0, run.index(placed.own_rows(batch))))
    if parts:
        entities = entities.index_copy(0, run.index(np.concatenate(rows)), torch.cat(parts))
    return entities, torch.cat(words)


class MarkedSpans:
    """Placed spans that are scored between marker pieces.

    Rows are (n, m) indices of spans: the m spans of each row stand in one sequence. size: pieces
    of a sequence, without the special pieces. typed: markers also name the spans' labels.
    """

    def __init__(self, size: int, spans: GivenSpans, placed: PlacedSpans, typed: bool):
        self.size, self.spans, self.placed = size, spans, placed
        labels = sorted(set(spans.labels)) if typed else []
        numbers = {label: i + 1 for i, label in enumerate(labels)}
        self.kinds = np.asarray([numbers.get(x, 0) for x in spans.labels], dtype=np.int64)
        self.markers = self._markers(labels)

    def _markers(self, labels: Sequence[str]) -> Markers:
        """Kind 0 stands without a label."""
        tokenizer = self.placed.tokenizer
        openings = [np.zeros(0, dtype=np.int64)]
        for label in labels:
            words = label.replace("_", " ").replace("-", " ").lower().split()
            parts = tokenizer.encode_words([f" {word}" for word in ("*", *words, "*")])
            openings.append(np.concatenate(parts))
        return Markers(marker_ids(tokenizer), openings)

    def fits(self, rows: Array) -> Array:
        """(n,) which rows a sequence can hold."""
        starts, ends = self.placed.starts[rows], self.placed.ends[rows]
        return (ends > starts).all(1) & (ends.max(1) - starts.min(1) <= self._room(rows))

    def _room(self, rows: Array) -> Array:
        """(n,) pieces of text that the sequence of each row holds beside its markers."""
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
        """Classify rows that fit.

        classify: (k, m, H) entity states -> (k, C). max_mention_pieces: positions of a span stop
        after so many pieces, its markers counted. Returns (n, C). A few sequences are in memory at
        a time: while training, those of earlier groups are computed again for the gradient.
        """
        pieces, docs, tokenizer = self.placed.pieces, self.placed.docs, self.placed.tokenizer
        starts, ends, kinds = self.placed.starts[rows], self.placed.ends[rows], self.kinds[rows]
        of_doc, room = self.placed.of_doc[rows[:, 0]], self._room(rows)
        low, high = context_windows(docs, pieces, of_doc, starts.min(1), ends.max(1), room, view)
        classes = self.spans.classes(run)[rows]
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
            return classify(self.states(run, marked, classes[a:b]))

        return in_parts(run, score, parts)

    def states(self, run: EncoderRun, marked: Marked, classes: Array) -> torch.Tensor:
        """Entity states (n, m, H): the first span of a sequence is [MASK], the second [MASK2].
        classes: (n, m)."""
        n, m = marked.starts.shape
        vocab = run.encoder.entities
        second = vocab.mask_id if vocab.mask2_id is None else vocab.mask2_id
        entities = Entities(
            np.tile(np.asarray([vocab.mask_id, second])[:m], n),
            marked.starts.ravel(),
            marked.ends.ravel(),
            np.arange(n + 1, dtype=np.int64) * m,
            classes.ravel(),
        )
        return run.encode(LukeInputs(marked.words, entities), "full").entities.reshape(n, m, -1)


def in_parts(
    run: EncoderRun,
    score: Callable[[int, int], torch.Tensor],
    parts: Sequence[tuple[int, int]],
) -> torch.Tensor:
    """The scores of rows [low, high), part by part. While training, what several parts compute is
    not kept, but computed again for the gradient."""
    # Of no use to the scores: it tells the checkpoint whose random state dropout draws from.
    device = run.zeros(0)

    def again(low: int, high: int, _: torch.Tensor) -> torch.Tensor:
        return score(low, high)

    if run.is_train and len(parts) > 1:
        runs = [partial(again, low, high) for low, high in parts]
        return torch.cat([checkpoint(run_part, device, use_reentrant=False) for run_part in runs])
    return torch.cat([score(low, high) for low, high in parts])
