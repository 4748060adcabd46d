"""Gold answers as targets of the scores of tokens, and the loss."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Ops

from ..annotations.questions import (
    answer_offsets,
    check_same_questions,
    has_answers,
    n_questions,
)
from ..inputs.question_windows import has_words
from ..layers.answer_scorer import AnswerScores
from .class_loss import Targets, single_loss

Array = np.ndarray


def is_asked(eg: Example) -> bool:
    """Whether the questions of the reference were asked of the predicted document, and have gold
    answers. Raises InputError if other questions were asked."""
    if not n_questions(eg.predicted) or not has_answers(eg.reference):
        return False
    check_same_questions(eg.predicted, eg.reference)
    return True


def gold_tokens(eg: Example) -> list[tuple[int, int]]:
    """The token range [start, end) of the first gold answer to each question that has words in the
    predicted document; (-1, -1) if there is none. An answer that ends inside a token has all of it,
    and white space and invisible characters at its ends are left out."""
    return [
        next(filter(None, (_aligned(eg, *x[:2]) for x in item.answers)), (-1, -1))
        for item in answer_offsets(eg.reference)
    ]


def _aligned(eg: Example, start: int, end: int) -> tuple[int, int] | None:
    doc: Doc = eg.predicted
    if doc.text == eg.reference.text:
        span = doc.char_span(start, end, alignment_mode="expand")
        tokens = np.arange(span.start, span.end) if span is not None else np.arange(0)
    else:
        gold = eg.reference.char_span(start, end, alignment_mode="expand")
        tokens = np.arange(0) if gold is None else eg.alignment.y2x[gold.start : gold.end]
    words = [i for i in tokens.tolist() if has_words(doc[i].text)]
    return (min(words), max(words) + 1) if words else None


def answer_targets(examples: Sequence[Example], counts: Sequence[int]) -> Targets:
    """(n_questions, 2) first and last token of each gold answer, -1 if there is none; and whether
    it is known: not if there are gold answers, none of which has words in the predicted document.
    counts: the questions of each predicted document."""
    gold = np.full((sum(counts), 2), -1, dtype=np.int64)
    known = np.zeros(len(gold), dtype=bool)
    row = 0
    for eg, n in zip(examples, counts):
        if is_asked(eg):
            gold[row : row + n] = gold_tokens(eg)
            answered = [bool(item.answers) for item in answer_offsets(eg.reference)]
            known[row : row + n] = (gold[row : row + n, 0] >= 0) == answered
        row += n
    gold[:, 1] -= gold[:, 0] >= 0  # the last token
    return gold, known


def answer_loss(ops: Ops, scores: AnswerScores, targets: Targets) -> tuple[float, Any]:
    """Cross-entropy of first and last token, the mean of both and over windows, and its gradient.
    In a window that does not contain the whole answer, "no answer here" is right. Questions whose
    answer no window contains are ignored: it is longer than what windows share, or begins or ends
    with a token that has no pieces."""
    gold, known = targets
    windows, offsets = scores.windows, scores.offsets
    columns = windows.columns(scores.tokens, gold)
    known = (known & ((gold[:, 0] < 0) | windows.contain(columns)))[windows.windows.docs]
    n, counts = len(windows.windows), np.diff(offsets)
    # A table with a column for "no answer", then one per token.
    window = np.repeat(np.arange(n), counts)
    cells = ops.xp.asarray(window), ops.xp.asarray(np.arange(len(window)) - offsets[window])
    total, d_logits = 0.0, ops.xp.zeros_like(scores.logits)
    for end in range(2):
        target = np.zeros((n, int(counts.max(initial=1))), dtype=np.float32)
        target[np.arange(n), columns[:, end]] = known
        table = ops.xp.full(target.shape, -np.inf, dtype="f")
        table[cells] = scores.logits[:, end]
        loss, d_table = single_loss(ops, table, target)
        total += loss / 2
        d_logits[:, end] = d_table[cells] / 2
    return total, d_logits
