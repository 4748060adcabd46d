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
    far: list[Score] = []
    found: Score | None = None
    width = _WIDTH
    while True:
        tried = {score.bias for score in scores}
        most = round(width / _STEP)
        new = [bias for i in range(-most, most + 1) if (bias := i * _STEP) not in tried]
        for bias in tqdm(new, f"{trial.name}: {setting}", leave=False, disable=None):
            scores.append(_tried(trial, setting, bias))
        scores.sort()
        reaching = [score for score in scores if worth(score)[0]]
        best = choose(reaching) if reaching else max(scores, key=lambda x: (x.r, x.f, -abs(x.bias)))
        # A wider range is no reason for a larger bias, unless it is better, or the smaller one was
        # at an end.
        if found is None or worth(best) > worth(found) or abs(found.bias) == width / 2:
            found = best
        if width >= _MOST:
            break
        at = {score.bias: score for score in scores}
        changing = [end for end in (-width, width) if at[end][1:] != at[end / 2][1:]]
        if not reaching or not found.f:
            # Answers that are far away may be right, and reach it.
            if not changing:
                far = far or [_tried(trial, setting, end) for end in (_MOST, -_MOST)]
                if all(worth(score) <= worth(found) for score in far):
                    break
        # An end that is as good as the best may lead to better ones, if answers still change there.
        elif abs(found.bias) < width and (
            best.f == 1.0 or all(worth(at[end]) != worth(best) for end in changing)
        ):
            break
        width *= 2
    trial.set(**{setting: found.bias})


def _tried(trial: Trial, setting: str, bias: float) -> Score:
    trial.set(**{setting: bias})
    _, r, f = trial.answers().prf()
    return Score(bias, r, f)


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
