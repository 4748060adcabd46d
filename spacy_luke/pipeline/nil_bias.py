"""Choose the biases of logits on development data: of "no entity" or "NIL", and of known spans."""

from collections.abc import Sequence
from typing import NamedTuple

from tqdm import tqdm

from .thresholds import Goal
from .trial import Trial

_STEP = 0.25
_WIDTH, _MOST = 3.0, 48.0
"""Biases from minus to plus the first are tried. If none gives a right answer or the recall that is
wanted, or an end is as good as the best, the range is doubled, up to the second, or until answers
change no more."""


class Score(NamedTuple):
    """Recall and F, from 0 to 1, with a bias."""

    bias: float
    r: float
    f: float


def choose_bias(trial: Trial, goal: Goal, setting: str = "nil_bias") -> None:
    """Set a bias with the best F or, if a recall is wanted, the best F of those that reach it.

    setting: its name in the component.
    """

    def worth(score: Score) -> tuple[bool, float]:
        reaches = goal.recall is None or score.r >= goal.recall
        return reaches, score.f if reaches else score.r

    scores: list[Score] = []
    found: Score | None = None
    width = _WIDTH
    while True:
        tried = {score.bias for score in scores}
        most = round(width / _STEP)
        new = [bias for i in range(-most, most + 1) if (bias := i * _STEP) not in tried]
        for bias in tqdm(new, f"{trial.name}: {setting}", leave=False, disable=None):
            trial.set(**{setting: bias})
            _, r, f = trial.answers().prf()
            scores.append(Score(bias, r, f))
        scores.sort()
        reaching = [score for score in scores if worth(score)[0]]
        best = choose(reaching) if reaching else max(scores, key=lambda x: (x.r, x.f, -abs(x.bias)))
        # A wider range is no reason for a larger bias, unless it is better, or the smaller one was
        # at an end.
        if found is None or worth(best) > worth(found) or abs(found.bias) == width / 2:
            found = best
        # An end that is as good as the best may lead to better ones, if answers still change there.
        at = {score.bias: score for score in scores}
        may_rise = not reaching or any(
            best.f < 1.0 and worth(at[end]) == worth(best) and at[end][1:] != at[end / 2][1:]
            for end in (-width, width)
        )
        if (found.f and abs(found.bias) < width and not may_rise) or width >= _MOST:
            break
        if not found.f and width == _WIDTH and not _is_right_at_ends(trial, setting):
            break
        width *= 2
    trial.set(**{setting: found.bias})


def _is_right_at_ends(trial: Trial, setting: str) -> bool:
    """Whether an answer is right with the largest or the smallest bias."""
    for bias in (_MOST, -_MOST):
        trial.set(**{setting: bias})
        if trial.answers().prf()[2]:
            return True
    return False


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
