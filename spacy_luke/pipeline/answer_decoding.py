"""From scores of tokens to the answers of each question.

The score of an answer is start + end of the answer minus start + end of "no answer here", in one
window: log odds, which can be compared between windows, documents and questions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from spacy.tokens import Doc

from ..annotations.questions import Answer, Answers, question_texts, set_answers
from ..calibration import sigmoid
from ..inputs.windows import Windows
from ..layers.answer_scorer import AnswerScores
from ..ties import levels, likeliest
from .confidence import Confidence

Array = np.ndarray


class Found(NamedTuple):
    """An answer: the token range [start, end) of a document, and its log odds."""

    start: int
    end: int
    odds: float


Placed = tuple[Doc, Found]
"""An answer and its document."""


@dataclass(frozen=True)
class Choice:
    """Which answers are given.

    top_k: most answers. max_words: most tokens of an answer. overlap: an answer is left out if more
    than this share of it, or of a better answer, is in both.
    """

    top_k: int
    max_words: int
    overlap: float


def find_answers(scores: AnswerScores, choice: Choice) -> list[list[Found]]:
    """The best answers to each question, best first; none to a question without windows."""
    windows = scores.windows
    of_question = windows.windows.docs
    bounds = np.searchsorted(of_question, np.arange(len(windows.of_doc) + 1))
    return [
        choose(_table(scores, q, low, high, choice.max_words), choice) if high > low else []
        for q, (low, high) in enumerate(zip(bounds, bounds[1:]))
    ]


def _table(scores: AnswerScores, question: int, low: int, high: int, max_words: int) -> Array:
    """(n_tokens, at most max_words): the log odds of the answer that begins with a token, by its
    number of tokens less one; -inf if it is not possible. Each answer is scored in one window only.

    low, high: the windows of the question.
    """
    given, tokens, pieces = scores.windows, scores.tokens, scores.windows.passages
    doc = given.of_doc[question]
    base, stop = pieces.token_offsets[doc], pieces.token_offsets[doc + 1]
    # An answer is in one window, so memory is bounded whatever the setting.
    firsts, stops = tokens.offsets[low:high], tokens.offsets[low + 1 : high + 1]
    filled = stops > firsts
    if not filled.any():
        return np.full((stop - base, 1), -np.inf)
    in_window = tokens.tokens[stops[filled] - 1] - tokens.tokens[firsts[filled]] + 1
    max_words = min(max_words, int(in_window.max()))
    table = np.full((stop - base, max_words), -np.inf)
    offsets, all_windows = scores.offsets, given.windows
    own = Windows(*(getattr(all_windows, x)[low:high] for x in Windows.__dataclass_fields__))
    for window in range(low, high):
        # The first row is of "no answer here".
        logits = scores.logits[offsets[window] : offsets[window + 1]].astype(np.float64)
        of_window = tokens.tokens[tokens.offsets[window] : tokens.offsets[window + 1]]
        if not len(of_window):
            continue
        starts, ends = logits[1:, 0], np.append(logits[1:, 1], np.full(max_words - 1, -np.inf))
        odds = starts[:, None] + sliding_window_view(ends, max_words) - logits[0].sum()
        last = np.append(of_window, np.full(max_words - 1, of_window[-1]))
        last = sliding_window_view(last, max_words)
        n_words = last - of_window[:, None] + 1
        possible = np.isfinite(odds) & (n_words <= max_words)
        if high - low > 1:
            first = np.broadcast_to(of_window[:, None], last.shape)[possible]
            owner = own.of_spans(pieces.token_starts[first], pieces.token_ends[last[possible]])
            possible[possible] = owner == window - low
        rows = np.broadcast_to(of_window[:, None] - base, last.shape)[possible]
        table[rows, n_words[possible] - 1] = odds[possible]
    return table


def choose(table: Array, choice: Choice) -> list[Found]:
    """The best answers of a table that do not overlap more than they may. The table is changed."""
    found: list[Found] = []
    lengths = np.arange(1, table.shape[1] + 1)
    while len(found) < choice.top_k and table.size:
        best = int(likeliest(table.reshape(1, -1))[0])
        start, n_words = best // table.shape[1], best % table.shape[1] + 1
        odds = float(table[start, n_words - 1])
        if odds == -np.inf:
            break
        found.append(Found(start, start + n_words, odds))
        # Only answers that begin in this range overlap it.
        low = max(0, start - table.shape[1] + 1)
        others = np.arange(low, min(start + n_words, len(table)))[:, None]
        shared = np.minimum(others + lengths, start + n_words) - np.maximum(others, start)
        part = table[low : start + n_words]
        part[shared > choice.overlap * np.minimum(lengths, n_words)] = -np.inf
        table[start, n_words - 1] = -np.inf
    return found


def best_of(found: Iterable[Placed], top_k: int) -> list[Placed]:
    """The best answers of several documents to one question, best first; of equal ones the first.

    They are compared by their log odds: scores are so near to 1 that different ones may be equal.
    """
    placed = list(found)
    odds = np.asarray([x.odds for _, x in placed])
    order = np.argsort(-levels(odds, np.zeros(len(odds))), kind="stable")
    return [placed[i] for i in order[:top_k]]


def scored(
    question: str, found: Sequence[Placed], confidence: Confidence, no_answer: bool
) -> Answers:
    """The answers, best first, with their scores. no_answer: leave out those whose score is too
    low; else "no answer" has the probability 0, or 1 if nothing could be scored."""
    of_label = np.zeros(len(found), dtype=np.int64)
    scores = confidence.scores(of_label, sigmoid(np.asarray([x.odds for _, x in found])))
    answers = tuple(
        Answer(doc[x.start : x.end], float(score)) for (doc, x), score in zip(found, scores)
    )
    if not no_answer:
        return Answers(question, answers, float(not answers))
    given = confidence.accepts(of_label, scores)
    none = 1.0 - answers[0].score if answers else 1.0
    return Answers(question, tuple(x for x, is_given in zip(answers, given) if is_given), none)


def write_answers(
    docs: Iterable[Doc], found: Iterable[list[Placed]], confidence: Confidence, no_answer: bool
) -> None:
    """Write ``Doc._.answers``. found: of all questions of the documents. no_answer: see
    :func:`scored`."""
    rest = iter(found)
    for doc in docs:
        texts = question_texts(doc)
        set_answers(doc, [scored(text, next(rest), confidence, no_answer) for text in texts])
