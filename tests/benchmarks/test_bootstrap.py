"""The paired bootstrap and the scores it rests on."""

import numpy as np
import pytest

from benchmarks.bootstrap import bootstrap, count, mean_f1, paired_bootstrap
from benchmarks.scoring import Entity, Scored, choose_bias, macro_prf, prf

GOLD = [Entity(i, 0, 1, "A") for i in range(40)]
HALF = GOLD[:20]


def test_mean_f1_on_all_documents_is_the_mean_of_the_seeds():
    counts = count([GOLD, HALF], GOLD, 40)
    expected = (prf(GOLD, GOLD).f + prf(HALF, GOLD).f) / 2
    assert mean_f1(counts, np.ones((1, 40)))[0] == pytest.approx(expected)


def test_equal_systems_differ_by_nothing():
    counts = count([HALF], GOLD, 40)
    assert paired_bootstrap(counts, counts, 200)[:3] == (0.0, 0.0, 0.0)


def test_a_clear_gain_excludes_zero_and_has_the_sign_of_the_second():
    found = paired_bootstrap(count([HALF], GOLD, 40), count([GOLD], GOLD, 40), 1500)
    assert found.value == pytest.approx(100 - prf(HALF, GOLD).f)
    assert 0 < found.low < found.value < found.high


def test_the_interval_of_one_system_is_that_of_its_f1():
    found = bootstrap(count([HALF], GOLD, 40), 1500)
    assert found.value == pytest.approx(prf(HALF, GOLD).f)
    # 20 of 40 right: recall is drawn as 0.5 +- 2 x 0.079, and F1 is 2 r / (1 + r).
    assert found.low == pytest.approx(200 * 0.345 / 1.345, abs=3)
    assert found.high == pytest.approx(200 * 0.655 / 1.655, abs=3)


def test_a_wrong_label_or_document_is_wrong():
    predicted = [Entity(0, 0, 1, "B"), Entity(1, 0, 2, "A"), Entity(2, 0, 1, "A")]
    assert prf(predicted, GOLD[:4]) == pytest.approx((100 / 3, 25, 200 / 7))


def test_the_bias_is_taken_off_no_entity_and_chosen_by_f1():
    scored = Scored(
        labels=("A",),
        offsets=np.asarray([0, 2, 4]),
        logits=np.asarray([[0.0, 1.0], [0.0, 2.6]]),
        starts=np.asarray([0, 2]),
        ends=np.asarray([1, 4]),
    )
    gold = [Entity(0, 0, 1, "A"), Entity(1, 0, 1, "A")]
    assert scored.entities(0.0) == []
    assert scored.entities(1.25) == [Entity(0, 0, 1, "A")]
    assert scored.entities(3.0) == [Entity(0, 0, 1, "A"), Entity(1, 0, 2, "A")]
    assert choose_bias(scored, gold) == 1.25
    assert scored.recall(gold) == 50.0


def test_labels_of_gold_spans_are_told_without_no_entity():
    gold = [Entity(0, 0, 2, "A"), Entity(1, 0, 1, "B"), Entity(1, 1, 2, "A")]
    places = {"labels": ("A", "B"), "offsets": np.asarray([0, 2, 4])}
    spans = Scored(
        **places,
        logits=np.asarray([[0.0, 1.0, 9.0], [2.0, 1.0, 9.0]]),  # "no entity" is last
        starts=np.asarray([0, 2]),
        ends=np.asarray([2, 3]),
    )
    assert spans.labels_of(gold) == ["B", "A", ""]
    # O, and B and I of each label. The first span begins as A, but is B as a whole.
    rows = [[9, 1, 0, 0, 0], [9, 0, 0, 0, 3], [9, 0, 0, 0, 2], [9, 0, 1, 0, 0]]
    tokens = Scored(**places, logits=np.asarray(rows, dtype=float))
    assert tokens.labels_of(gold) == ["B", "B", "A"]


@pytest.mark.parametrize("logit, bias", [(2.6, 2.75), (8.1, 8.25), (1000.0, 0.0)])
def test_the_bias_is_looked_for_as_far_as_it_helps(logit, bias):
    scored = Scored(
        labels=("A",),
        offsets=np.asarray([0, 2]),
        logits=np.asarray([[0.0, logit]]),
        starts=np.asarray([0]),
        ends=np.asarray([1]),
    )
    assert choose_bias(scored, [Entity(0, 0, 1, "A")]) == bias


# Two documents of A, one of B; the run has the A of the first wrong way round, B right.
TWO_LABELS = [(0, 0, 1, "A"), (1, 0, 1, "A"), (2, 0, 1, "B")]
HALF_OF_A = [(0, 1, 0, "A"), (1, 0, 1, "A"), (2, 0, 1, "B")]


def test_macro_f1_is_the_mean_of_the_labels():
    assert macro_prf(HALF_OF_A, TWO_LABELS) == pytest.approx((75, 75, 75))
    assert prf(HALF_OF_A, TWO_LABELS).f == pytest.approx(200 / 3)


def test_drawn_macro_f1_goes_over_the_labels_that_are_drawn():
    counts = count([HALF_OF_A], TWO_LABELS, 3, classes=["A", "B", "C"])
    weights = np.asarray([[1, 1, 1], [2, 1, 0], [0, 0, 3], [3, 0, 0]], dtype=float)
    # C is never in gold. Without the last document B is not either; of three As one is right.
    assert mean_f1(counts, weights) == pytest.approx([75, 100 / 3, 100, 0])


def test_the_interval_of_macro_f1_holds_its_difference():
    right = count([TWO_LABELS], TWO_LABELS, 3, classes=["A", "B"])
    half = count([HALF_OF_A], TWO_LABELS, 3, classes=["A", "B"])
    found = paired_bootstrap(half, right, 500)
    assert found.value == pytest.approx(25)
    assert found.low == 0 and found.high == 100  # of three draws of the same document
