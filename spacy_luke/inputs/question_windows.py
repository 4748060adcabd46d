"""Sequences of two texts: a question, and a window of the passage that it is asked about.

``[CLS] question [SEP] passage [SEP]``, in encoders of kind ``roberta`` with two separators between
the texts. A passage that does not fit is read in overlapping windows, each with the whole question.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc

from ..errors import ConfigError
from ..model.packing import Entities, Words
from ..vocab.pieces import PieceTokenizer
from .alignment import Pieces, concat, offsets_of, ranges
from .placed_spans import bounded
from .shapes import SPECIAL
from .windows import Windows, split_text, token_bounds

Array = np.ndarray

_INVISIBLE = ("Cc", "Cf")  # control and format characters, such as the zero-width space


class PlacedEntities(NamedTuple):
    """Entity inputs of a batch of texts. starts, ends: (n,) piece ranges, ascending; ids: (n,) rows
    of the entity table. Pieces are counted over the batch."""

    starts: Array
    ends: Array
    ids: Array


class WindowTokens(NamedTuple):
    """The words that windows contain whole: tokens that have pieces, and are not white space (of
    which byte-level BPE makes pieces, too).

    tokens: (n,) counted over the batch, by window. offsets: (n_windows + 1,) the first of each.
    first, last: (n,) the place of a token's first and last piece in its window's sequence.
    """

    tokens: Array
    offsets: Array
    first: Array
    last: Array


@dataclass
class QuestionWindows:
    """Questions about documents, each with the windows of its document.

    docs: the documents. passages, questions: their pieces, and those of the questions.
    of_doc: (n_questions,) the document that each question is about.
    lengths: (n_questions,) the pieces of a question that are used: a long one is cut.
    windows: of the passages; ``windows.docs`` is the *question* of each, ascending.
    n_separators: between the texts.
    """

    docs: Sequence[Doc]
    passages: Pieces
    questions: Pieces
    tokenizer: PieceTokenizer
    of_doc: Array
    lengths: Array
    windows: Windows
    n_separators: int

    @property
    def n_cut(self) -> int:
        """The number of questions that are cut."""
        n_pieces = np.diff(self.questions.piece_offsets)
        return int(((n_pieces > self.lengths) & (self.lengths > 0)).sum())

    def passage_starts(self) -> Array:
        """(n_windows,) the place of a window's first passage piece in its sequence."""
        return 1 + self.lengths[self.windows.docs] + self.n_separators

    def sizes(self) -> Array:
        """(n_windows,) the pieces of each sequence."""
        return self.passage_starts() + self.windows.ends - self.windows.starts + 1

    def window_tokens(self) -> WindowTokens:
        """The tokens of each window."""
        pieces = self.passages
        is_word = np.asarray([has_words(x.text) for doc in self.docs for x in doc], dtype=bool)
        filled = np.flatnonzero(is_word & (pieces.token_ends > pieces.token_starts))
        starts, ends = pieces.token_starts[filled], pieces.token_ends[filled]
        low = np.searchsorted(starts, self.windows.starts, side="left")
        high = np.maximum(np.searchsorted(ends, self.windows.ends, side="right"), low)
        inside, counts = ranges(low, high), high - low
        shift = np.repeat(self.passage_starts() - self.windows.starts, counts)
        first, last = starts[inside] + shift, ends[inside] - 1 + shift
        return WindowTokens(filled[inside], offsets_of(counts), first, last)

    def columns(self, tokens: WindowTokens, places: Array) -> Array:
        """(n_windows, 2) which of a window's tokens, counted from 1, are the first and the last of
        its question's place; both 0 if the window does not contain both.

        tokens: :meth:`window_tokens`. places: (n_questions, 2) the first and the last token in the
        document; -1 for none.
        """
        window = np.repeat(np.arange(len(self.windows)), np.diff(tokens.offsets))
        number = np.arange(len(window)) - tokens.offsets[window] + 1
        asked = self.windows.docs
        wanted = places[asked] + self.passages.token_offsets[self.of_doc[asked]][:, None]
        wanted[places[asked] < 0] = -1
        columns = np.zeros(wanted.shape, dtype=np.int64)
        for end in range(2):
            hit = tokens.tokens == wanted[window, end]
            columns[window[hit], end] = number[hit]
        columns[(columns == 0).any(1)] = 0
        return columns

    def contain(self, columns: Array) -> Array:
        """(n_questions,) whether a window contains the question's place. columns: of all
        windows."""
        found = np.zeros(len(self.of_doc), dtype=bool)
        found[self.windows.docs[columns[:, 0] > 0]] = True
        return found

    def batches(self, most: int | None) -> Iterator[tuple[int, int]]:
        """Ranges [low, high) of windows with at most ``most`` pieces in total."""
        return bounded(self.sizes(), most)

    def words(self, low: int, high: int) -> Words:
        """Pack the sequences of the windows [low, high)."""
        windows, starts = self.windows, self.passage_starts()[low:high]
        offsets = offsets_of(self.sizes()[low:high])
        ids = np.full(int(offsets[-1]), self.tokenizer.sep_id, dtype=np.int64)
        ids[offsets[:-1]] = self.tokenizer.cls_id
        asked = windows.docs[low:high]
        lengths = self.lengths[asked]
        question_starts = self.questions.piece_offsets[asked]
        of_question = ranges(question_starts, question_starts + lengths)
        of_passage = ranges(windows.starts[low:high], windows.ends[low:high])
        into_question = ranges(offsets[:-1] + 1, offsets[:-1] + 1 + lengths)
        into_passage = ranges(offsets[:-1] + starts, offsets[1:] - 1)
        ids[into_question] = self.questions.ids[of_question]
        ids[into_passage] = self.passages.ids[of_passage]
        types = np.zeros(len(ids), dtype=np.int64)
        types[ranges(offsets[:-1] + starts, offsets[1:])] = 1  # with the last separator
        shapes = None
        if self.passages.shapes is not None and self.questions.shapes is not None:
            shapes = np.full(len(ids), SPECIAL, dtype=np.int64)
            shapes[into_question] = self.questions.shapes[of_question]
            shapes[into_passage] = self.passages.shapes[of_passage]
        return Words(ids, offsets, shapes, types)

    def entities(
        self, low: int, high: int, question: PlacedEntities, passage: PlacedEntities, limit: int
    ) -> tuple[Entities, Array]:
        """The entities of the windows [low, high): those of the question, then of the passage, that
        the sequence contains whole. limit: the number of an entity's first pieces that its
        positions use (0: all).

        Returns them, and their rows: in ``question``, or minus one minus that in ``passage``.
        """
        counts, rows, starts, ends, ids = [], [], [], [], []
        bases = self.passage_starts()
        for window in range(low, high):
            asked = self.windows.docs[window]
            first = self.questions.piece_offsets[asked]
            parts = (
                (question, first, first + self.lengths[asked], 1),
                (passage, self.windows.starts[window], self.windows.ends[window], bases[window]),
            )
            n = 0
            for given, begin, end, place in parts:
                a, b = np.searchsorted(given.starts, (begin, end))
                inside = a + np.flatnonzero(given.ends[a:b] <= end)
                starts.append(given.starts[inside] - begin + place)
                ends.append(given.ends[inside] - begin + place)
                ids.append(given.ids[inside])
                rows.append(inside if given is question else -1 - inside)
                n += len(inside)
            counts.append(n)
        first_pieces, stops = concat(starts), concat(ends)
        if limit:
            stops = np.minimum(stops, first_pieces + limit)
        entities = Entities(concat(ids), first_pieces, stops, offsets_of(counts))
        return entities, concat(rows)


def question_windows(
    docs: Sequence[Doc],
    passages: Pieces,
    questions: Pieces,
    of_doc: Array,
    tokenizer: PieceTokenizer,
    *,
    size: int,
    stride: int,
    max_question_pieces: int,
    n_separators: int,
    spans: tuple[Array, Array],
    asked: Sequence[bool] | None = None,
) -> QuestionWindows:
    """Cut the documents of questions into windows. A question without pieces, or about a document
    without words, has no window.

    of_doc: (n_questions,). asked: (n_questions,) whether a question has words; by default all.
    size: most pieces of a sequence, special pieces included. stride: pieces that consecutive
    windows of a passage share, at most half of a window's. spans: starts and ends of piece ranges
    of passages, ascending, that a window should contain whole if possible.

    Raises ConfigError if a sequence has no room for a passage beside a question.
    """
    lengths = np.minimum(np.diff(questions.piece_offsets), max_question_pieces)
    if asked is not None:
        lengths[~np.asarray(asked, dtype=bool)] = 0
    readable = [has_words(doc.text) for doc in docs]
    rows: list[tuple[int, int, int, int, int]] = []
    for i, doc in enumerate(of_doc.tolist()):
        if not lengths[i] or not readable[doc]:
            continue
        room = size - int(lengths[i]) - n_separators - 2
        if room < 2:
            raise ConfigError(
                f"A sequence of {size} pieces has no room for a passage beside a question of "
                f"{lengths[i]}: lower max_question_pieces, or use a larger window."
            )
        low, high = (int(x) for x in passages.piece_offsets[doc : doc + 2])
        if high - low <= room:
            parts = [(low, high, low, high)] if high > low else []
        else:
            a, b = np.searchsorted(spans[0], (low, high))
            bounds = token_bounds(passages, doc)
            overlap = min(stride, room // 2)
            parts = split_text(low, high, room, overlap, bounds, spans[0][a:b], spans[1][a:b])
        rows.extend((i, *part) for part in parts)
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 5)
    windows = Windows(*(np.ascontiguousarray(column) for column in table.T))
    return QuestionWindows(
        docs, passages, questions, tokenizer, of_doc, lengths, windows, n_separators
    )


def has_words(text: str) -> bool:
    """Whether a text has more than white space and invisible characters."""
    return any(
        x.isalnum() or not (x.isspace() or unicodedata.category(x) in _INVISIBLE) for x in text
    )
