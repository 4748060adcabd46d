"""Gold answers as targets of the scores of tokens, and the loss."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Ops

from ..annotations.questions import answer_offsets, has_answers, question_texts
from ..errors import InputError
from ..layers.answer_scorer import AnswerScores
from .class_loss import Targets, single_loss

Array = np.ndarray


def is_asked(eg: Example) -> bool:
    """Whether the questions of the reference were asked of the predicted document, and have gold
    answers. Raises InputError if other questions were asked."""
    asked, gold = question_texts(eg.predicted), question_texts(eg.reference)
    if not asked or not has_answers(eg.reference):
        return False
    if asked != gold:
        raise InputError(
            f"The document {eg.predicted.text[:40]!r} is asked {asked}, and its reference has "
            f"answers to {gold}. They must be the same questions in the same order."
        )
    return True


def gold_tokens(eg: Example) -> list[tuple[int, int]]:
    """The token range [start, end) of the first gold answer to each question, in the predicted
    document; (-1, -1) if there is no answer. An answer that ends inside a token has all of it."""
    return [
        _aligned(eg, *item.answers[0][:2]) if item.answers else (-1, -1)
        for item in answer_offsets(eg.reference)
    ]


def _aligned(eg: Example, start: int, end: int) -> tuple[int, int]:
    doc: Doc = eg.predicted
    if doc.text == eg.reference.text:
        span = doc.char_span(start, end, alignment_mode="expand")
        return (span.start, span.end) if span is not None else (-1, -1)
    gold = eg.reference.char_span(start, end, alignment_mode="expand")
    assert gold is not None  # offsets are checked when they are set
    tokens = np.concatenate([eg.alignment.y2x[i] for i in range(gold.start, gold.end)])
    return (int(tokens.min()), int(tokens.max()) + 1) if len(tokens) else (-1, -1)


def answer_targets(examples: Sequence[Example], counts: Sequence[int]) -> Targets:
    """(n_questions, 2) first and last token of each gold answer, -1 if there is none; and whether
    the answer is known. counts: the questions of each predicted document."""
    gold = np.full((sum(counts), 2), -1, dtype=np.int64)
    known = np.zeros(len(gold), dtype=bool)
    row = 0
    for eg, n in zip(examples, counts):
        if is_asked(eg):
            gold[row : row + n] = gold_tokens(eg)
            known[row : row + n] = True
        row += n
    gold[:, 1] -= gold[:, 0] >= 0  # the last token
    return gold, known


def answer_loss(ops: Ops, scores: AnswerScores, targets: Targets) -> tuple[float, Any]:
    """Cross-entropy of first and last token, the mean of both and over windows, and its gradient.
    In a window that does not contain the whole answer, "no answer here" is right."""
    gold, known = targets
    windows, tokens, offsets = scores.windows, scores.tokens, scores.offsets
    n, width = len(windows.windows), int(np.diff(offsets).max(initial=1))
    asked = windows.windows.docs
    # Rows of a window in a table with a column for "no answer", then one per token.
    window = np.repeat(np.arange(n), np.diff(offsets))
    column = np.arange(len(window)) - offsets[window]
    of_doc = windows.of_doc[asked]
    wanted = gold[asked] + windows.passages.token_offsets[of_doc][:, None]
    token = np.full(len(window), -1, dtype=np.int64)
    token[column > 0] = tokens.tokens
    hits = [
        (token == wanted[window, end]) & (gold[asked[window], end] >= 0) & (column > 0)
        for end in (0, 1)
    ]
    inside = np.logical_and(*(np.bincount(window[hit], minlength=n) > 0 for hit in hits))
    cells = ops.xp.asarray(window), ops.xp.asarray(column)
    total, d_logits = 0.0, ops.xp.zeros_like(scores.logits)
    for end, hit in enumerate(hits):
        target = np.zeros((n, width), dtype=np.float32)
        target[window[hit], column[hit]] = inside[window[hit]]
        target[~inside, 0] = 1.0
        target[~known[asked]] = 0.0
        table = ops.xp.full((n, width), -np.inf, dtype="f")
        table[cells] = scores.logits[:, end]
        loss, d_table = single_loss(ops, table, target)
        total += loss / 2
        d_logits[:, end] = d_table[cells] / 2
    return total, d_logits
