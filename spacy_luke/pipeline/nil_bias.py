"""Choose the biases of logits on development data: of "no entity" or "NIL", and of known spans."""

from collections.abc import Sequence
from typing import NamedTuple

from tqdm import tqdm

from .thresholds import Goal
from .trial import Trial

_STEP = 0.25
_WIDTH, _MOST = 3.0, 48.0
"""Biases up to the first are tried. If none gives a right answer, or the last of them is as good as
the best, the range is doubled, up to the second."""


class Score(NamedTuple):
    """Recall and F, from 0 to 1, with a bias."""

    bias: float
    r: float
    f: float


def choose_bias(trial: Trial, goal: Goal, setting: str = "nil_bias") -> None:
    """Set a bias with the best F or, if a recall is wanted, the best F of those that reach it.

    setting: its name in the component.
    """
    scores: list[Score] = []
    low, high = -_WIDTH, _WIDTH
    while True:
        tried = {score.bias for score in scores}
        values = [i * _STEP for i in range(round(low / _STEP), round(high / _STEP) + 1)]
        new = [bias for bias in values if bias not in tried]
        for bias in tqdm(new, f"{trial.name}: {setting}", leave=False, disable=None):
            trial.set(**{setting: bias})
            _, r, f = trial.answers().prf()
            scores.append(Score(bias, r, f))
        scores.sort()
        reaching = [score for score in scores if goal.recall is None or score.r >= goal.recall]
        best = choose(reaching) if reaching else max(scores, key=lambda score: score.r)
        may_rise = best.f < 1.0 and best.f in (scores[0].f, scores[-1].f)
        if (best.f and best.bias not in (low, high) and not may_rise) or high >= _MOST:
            break
        low, high = 2 * low, 2 * high
    trial.set(**{setting: best.bias})


def choose(scores: Sequence[Score]) -> Score:
    """The bias with the best F. Of consecutive biases with the same F the middle one is chosen,
    because small changes of it make no difference; of several such stretches, the longest. Ties are
    decided by the distance to 0, also if all biases have the same F.

    Biases -1, 0, 1, 2, 3 with F 0.8, 0.9, 0.9, 0.9, 0.7: the bias 1 is chosen.
    """
    best = max(score.f for score in scores)
    stretches: list[list[Score]] = [[]]
    for score in scores:
        if score.f == best:
            stretches[-1].append(score)
        elif stretches[-1]:
            stretches.append([])
    if len(stretches[0]) == len(scores):
        return min(scores, key=lambda score: abs(score.bias))
    stretches = [stretch for stretch in stretches if stretch]
    longest = max(len(stretch) for stretch in stretches)
    middles = [
        stretch[i]
        for stretch in stretches
        if len(stretch) == longest
        for i in {(longest - 1) // 2, longest // 2}
    ]
    return min(middles, key=lambda score: (abs(score.bias), score.bias))
