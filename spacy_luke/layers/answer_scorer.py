"""``spacy-luke.AnswerScorer.v1``: scores where the answer to a question begins and ends.

As published (Yamada et al. 2020, section 4.5): question and passage are one sequence, entities of
both enter with it, and a linear layer reads the states of words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from spacy.tokens import Doc, Span
from spacy.util import registry
from thinc.api import Model
from torch import nn

from ..annotations.mentions import UNLINKED
from ..checkpoint.classes import QUESTIONS
from ..inputs.alignment import Pieces, span_table
from ..inputs.placed_spans import span_pieces
from ..inputs.question_windows import (
    PlacedEntities,
    QuestionWindows,
    WindowTokens,
    has_words,
    question_windows,
)
from ..model.heads import LinearHead
from ..model.packing import Array, LukeInputs
from ..report import LOGGER
from ..validation import Count, check_settings
from . import encoder_run
from .encoder import module_of
from .encoder_module import Encoder
from .encoder_run import EncoderRun, in_parts, pieces_of
from .listener import encoder_node
from .shim import LearnRates
from .task_head import Head, HeadKind
from .task_layer import Scorer, task_layer

EntityInput = Literal["known", "all", "none"]


@dataclass(frozen=True)
class QuestionQuery:
    """Questions about documents.

    of_doc: (n_questions,) the document of each question, ascending. entities, question_entities:
    the entity inputs of each document and question, whose ``kb_id_`` names their rows.
    """

    docs: Sequence[Doc]
    questions: Sequence[Doc]
    of_doc: Array
    entities: Sequence[Sequence[Span]]
    question_entities: Sequence[Sequence[Span]]


class AnswerScores(NamedTuple):
    """windows, tokens: what was read. logits: (n_windows + n_tokens, 2) of an answer's first and
    last token, or their gradients. The first row of each window is of [CLS], "no answer here"; the
    others are of its tokens."""

    windows: QuestionWindows
    tokens: WindowTokens
    logits: Any

    @property
    def offsets(self) -> Array:
        """(n_windows + 1,) the first row of each window."""
        return self.tokens.offsets + np.arange(len(self.tokens.offsets))


def _parts(hidden: int, n_classes: int) -> Mapping[str, nn.Module]:
    return {"head": LinearHead(hidden, 1, n_classes)}


ANSWER_HEAD = HeadKind(_parts, 1, QUESTIONS.name)


@dataclass
class AnswerScorer(Scorer[QuestionQuery, AnswerScores]):
    """The settings of ``spacy-luke.AnswerScorer.v1``; see there."""

    entities: EntityInput = "known"
    stride: Count = 128
    max_question_pieces: Count = 64
    max_mention_pieces: Count = 30
    mode: ClassVar[str] = "full"

    node: ClassVar[str] = "luke-answer-scorer"
    kind: ClassVar[HeadKind] = ANSWER_HEAD

    def __post_init__(self) -> None:
        check_settings("AnswerScorer", AnswerScorer, vars(self))

    def fits(self, encoder: Model, query: QuestionQuery) -> Array:
        """(n_questions,) whether a question can be asked: it and its document have words."""
        windows, _, _ = self.place(encoder, query)
        fits = np.zeros(len(query.questions), dtype=bool)
        fits[windows.windows.docs] = True
        return fits

    def place(
        self, encoder: Model, query: QuestionQuery
    ) -> tuple[QuestionWindows, PlacedEntities, PlacedEntities]:
        """The windows of questions, and the entities of questions and of documents."""
        own = module_of(encoder_node(encoder))
        spans, question_spans = query.entities, query.question_entities
        passages = pieces_of(encoder, query.docs, [span_table(x) for x in spans])
        tables = [span_table(x) for x in question_spans]
        questions = pieces_of(encoder, query.questions, tables, "questions")
        of_questions = self._placed(own, questions, question_spans)
        of_passages = self._placed(own, passages, spans)
        result = question_windows(
            query.docs,
            passages,
            questions,
            query.of_doc,
            own.pieces,
            size=own.window[0] + 2,
            stride=self.stride,
            # At least half of a short window is for the document.
            max_question_pieces=min(self.max_question_pieces, own.window[0] // 2),
            n_separators=own.pieces.n_separators,
            spans=(of_passages.starts, of_passages.ends),
            asked=[has_words(question.text) for question in query.questions],
        )
        if result.n_cut and own.reports_first("cut questions"):
            LOGGER.warning(
                "%d of %d questions are longer than max_question_pieces (%d) or half a window; "
                "their first pieces are used. This warning is logged once per encoder.",
                result.n_cut,
                len(query.questions),
                self.max_question_pieces,
            )
        return result, of_questions, of_passages

    def _placed(
        self, encoder: Encoder, pieces: Pieces, by_text: Sequence[Sequence[Span]]
    ) -> PlacedEntities:
        spans = [x for found in by_text for x in found] if self.entities != "none" else []
        of_text = np.repeat(np.arange(len(by_text)), [len(found) for found in by_text])
        starts, ends = span_pieces(pieces, span_table(spans), of_text[: len(spans)])
        ids = np.asarray([_table_row(encoder, x) for x in spans], dtype=np.int64)
        used = ends > starts
        if self.entities == "known":
            used &= ids >= 0
        ids[ids < 0] = encoder.mask_id
        order = np.flatnonzero(used)
        order = order[np.argsort(starts[order], kind="stable")]
        return PlacedEntities(starts[order], ends[order], ids[order])

    def score(self, run: EncoderRun, head: Head, query: QuestionQuery) -> AnswerScores:
        windows, of_questions, of_passages = self.place(run.node, query)
        tokens, linear = windows.window_tokens(), head.part("head", LinearHead)
        counts = np.diff(tokens.offsets)

        def score_part(low: int, high: int) -> torch.Tensor:
            words = windows.words(low, high)
            entities, _ = windows.entities(
                low, high, of_questions, of_passages, self.max_mention_pieces
            )
            states = run.encode(LukeInputs(words, entities), "full").words
            logits = linear(states[:, None]).float()
            # Of every window [CLS], then its tokens.
            part = slice(tokens.offsets[low], tokens.offsets[high])
            cls, shift = words.offsets[:-1], np.repeat(words.offsets[:-1], counts[low:high])
            at = tokens.offsets[low:high] - tokens.offsets[low]
            first = np.insert(tokens.first[part] + shift, at, cls)
            last = np.insert(tokens.last[part] + shift, at, cls)
            starts = logits[:, 0].index_select(0, run.index(first))
            return torch.stack([starts, logits[:, 1].index_select(0, run.index(last))], 1)

        parts = list(windows.batches(encoder_run.MAX_ROWS))
        logits = in_parts(run, score_part, parts) if parts else run.zeros(0, head.n_classes)
        return AnswerScores(windows, tokens, logits)


def _table_row(encoder: Encoder, span: Span) -> int:
    """The row of a linked entity in the encoder's table, or -1: also by its title in the language
    of the pipeline."""
    if span.kb_id_ in UNLINKED:
        return -1
    row = encoder.entities.find(span.kb_id_, span.doc.vocab.lang or None)
    return -1 if row is None else row


@registry.architectures("spacy-luke.AnswerScorer.v1")
def AnswerScorer_v1(
    encoder: Model,
    *,
    entities: EntityInput = "known",
    stride: int = 128,
    max_question_pieces: int = 64,
    max_mention_pieces: int = 30,
    learn_rate_factor: float = 1.0,
) -> Model[QuestionQuery, AnswerScores]:
    """Score the tokens of documents as first and last token of answers.

    encoder: ``spacy-luke.LukeEncoder.v1``, or ``spacy-luke.LukeListener.v1`` to share one. A
        sequence has as many pieces as its windows.
    entities: the entity inputs of question and document. ``known``: those with a row in the
        encoder's entity table, as published; ``all``: others enter as [MASK], which was no gain in
        ``docs/results/questions.md``; ``none``.
    stride: pieces that consecutive windows of a long document share. Answers that are longer may
        not be found.
    max_question_pieces: a longer question is cut, as published; at most half of a window's.
    max_mention_pieces: the number of an entity's first pieces that its positions use.
    learn_rate_factor: learning rate of the head, relative to the config's.
    """
    scorer = AnswerScorer(entities, stride, max_question_pieces, max_mention_pieces)
    return task_layer(encoder, scorer, LearnRates(learn_rate_factor))
