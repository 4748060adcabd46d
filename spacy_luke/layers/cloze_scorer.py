"""``spacy-luke.ClozeScorer.v1``: scores the entities of a passage for the gap of a query.

As published (Yamada et al. 2020, section 4.4): query and passage are one sequence, the gap and each
mention of the passage are [MASK] entities, and a linear layer reads [gap; mention].
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from spacy.tokens import Doc, Span
from spacy.util import registry
from thinc.api import Model
from torch import nn

from ..checkpoint.classes import SPAN_QUESTIONS
from ..inputs.alignment import Pieces, span_table
from ..inputs.marked import marker_ids
from ..inputs.placed_spans import span_pieces
from ..inputs.question_windows import PlacedEntities, QuestionWindows, question_windows
from ..inputs.spliced import Spliced, insert_markers, keep_around, replace_ranges
from ..inputs.windows import Windows
from ..model.heads import LinearHead
from ..model.packing import Array, Entities, LukeInputs
from ..report import LOGGER
from ..validation import Count, check_settings
from ..vocab.pieces import PieceTokenizer
from . import encoder_run
from .encoder import module_of
from .encoder_run import EncoderRun, in_parts, pieces_of
from .given_spans import ClassScores, GivenSpans
from .listener import encoder_node
from .shim import LearnRates
from .task_head import Head, HeadKind
from .task_layer import Scorer, task_layer

HIGHLIGHT = "@highlight"
"""A token of ReCoRD's passages: a bullet point."""
PLACEHOLDER_PIECE, HIGHLIGHT_PIECE = "<placeholder>", "<highlight>"  # of published models

Mode = Literal["unmarked", "markers"]


@dataclass(frozen=True)
class ClozeQuery:
    """Queries about documents.

    queries: a document each, in which the gap is one token; gaps: (n_queries,) its number.
    of_query_doc: (n_queries,) the document of each query, ascending. candidates: of each query, in
    text order. spans: all candidates, query by query. of_query: (n_rows,) the query of each.
    """

    docs: Sequence[Doc]
    queries: Sequence[Doc]
    gaps: Array
    of_query_doc: Array
    candidates: Sequence[Sequence[Span]]
    spans: GivenSpans
    of_query: Array

    @property
    def of_doc(self) -> Array:
        """(n_rows,) the document of each candidate."""
        return self.spans.of_doc


class PlacedQuery(NamedTuple):
    """windows: those with candidates, of each query. gaps, mentions: entity inputs; row i of the
    mentions is row ``rows[i]`` of the query. fits: (n_rows,) whether a window contains the row."""

    windows: QuestionWindows
    gaps: PlacedEntities
    mentions: PlacedEntities
    rows: Array
    fits: Array


def _parts(hidden: int, n_classes: int) -> Mapping[str, nn.Module]:
    return {"head": LinearHead(hidden, 2, n_classes)}


CLOZE_HEAD = HeadKind(_parts, 2, SPAN_QUESTIONS.name)


@dataclass
class ClozeScorer(Scorer[ClozeQuery, ClassScores]):
    """The settings of ``spacy-luke.ClozeScorer.v1``; see there."""

    mode: Mode = "unmarked"
    stride: Count = 128
    max_query_pieces: Annotated[int, Field(ge=8)] = 90
    max_mention_pieces: Count = 30

    node: ClassVar[str] = "luke-cloze-scorer"
    fixed: ClassVar[tuple[str, ...]] = ("mode",)
    kind: ClassVar[HeadKind] = CLOZE_HEAD

    def __post_init__(self) -> None:
        check_settings("ClozeScorer", ClozeScorer, vars(self))

    def fits(self, encoder: Model, query: ClozeQuery) -> Array:
        return self.place(encoder, query).fits

    def place(self, encoder: Model, query: ClozeQuery) -> PlacedQuery:
        """The windows of queries, with their gaps and candidates. Every query has a text of its
        own, because its candidates are marked in it."""
        own = module_of(encoder_node(encoder))
        tokenizer, mask = own.pieces, own.mask_id
        # At least half of a short window is for the passage.
        most = min(self.max_query_pieces, own.window[0] // 2)
        n = np.arange(len(query.queries))
        tables = [span_table(spans) for spans in query.candidates]
        docs = [query.docs[i] for i in query.of_query_doc]
        passages = pieces_of(encoder, docs, tables, "texts of queries")
        starts, ends = span_pieces(passages, query.spans.table, query.of_query)
        text = self._passages(docs, passages, starts, ends, tokenizer)
        gap_table = np.stack([query.gaps, query.gaps + 1], 1)
        questions = pieces_of(encoder, query.queries, [row[None] for row in gap_table], "queries")
        gaps = self._gaps(questions, *span_pieces(questions, gap_table, n), tokenizer)
        n_cut = int((np.diff(gaps.pieces.piece_offsets) > most).sum())
        if n_cut and own.reports_first("cut queries"):
            LOGGER.warning(
                "%d of %d queries are longer than max_query_pieces (%d) or half a window; the "
                "pieces around their gaps are used. This warning is logged once per encoder.",
                n_cut,
                len(n),
                self.max_query_pieces,
            )
        gaps = keep_around(*gaps, most)
        order = np.argsort(text.starts, kind="stable")
        order = order[text.ends[order] > text.starts[order]]
        mentions = PlacedEntities(
            text.starts[order], text.ends[order], np.full(len(order), mask, dtype=np.int64)
        )
        windows = question_windows(
            docs,
            text.pieces,
            gaps.pieces,
            n,
            tokenizer,
            size=own.window[0] + 2,
            stride=self.stride,
            max_question_pieces=most,
            n_separators=tokenizer.n_separators,
            spans=(mentions.starts, mentions.ends),
        )
        fits = text.ends > text.starts
        fits &= windows.windows.of_spans(text.starts, text.ends) >= 0
        of_gaps = PlacedEntities(gaps.starts, gaps.ends, np.full(len(n), mask, dtype=np.int64))
        return PlacedQuery(_with(windows, mentions), of_gaps, mentions, order, fits)

    def _passages(
        self,
        docs: Sequence[Doc],
        pieces: Pieces,
        starts: Array,
        ends: Array,
        tokenizer: PieceTokenizer,
    ) -> Spliced:
        text = Spliced(pieces, starts, ends)
        highlight = tokenizer.id_of(HIGHLIGHT_PIECE)
        if highlight is not None:
            is_point = np.asarray([x.text == HIGHLIGHT for doc in docs for x in doc], dtype=bool)
            is_point &= pieces.token_ends > pieces.token_starts
            points = pieces.token_starts[is_point], pieces.token_ends[is_point]
            text = replace_ranges(pieces, points, highlight, starts, ends)
        if self.mode == "unmarked":
            return text
        return insert_markers(*text, int(marker_ids(tokenizer)[0]))

    def _gaps(
        self, pieces: Pieces, starts: Array, ends: Array, tokenizer: PieceTokenizer
    ) -> Spliced:
        """The pieces of queries; the gap is one piece, between markers in that mode."""
        piece = tokenizer.id_of(PLACEHOLDER_PIECE)
        piece = tokenizer.mask_id if piece is None else piece
        gaps = replace_ranges(pieces, (starts, ends), piece, starts, ends)
        if self.mode == "markers":
            return insert_markers(*gaps, int(marker_ids(tokenizer)[0]))
        return gaps

    def score(self, run: EncoderRun, head: Head, query: ClozeQuery) -> ClassScores:
        """The score of a candidate is the largest of all windows that contain it."""
        if not len(query.spans):
            return ClassScores(np.zeros(0, dtype=np.int64), run.zeros(0, head.n_classes))
        placed = self.place(run.node, query)
        parts = list(placed.windows.batches(encoder_run.MAX_ROWS))
        if not parts:
            return ClassScores(np.zeros(0, dtype=np.int64), run.zeros(0, head.n_classes))
        inputs = {part: self._entities(placed, *part) for part in parts}
        linear = head.part("head", LinearHead)

        def score_part(low: int, high: int) -> torch.Tensor:
            entities, rows = inputs[low, high]
            words = placed.windows.words(low, high)
            states = self.states(run, LukeInputs(words, entities))
            # The gap is the first entity of each sequence.
            gap = np.repeat(entities.offsets[:-1], np.diff(entities.offsets))
            is_mention = rows < 0
            both = [run.index(x) for x in (gap[is_mention], np.flatnonzero(is_mention))]
            return linear(torch.stack([states.index_select(0, x) for x in both], 1)).float()

        logits = in_parts(run, score_part, parts)
        found = np.concatenate([-1 - rows[rows < 0] for _, rows in inputs.values()])
        scored, of_logits = np.unique(placed.rows[found], return_inverse=True)
        best = torch.full((len(scored), 1), -torch.inf, device=logits.device)
        best = best.scatter_reduce(0, run.index(of_logits)[:, None], logits, "amax")
        return ClassScores(scored, best)

    def states(self, run: EncoderRun, inputs: LukeInputs) -> torch.Tensor:
        """(n_entities, H) what the head reads of gaps and mentions: entity states."""
        return run.encode(inputs, "full").entities

    def _entities(self, placed: PlacedQuery, low: int, high: int) -> tuple[Entities, Array]:
        return placed.windows.entities(
            low, high, placed.gaps, placed.mentions, self.max_mention_pieces
        )


def _with(windows: QuestionWindows, mentions: PlacedEntities) -> QuestionWindows:
    """The windows that contain a mention."""
    low = np.searchsorted(mentions.starts, windows.windows.starts)
    # The smallest end of the mentions that start at or after each one: [5, 3, 9] -> [3, 3, 9].
    first_end = np.minimum.accumulate(np.append(mentions.ends, np.iinfo(np.int64).max)[::-1])[::-1]
    keep = first_end[low] <= windows.windows.ends
    table = (x[keep] for x in vars(windows.windows).values())
    return replace(windows, windows=Windows(*table))


@registry.architectures("spacy-luke.ClozeScorer.v1")
def ClozeScorer_v1(
    encoder: Model,
    *,
    mode: Mode = "unmarked",
    stride: int = 128,
    max_query_pieces: int = 90,
    max_mention_pieces: int = 30,
    learn_rate_factor: float = 1.0,
) -> Model[ClozeQuery, ClassScores]:
    """Score the candidates for the gaps of queries.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one.
    mode: ``markers``: the gap and each candidate are between marker pieces, as published;
        ``unmarked``: without them.
    stride: pieces that consecutive windows of a long passage share, at most half of a window's.
    max_query_pieces: of a longer query, so many pieces are used, with the gap among them; at most
        half of a window's.
    max_mention_pieces: the number of a mention's first pieces, markers included, that its positions
        use.
    learn_rate_factor: learning rate of the head, relative to the config's.
    """
    scorer = ClozeScorer(mode, stride, max_query_pieces, max_mention_pieces)
    return task_layer(encoder, scorer, LearnRates(learn_rate_factor))
