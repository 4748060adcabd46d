from collections import Counter

import pytest

from spacy_luke.errors import ConfigError
from spacy_luke.metrics.answers import Answer, Answers
from spacy_luke.pipeline.thresholds import Goal, choose_thresholds


def answers(rows, n_gold):
    return Answers([Answer(*row) for row in rows], Counter(n_gold))


def choose(found, goal, labels=("A", "B"), least=0.0):
    return choose_thresholds(found, goal, labels, least)


def above(found, threshold):
    return [x for x in found.found if x.score >= threshold]


MIXED = answers(
    [("A", 0.9, True)] * 40
    + [("A", 0.7, True)] * 30
    + [("A", 0.6, False)] * 30
    + [("B", 0.3, True)] * 10,
    {"A": 80, "B": 40},
)


def test_by_default_the_threshold_has_the_best_f():
    chosen = choose(MIXED, Goal())
    assert chosen.by_label == {} and chosen.unreached == []
    assert chosen.threshold == pytest.approx(0.65)  # 2 * 70 / (70 + 120); with all, 2 * 80 / 230
    all_right = answers([("A", 0.2, True)] * 5, {"A": 5})
    assert choose(all_right, Goal()).threshold == 0.0


def test_a_wanted_precision_has_the_most_recall_and_a_wanted_recall_the_most_precision():
    chosen = choose(MIXED, Goal(precision=0.95))
    assert len(above(MIXED, chosen.threshold)) == 70
    chosen = choose(MIXED, Goal(recall=0.3))
    assert len(above(MIXED, chosen.threshold)) == 40
    chosen = choose(MIXED, Goal(recall=0.6))
    assert chosen.threshold == 0.0


def test_no_threshold_accepts_what_was_not_seen():
    """Answers below the least score were left out, and most are wrong."""
    sure = answers([("A", 0.99, True)] * 20, {"A": 20, "B": 20})
    for goal, lowest in ((Goal(), 0.01), (Goal(precision=0.9), 0.88), (Goal(recall=0.5), 0.01)):
        chosen = choose(sure, goal, least=0.01)
        assert chosen.threshold == pytest.approx((0.99 + lowest) / 2)
    chosen = choose(sure, Goal(recall=0.9, each_label=True), least=0.01)
    assert chosen.by_label == {"A": pytest.approx(0.5), "B": 0.01}  # B: all that was seen
    assert chosen.unreached == ["B"] and chosen.threshold == 0.01
    assert choose(answers([], {"A": 1}), Goal(), least=0.01).threshold == 0.01


def test_few_right_answers_do_not_promise_a_precision_that_their_scores_deny():
    lucky = answers([("A", 0.5, True)] * 3, {"A": 3})
    assert choose(lucky, Goal(precision=0.9)) is None
    sure = answers([("A", 0.95, True)] * 3, {"A": 3})
    assert choose(sure, Goal(precision=0.9)).threshold == pytest.approx(0.915)


def test_scores_below_the_lowest_that_was_seen_do_not_count_as_precise():
    for rare, threshold in ((0.97, 0.95), (0.95, 0.94)):
        found = answers([("A", rare, True)] * 2 + [("B", 0.4, False)] * 9, {"A": 2, "B": 9})
        chosen = choose(found, Goal(precision=0.95, each_label=True))
        assert chosen.by_label == {"A": pytest.approx(threshold), "B": None}
    # Where low scores turned out to be right, they are accepted.
    low = answers([("A", 0.98, True)] * 900 + [("A", 0.4, True)] * 9, {"A": 909})
    assert choose(low, Goal(precision=0.9)).threshold == pytest.approx(0.39)


@pytest.mark.parametrize("calibrated", [True, False])
def test_a_precision_is_not_reached_by_scores_alone(calibrated):
    wrong = answers([("A", 0.999, False)], {"A": 60})
    for each_label in (True, False):
        goal = Goal(precision=0.9, each_label=each_label)
        assert choose_thresholds(wrong, goal, ["A"], 0.0, calibrated) is None


def test_scores_that_are_not_calibrated_promise_nothing():
    found = answers([("A", 0.99, True)] * 8 + [("A", 0.99, False)] * 2, {"A": 8})
    goal = Goal(precision=0.85)
    assert choose_thresholds(found, goal, ["A"], 0.0, calibrated=True) is not None
    assert choose_thresholds(found, goal, ["A"], 0.0, calibrated=False) is None


def test_a_label_that_is_never_gold_is_neither_missed_nor_trusted():
    found = answers([("A", 0.9, True)] * 20 + [("B", 0.97, False), ("B", 0.4, False)], {"A": 20})
    for goal, least in ((Goal(recall=0.9, each_label=True), 0.01), (Goal(0.9, None, True), None)):
        chosen = choose(found, goal, ["A", "B", "C"], least=0.01)
        assert chosen.by_label["B"] == chosen.by_label["C"] == least
        assert (chosen.unreached, chosen.without_gold) == ([], ["B", "C"])


def test_equal_scores_are_not_separated():
    tied = answers([("A", 0.8, True), ("A", 0.8, False)] * 50, {"A": 50})
    assert choose(tied, Goal(precision=0.9)) is None


def test_every_label_has_its_own_threshold_and_labels_that_cannot_reach_it_are_named():
    found = answers(
        [("A", 0.9, True)] * 50 + [("A", 0.4, False)] * 50 + [("B", 0.9, False)] * 50,
        {"A": 50, "B": 9},
    )
    chosen = choose(found, Goal(precision=0.9, each_label=True))
    assert chosen.by_label == {"A": pytest.approx(0.65), "B": None}
    assert chosen.unreached == ["B"]
    chosen = choose(found, Goal(recall=0.9, each_label=True))
    assert chosen.by_label == {"A": pytest.approx(0.65), "B": 0.0}


def test_labels_without_answers_are_not_forgotten():
    found = answers([("A", 0.9, True)] * 50, {"A": 50, "B": 5})
    chosen = choose(found, Goal(precision=0.9, each_label=True), ["A", "B", "C"])
    assert chosen.by_label == {"A": pytest.approx(0.89), "B": None, "C": None}
    assert (chosen.unreached, chosen.without_gold) == (["B"], ["C"])
    chosen = choose(found, Goal(recall=0.9, each_label=True), ["A", "B", "C"])
    assert chosen.by_label == {"A": 0.0, "B": 0.0, "C": 0.0} and chosen.unreached == ["B"]
    assert choose(answers([], {"A": 1}), Goal(recall=0.9, each_label=True), ["A"]) is None
    assert choose(answers([], {"A": 1}), Goal()).threshold == 0.0


@pytest.mark.parametrize(
    "goal",
    [{"precision": 1.0}, {"recall": 0.0}, {"precision": 0.9, "recall": 0.9}, {"each_label": True}],
)
def test_goals_that_make_no_sense_are_refused(goal):
    with pytest.raises(ConfigError):
        Goal(**goal)
