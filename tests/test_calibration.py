"""Calibration on invented answers whose true probabilities are known."""

import numpy as np
import pytest

from spacy_luke import calibration
from spacy_luke.calibration import (
    LEAST_ANSWERS,
    calibrate,
    calibration_error,
    error_by_chance,
    fit_calibration,
    held_out_scores,
    logit,
    reliability,
    sigmoid,
)

NAMES = ["LOC", "PER"]


def invented(n: int, seed: int = 0):
    """Labels, probabilities three times too sure (in logits), and what is right. PER is worse."""
    rng = np.random.default_rng(seed)
    of_label = rng.integers(0, 2, n)
    true = rng.normal(1.0, 1.0, n) - 1.5 * of_label
    shown = sigmoid(3 * (true + 1.5 * of_label))
    right = rng.random(n) < sigmoid(true)
    return [NAMES[i] for i in of_label], of_label, shown, right.tolist(), sigmoid(true)


def test_scores_become_the_share_of_right_answers_of_each_label():
    labels, _, shown, right, _ = invented(4000)
    table = fit_calibration(labels, shown, right)
    _, of_label, shown, right, true = invented(4000, seed=1)
    scores = calibrate(table, NAMES, of_label, shown)
    before = calibration_error(shown, right)
    after = calibration_error(scores, right)
    assert before > 0.15 and after < 0.03
    assert after < 3 * error_by_chance(scores)
    assert np.abs(scores - true).mean() < 0.05
    for label in (0, 1):
        of = of_label == label
        assert abs(scores[of].mean() - np.mean(np.asarray(right)[of])) < 0.03


def test_the_order_of_one_label_s_answers_is_kept_also_beyond_the_data():
    labels, _, shown, right, _ = invented(500)
    table = fit_calibration(labels, shown, right)
    p = np.linspace(1e-5, 1 - 1e-5, 999)
    for label in (0, 1):
        scores = calibrate(table, NAMES, np.full(999, label), p)
        assert (np.diff(scores) > 0).all() and scores[0] > 0 and scores[-1] < 1


def test_few_answers_are_not_calibrated_and_all_right_or_all_wrong_is_no_error():
    assert (
        fit_calibration(["A"] * (LEAST_ANSWERS - 1), [0.5] * (LEAST_ANSWERS - 1), [True] * 49)
        is None
    )
    for right in (True, False):
        table = fit_calibration(["A"] * 60, np.linspace(0.1, 1.0, 60), [right] * 60)
        of_label, shown = np.asarray([0, 0, 1, 1]), np.asarray([0.1, 1.0, 0.1, 1.0])
        scores = calibrate(table, ["A", "unseen"], of_label, shown)
        assert scores.min() > 0 and scores.max() < 1
        assert scores.min() > 0.8 if right else scores.max() < 0.2


@pytest.mark.parametrize("seen", [[0.9996, 0.9999], [0.9], [0.3, 0.9], [0.011]])
def test_answers_that_were_left_out_get_no_higher_score(seen):
    """Where the others are all right, the line alone would make them as good."""
    table = fit_calibration(["A"] * 300, seen * (300 // len(seen)), [True] * 300, least=0.01)
    shown = np.asarray([1e-6, 1e-4, 0.0099, *seen])
    scores = calibrate(table, ["A"], np.zeros(len(shown), dtype=int), shown)
    assert (np.diff(scores) > 0).all() and scores[3] > 0.9
    assert (scores[:3] <= shown[:3] * (1 + 1e-9)).all()


def test_answers_that_were_left_out_are_not_better_than_wrong_ones():
    table = fit_calibration(["A"] * 300, [0.011, 0.9] * 150, [False] * 300, least=0.01)
    shown = np.asarray([1e-6, 0.0099, 0.011, 0.9])
    scores = calibrate(table, ["A"], np.zeros(4, dtype=int), shown)
    assert (np.diff(scores) > 0).all()


def test_equal_probabilities_have_the_share_of_right_answers():
    table = fit_calibration(["A"] * 100, [0.9] * 100, [True] * 30 + [False] * 70)
    scores = calibrate(table, ["A"], np.zeros(1, dtype=int), np.asarray([0.9]))
    assert scores[0] == pytest.approx(0.3, abs=0.02)


def test_the_error_is_computed_as_by_hand():
    scores, right = [0.95, 0.91, 0.15, 1.0], [True, False, False, True]
    assert [tuple(x) for x in reliability(scores, right)] == [
        (0.1, 1, 0.15, 0.0),
        (0.9, 3, pytest.approx(2.86 / 3), pytest.approx(2 / 3)),
    ]
    expected = (1 * 0.15 + 3 * (2.86 / 3 - 2 / 3)) / 4
    assert calibration_error(scores, right) == pytest.approx(expected)
    assert calibration_error([], []) is None


def test_the_error_by_chance_is_that_of_exact_scores():
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    errors = [calibration_error(scores, rng.random(400) < scores) for _ in range(200)]
    assert error_by_chance(scores) == pytest.approx(np.mean(errors), rel=0.1)


def test_held_out_scores_are_as_good_as_those_of_other_answers():
    labels, _, shown, right, _ = invented(4000)
    table = fit_calibration(labels, shown, right)
    _, of_label, others, others_right, _ = invented(4000, seed=1)
    fresh = calibration_error(calibrate(table, NAMES, of_label, others), others_right)
    held_out = calibration_error(held_out_scores(labels, shown, right), right)
    assert held_out == pytest.approx(fresh, abs=0.02)
    names = [f"L{i}" for i in range(60)]
    rng = np.random.default_rng(0)
    assert held_out_scores(names, rng.random(60), (rng.random(60) < 0.5).tolist()) is None


@pytest.mark.parametrize("rare", [0.5, 0.1, 0.02])
def test_exact_probabilities_stay_nearly_what_they_are_if_right_answers_are_rare(rare):
    rng = np.random.default_rng(0)
    true = rng.beta(0.05 * rare, 0.05 * (1 - rare), 40_000)
    true = true[true > 0.01]  # as in tuning
    right = rng.random(len(true)) < true
    table = fit_calibration(["A"] * len(true), true, right.tolist())
    scores = calibrate(table, ["A"], np.zeros(len(true), dtype=int), true)
    assert np.abs(scores - true).mean() < 0.03
    high = calibrate(table, ["A"], np.zeros(1, dtype=int), np.asarray([0.99]))
    assert high[0] > 0.9
    assert calibration_error(scores, right) < 0.02 + 2 * error_by_chance(scores)


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-7, 1e-5])
def test_nearly_equal_probabilities_make_valid_scores(spread):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(50, 700))
        p = 0.9 + spread * rng.random(n)
        labels = [NAMES[i] for i in rng.integers(0, 2, n)]
        table = fit_calibration(labels, p, (rng.random(n) < 0.7).tolist())
        scores = calibrate(table, NAMES, np.zeros(n, dtype=int), p)
        assert np.abs(scores - 0.7).max() < 0.35


def test_every_label_has_a_slope_of_its_own():
    rng = np.random.default_rng(0)
    true, of_label = rng.normal(0.5, 1.5, 6000), rng.integers(0, 2, 6000)
    shown = sigmoid(true * np.asarray([4.0, 1.5])[of_label])
    right = (rng.random(6000) < sigmoid(true)).tolist()
    table = fit_calibration([NAMES[i] for i in of_label], shown, right)
    assert table["slopes"]["LOC"] == pytest.approx(1 / 4, rel=0.1)
    assert table["slopes"]["PER"] == pytest.approx(1 / 1.5, rel=0.1)


def test_a_label_with_few_answers_has_nearly_the_line_of_all():
    labels, of_label, shown, right, _ = invented(4000)
    labels[:4], right[:4] = ["RARE"] * 4, [False] * 4
    table = fit_calibration(labels, shown, right)
    of_all, own = (
        np.asarray([table["shift"], table["slope"]]),
        np.asarray([table["shifts"]["RARE"], table["slopes"]["RARE"]]),
    )
    assert own[0] < of_all[0] and np.abs(own - of_all).max() < 1.5
    unseen = calibrate(table, ["unseen"], np.zeros(1, dtype=int), np.asarray([0.9]))
    assert unseen[0] == pytest.approx(sigmoid(of_all[0] + of_all[1] * np.log(9)))


def test_no_other_lines_fit_better():
    """The loss, with its ridges and targets, written out."""
    labels, of_label, shown, right, _ = invented(300)
    right, x = np.asarray(right), logit(shown)
    table = fit_calibration(labels, shown, right.tolist())
    mean, n = x.mean(), right.sum()
    target = np.where(right, (n + 1) / (n + 2), 1 / (300 - n + 2))

    def loss(lines):
        of_all, own = lines[0], lines[1:] - lines[0]
        z = (lines[1:][of_label] * np.stack([np.ones_like(x), x - mean], 1)).sum(1)
        likelihood = -(target * np.log(sigmoid(z)) + (1 - target) * np.log(sigmoid(-z))).sum()
        return likelihood + (own**2 @ [2.0, 20.0]).sum() / 2 + (of_all[1] - 1) ** 2 / 2

    found = np.asarray(
        [
            [table["shift"], table["slope"]],
            *([table["shifts"][name], table["slopes"][name]] for name in NAMES),
        ]
    )
    found[:, 0] += found[:, 1] * mean
    best = loss(found)
    for row in range(3):
        for column in range(2):
            for change in (-0.02, 0.02):
                other = found.copy()
                other[row, column] += change
                assert loss(other) > best


def test_scores_that_say_the_opposite_keep_their_order_and_their_mean():
    shown = np.linspace(0.2, 0.8, 400)
    right = (np.random.default_rng(0).random(400) < 1 - shown).tolist()
    table = fit_calibration(["A"] * 400, shown, right)
    scores = calibrate(table, ["A"], np.zeros(400, dtype=int), shown)
    assert (np.diff(scores) > 0).all() and table["slopes"]["A"] >= 0.05
    assert scores.mean() == pytest.approx(np.mean(right), abs=0.03)


def test_the_mean_answer_of_a_label_keeps_its_score_where_its_slope_is_raised():
    """Not that of all answers, which may be far away."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0.02, 0.2, 400)
    right = [*(rng.random(400) < 0.6 - 2 * low), *[True] * 400]
    table = fit_calibration(["LOW"] * 400 + ["HIGH"] * 400, [*low, *[0.999999] * 400], right)
    assert table["slopes"]["LOW"] == 0.05
    scores = calibrate(table, ["LOW"], np.zeros(400, dtype=int), low)
    assert scores.mean() == pytest.approx(np.mean(right[:400]), abs=0.03)


@pytest.mark.parametrize("n", [100, 10_000])
@pytest.mark.parametrize(
    ("low", "high"), [(0.1, 0.9), (0.9, 0.9), (0.5, 0.5), (0.2, 0.6), (0.9, 0.1)]
)
def test_probabilities_of_0_and_1_have_the_share_of_right_answers(low, high, n):
    """A steep line is sure of all of them."""
    right = [i < round(n * share) for share in (low, high) for i in range(n)]
    table = fit_calibration(["A"] * 2 * n, [0.0] * n + [1.0] * n, right)
    scores = calibrate(table, ["A"], np.zeros(2, dtype=int), np.asarray([0.0, 1.0]))
    if low < high:
        assert scores == pytest.approx([low, high], abs=0.03)
    else:  # slopes are positive
        mean = np.asarray((low + high) / 2)
        assert scores[0] < mean < scores[1]
        assert logit(scores).mean() == pytest.approx(logit(mean), abs=0.1)


def test_many_answers_of_many_labels_take_few_steps(monkeypatch):
    steps = []
    newton = calibration._newton_steps
    monkeypatch.setattr(calibration, "_newton_steps", lambda *x: steps.append(1) or newton(*x))
    rng = np.random.default_rng(0)
    labels = [f"L{i}" for i in rng.integers(0, 200, 20_000)]
    true = rng.normal(0, 2, 20_000)
    fit_calibration(labels, sigmoid(2 * true), (rng.random(20_000) < sigmoid(true)).tolist())
    assert len(steps) < 20


def test_logits_are_finite():
    assert np.isfinite(logit(np.asarray([0.0, 1.0]))).all()
