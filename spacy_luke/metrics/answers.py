"""The answers of a component with their scores, and which of them are right."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..calibration import calibration_error, error_by_chance, reliability


class Answer(NamedTuple):
    """A predicted entity, type or relation."""

    label: str
    score: float
    right: bool


@dataclass
class Answers:
    """All answers about some documents, in document order. n_gold: gold annotations per label."""

    found: list[Answer] = field(default_factory=list)
    n_gold: Counter[str] = field(default_factory=Counter)

    @property
    def labels(self) -> list[str]:
        return [x.label for x in self.found]

    @property
    def scores(self) -> list[float]:
        return [x.score for x in self.found]

    @property
    def right(self) -> list[bool]:
        return [x.right for x in self.found]

    def of_label(self, label: str) -> "Answers":
        """The answers with a label, and its gold annotations."""
        found = [x for x in self.found if x.label == label]
        return Answers(found, Counter({label: self.n_gold[label]}))

    def prf(self) -> tuple[float, float, float]:
        """Precision, recall and F, from 0 to 1."""
        n_right, n_found, n_gold = sum(self.right), len(self.found), self.n_gold.total()
        p, r = n_right / max(n_found, 1), n_right / max(n_gold, 1)
        return p, r, 2 * p * r / (p + r) if p + r else 0.0


def calibration_scores(answers: Answers, prefix: str) -> dict[str, Any]:
    """How well scores agree with the share of right answers, for a scorer's result:

    - ``{prefix}_calibration_error``: :func:`.calibration_error`, from 0 to 1;
    - ``{prefix}_calibration_error_by_chance``: what remains if all scores are exact;
    - ``{prefix}_reliability``: the bins, each (lower limit, answers, mean score, share right).

    All are None without answers, or without any gold annotation.
    """
    names = [f"{prefix}_{x}" for x in ("calibration_error", "calibration_error_by_chance")]
    if not answers.found or not answers.n_gold:
        return dict.fromkeys([*names, f"{prefix}_reliability"])
    scores, right = answers.scores, answers.right
    return {
        names[0]: calibration_error(scores, right),
        names[1]: error_by_chance(scores),
        f"{prefix}_reliability": [list(x) for x in reliability(scores, right)],
    }
