"""Scores of ``Doc._.completions``, the entities that belong in the gaps of queries."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from spacy.training import Example
from spacy.util import registry

from ..annotations.queries import (
    check_same_queries,
    completion_offsets,
    has_completions,
    query_texts,
)
from .answers import Answer, Answers, calibration_scores
from .squad import AnswerScore, mean_score, score_answerable

COMPLETION = "completion"
"""The label of all completions."""


class CompletedQuery(NamedTuple):
    """result: of the best completion, or of "" if there is none. score: of it, or None."""

    result: AnswerScore
    score: float | None


@registry.scorers("spacy-luke.luke_cloze_scorer.v1")
def make_luke_cloze_scorer(prefix: str = "cloze") -> Callable[..., dict[str, Any]]:
    """Exact match and F1 of completions: :func:`cloze_score`.

    prefix: of the names of the scores, before "_"; another one if a pipeline has several such
        components.
    """
    return partial(cloze_score, prefix=prefix)


def cloze_score(
    examples: Iterable[Example], *, prefix: str = "cloze", **kwargs: Any
) -> dict[str, Any]:
    """Exact match and F1 of the best completions, from 0 to 1, as the official metric of ReCoRD.

    Texts are compared as in SQuAD 1.1, with each right answer; the best counts. Scored are the
    queries whose right answers are known. A query without a completion counts as wrong. prefix: of
    the names of the scores.

    - ``cloze_em``, ``cloze_f1``;
    - ``cloze_queries``: the number of scored queries.

    And :func:`.calibration_scores` of the best completions. All are None without scored queries.
    Raises InputError if the predicted document has other queries than the reference.
    """
    queries = list(_queries(examples))
    mean = mean_score(x.result for x in queries)
    values = {"em": mean.exact, "f1": mean.f1, "queries": mean.questions or None}
    named = {f"{prefix}_{name}": value for name, value in values.items()}
    return {**named, **calibration_scores(_answers(queries), prefix)}


def cloze_answers(examples: Iterable[Example]) -> Answers:
    """The best completions with their scores; those that match a right answer exactly are right.
    See :func:`cloze_score`."""
    return _answers(_queries(examples))


def are_asked(examples: Iterable[Example]) -> bool:
    """Whether a predicted document has a query, or no reference has one that is scored."""
    examples = list(examples)
    wanted = any(has_completions(eg.reference) and query_texts(eg.reference) for eg in examples)
    return not wanted or any(query_texts(eg.predicted) for eg in examples)


def _answers(queries: Iterable[CompletedQuery]) -> Answers:
    answers = Answers()
    for result, score in queries:
        answers.n_gold.update([COMPLETION])
        if score is not None:
            answers.found.append(Answer(COMPLETION, score, result.exact == 1.0))
    return answers


def _queries(examples: Iterable[Example]) -> Iterator[CompletedQuery]:
    for example in examples:
        gold, predicted = example.reference, example.predicted
        if not has_completions(gold):
            continue
        check_same_queries(predicted, gold)
        right = completion_offsets(gold)
        for golds, found in zip(right, completion_offsets(predicted) or [[]] * len(right)):
            best = found[0] if found else None
            if not golds:
                continue
            if best is None:  # also where a right answer is normalised to nothing
                yield CompletedQuery(AnswerScore(0.0, 0.0, True, False), None)
                continue
            result = score_answerable(best.text, [x.text for x in golds])
            yield CompletedQuery(result, best.score)
