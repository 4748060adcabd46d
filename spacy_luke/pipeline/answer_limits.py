"""Gold answers that ``luke_qa`` cannot learn or predict, counted and logged by ``initialize``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Model

from ..annotations.questions import answer_offsets, has_answers
from ..layers.answer_scorer import QuestionQuery
from ..layers.task_layer import fits
from ..report import LOGGER, log_lost
from .answer_targets import gold_tokens, is_asked

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
    documents, ``without pieces`` in question or text, ``too long`` to be predicted, ``inside a
    token``. ``no answer``: questions without one, which are not among them."""
    counts = dict.fromkeys(
        ("gold", "not asked", "without pieces", "too long", "inside a token", "no answer"), 0
    )
    for batch in minibatch(examples, 32):
        part = [eg for eg in batch if has_answers(eg.reference)]
        asked = [eg for eg in part if is_asked(eg)]
        for eg in part:
            n_answered = sum(bool(x.answers) for x in answer_offsets(eg.reference))
            counts["gold"] += n_answered
            counts["no answer"] += len(answer_offsets(eg.reference)) - n_answered
            counts["not asked"] += 0 if eg in asked else n_answered
        fit = iter(fits(model, query_of([eg.predicted for eg in asked])).tolist())
        for eg in asked:
            _count(counts, eg, fit, cfg["max_answer_length"])
    lost = ("not asked", "without pieces", "too long", "inside a token")
    log_lost(
        sum(counts[x] for x in lost),
        "%s: %d questions have a gold answer. %d are not asked of the documents, and %d have no "
        "pieces or a text without any: these are not learned. The answers to %d are longer than "
        "max_answer_length (%d tokens), and those to %d begin or end inside a token: these cannot "
        "be predicted exactly.",
        name,
        counts["gold"],
        *(counts[x] for x in lost[:3]),
        cfg["max_answer_length"],
        counts["inside a token"],
    )
    if not counts["gold"] and not counts["no answer"]:
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


def _count(counts: dict[str, int], eg: Example, fit: Iterable[bool], max_words: int) -> None:
    fit = iter(fit)
    for (start, end), item in zip(gold_tokens(eg), answer_offsets(eg.reference)):
        is_fit = next(fit)
        if not item.answers:
            continue
        counts["without pieces"] += not is_fit or start < 0
        counts["too long"] += end - start > max_words
        first, last = item.answers[0][:2]
        counts["inside a token"] += eg.reference.char_span(first, last) is None
