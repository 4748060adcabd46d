"""Charts of a page: the histogram of scores, and how often scores are right."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spacy.language import Language
from spacy.training import Example

if TYPE_CHECKING:
    from ...calibration import Bin

N_BARS = 20
"""Number of bars in the histogram of scores from 0 to 1."""


class Bar(NamedTuple):
    """A bar of the histogram: entities with scores from ``low`` that agree, that do not, and that
    have nothing to be compared with."""

    low: float
    agreed: int
    spurious: int
    plain: int

    @property
    def n(self) -> int:
        return self.agreed + self.spurious + self.plain


class Curve(NamedTuple):
    """How often the answers of a component are right, by score. error, by_chance: the calibration
    error, and what of it is to be expected of exact scores; from 0 to 1."""

    component: str
    bins: "list[Bin]"
    error: float
    by_chance: float


def histogram(scored: Iterable[tuple[float, bool | None]]) -> list[Bar]:
    """Count (score, whether the entity agrees, None if it is not compared) in N_BARS bars; empty
    without scores."""
    counts = Counter((min(int(score * N_BARS), N_BARS - 1), agrees) for score, agrees in scored)
    if not counts:
        return []
    return [
        Bar(i / N_BARS, counts[i, True], counts[i, False], counts[i, None]) for i in range(N_BARS)
    ]


def reliability_curves(nlp: Language, predictions: Sequence[Example]) -> list[Curve]:
    """One per component whose answers have scores and annotation."""
    from ...calibration import calibration_error, error_by_chance, reliability
    from ...pipeline.classifier_pipe import ClassifierPipe

    curves = []
    for name, pipe in nlp.pipeline:
        answers = pipe.answers(predictions) if isinstance(pipe, ClassifierPipe) else None
        if answers is None or not answers.found or not answers.n_gold:
            continue
        scores, right = answers.scores, answers.right
        error = calibration_error(scores, right) or 0.0
        curves.append(Curve(name, reliability(scores, right), error, error_by_chance(scores)))
    return curves
