"""The official metric of SQuAD 1.1 and 2.0: exact match, F1, and the best threshold of "no answer".

Rajpurkar et al. (2016, "SQuAD: 100,000+ Questions", section 6.1); Rajpurkar, Jia and Liang (2018,
"Know What You Don't Know", section 5). All values are from 0 to 1; the official script prints
percentages.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


class AnswerScore(NamedTuple):
    """exact, f1: the best over all gold answers. answerable: whether there is a gold answer.
    answered: whether the prediction is not empty."""

    exact: float
    f1: float
    answerable: bool
    answered: bool


class MeanScore(NamedTuple):
    """Means over questions; None if there are no questions."""

    exact: float | None
    f1: float | None
    questions: int


class Best(NamedTuple):
    """The best mean that a threshold reaches. Answers whose score of "no answer" is at most
    ``threshold`` are kept; None means that none is kept."""

    value: float
    threshold: float | None


def normalize_answer(text: str) -> str:
    """Lower case without ASCII punctuation and the articles a, an and the; white space is joined.

    As in the official script for all languages, so other articles and punctuation remain."""
    plain = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def score_answer(prediction: str, golds: Iterable[str]) -> AnswerScore:
    """Compare a prediction with all gold answers.

    An empty prediction means "no answer", and is right if there are no gold answers. Gold answers
    of which normalisation leaves nothing are ignored if there are others."""
    golds = list(golds)
    kept = [x for x in map(normalize_answer, golds) if x] or [""]
    found = normalize_answer(prediction)
    exact = max(float(found == gold) for gold in kept)
    f1 = max(_f1(found.split(), gold.split()) for gold in kept)
    return AnswerScore(exact, f1, bool(golds), bool(prediction))


def score_answerable(prediction: str, golds: Iterable[str]) -> AnswerScore:
    """Compare a prediction with all gold answers, of which there is at least one, as SQuAD 1.1 and
    ReCoRD do: none of them is ignored, and F1 is 0 without a common word."""
    kept = [normalize_answer(x) for x in golds]
    found = normalize_answer(prediction)
    exact = max(float(found == gold) for gold in kept)
    f1 = max(_f1(found.split(), gold.split()) for gold in kept) if found else 0.0
    return AnswerScore(exact, f1, True, bool(prediction))


def _f1(found: Sequence[str], gold: Sequence[str]) -> float:
    """F1 of bags of words. If one of them is empty, 1 if both are, else 0."""
    if not found or not gold:
        return float(not found and not gold)
    n_common = (Counter(found) & Counter(gold)).total()
    # 2 p r / (p + r) with p = n / n_found and r = n / n_gold
    return 2 * n_common / (len(found) + len(gold))


def mean_score(scores: Iterable[AnswerScore]) -> MeanScore:
    """Exact match and F1 over questions."""
    scores = list(scores)
    if not scores:
        return MeanScore(None, None, 0)
    n = len(scores)
    return MeanScore(sum(x.exact for x in scores) / n, sum(x.f1 for x in scores) / n, n)


def best_threshold(
    scores: Sequence[AnswerScore], no_answer: Sequence[float], of: Literal["exact", "f1"]
) -> Best | None:
    """The threshold of "no answer" with the best mean; None without questions.

    no_answer: per question, the score that it has no answer, of any range. of: the mean.

    Every value of ``no_answer`` is tried in ascending order, and the first best one is chosen. At
    first no answer is kept, so exactly the questions without gold answers are right. Keeping an
    answer adds its value; to a question without gold answers it adds -1. Predictions that are empty
    change nothing. Questions with equal values are kept together, as no threshold separates them.
    (The official script separates them, so its best value depends on their order.)
    """
    if not scores:
        return None
    total = best = float(sum(not x.answerable for x in scores))
    threshold = None
    rows = sorted(zip(no_answer, scores, strict=True), key=lambda row: row[0])
    for value, group in groupby(rows, key=lambda row: row[0]):
        total += sum(_gain(score, getattr(score, of)) for _, score in group)
        if total > best:
            best, threshold = total, value
    return Best(best / len(scores), threshold)


def _gain(score: AnswerScore, value: float) -> float:
    """What a question adds to the total if its prediction is kept instead of "no answer"."""
    return value if score.answerable else -float(score.answered)
