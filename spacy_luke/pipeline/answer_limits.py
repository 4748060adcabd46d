"""Gold answers that ``luke_qa`` cannot learn or predict, counted and logged by ``initialize``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Model

from ..annotations.questions import answer_offsets, has_answers
from ..layers.answer_scorer import QuestionQuery
from ..layers.published_head import published_labels
from ..layers.task_layer import encoder_below, fits, scorer_of
from ..report import LOGGER, log_lost
from .answer_targets import answer_targets, is_asked

NOT_LEARNED = ("not asked", "without pieces", "in no window")
NOT_EXACT = ("too long", "inside a token")

ADVICE = (
    "The predicted documents need questions: train with the corpus reader "
    "spacy-luke.PresetEntsCorpus.v1, which gives them those of the references."
)


def count_limits(
    name: str,
    model: Model,
    cfg: Mapping[str, Any],
    examples: Iterable[Example],
    query_of: Callable[[Sequence[Doc]], QuestionQuery],
) -> dict[str, int]:
    """Counts, of questions with a gold answer: ``gold`` all, ``not asked`` of the predicted
    documents, ``without pieces`` in question, text, or the answer's first or last token, ``in no
    window`` as a whole, ``too long`` to be predicted, ``inside a token``; each is counted once, for
    the first reason. ``no answer``: questions without one, which are not among them."""
    counts = dict.fromkeys(("gold", *NOT_LEARNED, *NOT_EXACT, "no answer"), 0)
    n_docs = 0
    for batch in minibatch(examples, 32):
        n_docs += len(batch)
        part = [eg for eg in batch if has_answers(eg.reference)]
        asked = [eg for eg in part if is_asked(eg)]
        for eg in part:
            n_answered = sum(bool(x.answers) for x in answer_offsets(eg.reference))
            counts["gold"] += n_answered
            counts["no answer"] += len(answer_offsets(eg.reference)) - n_answered
            counts["not asked"] += 0 if eg in asked else n_answered
        for reason in _lost(model, asked, query_of, cfg["max_answer_length"]):
            counts[reason] += 1
    lost = NOT_LEARNED + NOT_EXACT
    log_lost(
        sum(counts[x] for x in lost),
        "%s: %d questions have a gold answer. %d are not asked of the documents, %d have no pieces "
        "(the question, the text, or a first or last word of the answer), and the answers to %d "
        "are longer than what windows share (stride) and in none of them: these are not learned. "
        "The answers to %d are longer than max_answer_length (%d tokens), and those to %d begin or "
        "end inside a token: these cannot be predicted exactly.",
        name,
        counts["gold"],
        *(counts[x] for x in lost[:4]),
        cfg["max_answer_length"],
        counts["inside a token"],
    )
    # A published model that is only loaded, as by 'spacy luke import', has nothing to learn from.
    is_loaded = n_docs < 2 and bool(published_labels(model))
    if not counts["gold"] and not counts["no answer"] and not is_loaded:
        LOGGER.warning(
            "%s: no document of the training data has gold answers to questions, so that nothing "
            "is learned.",
            name,
        )
    if counts["not asked"]:
        LOGGER.warning("%s: %s", name, ADVICE)
    if cfg["no_answer"] and counts["gold"] and not counts["no answer"]:
        LOGGER.warning(
            "%s: every question of the training data has an answer. With no_answer = true the "
            "component leaves out answers below score_threshold, which it cannot have learned "
            "well: set no_answer = false, or add questions without an answer.",
            name,
        )
    return counts


def _lost(
    model: Model,
    examples: Sequence[Example],
    query_of: Callable[[Sequence[Doc]], QuestionQuery],
    max_words: int,
) -> Iterator[str]:
    """Why gold answers to questions that were asked are lost, one reason each."""
    query = query_of([eg.predicted for eg in examples])
    windows, _, _ = scorer_of(model).place(encoder_below(model), query)
    gold, _ = answer_targets(examples, np.bincount(query.of_doc, minlength=len(examples)).tolist())
    pieces, readable = windows.passages, fits(model, query) & (gold[:, 0] >= 0)
    at = gold + pieces.token_offsets[query.of_doc][:, None]
    readable[readable] = (pieces.token_ends > pieces.token_starts)[at[readable]].all(1)
    contained = windows.contain(windows.columns(windows.window_tokens(), gold))
    items = ((eg, item) for eg in examples for item in answer_offsets(eg.reference))
    for row, (eg, item) in enumerate(items):
        if not item.answers:
            continue
        if not readable[row]:
            yield "without pieces"
        elif not contained[row]:
            yield "in no window"
        elif gold[row, 1] - gold[row, 0] >= max_words:
            yield "too long"
        elif _tokens_of(eg).char_span(*item.answers[0][:2]) is None:
            yield "inside a token"


def _tokens_of(eg: Example) -> Doc:
    """The document whose tokens the answers are: that of the pipeline, if its text is the same."""
    return eg.predicted if eg.predicted.text == eg.reference.text else eg.reference
