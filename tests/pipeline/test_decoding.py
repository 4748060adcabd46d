import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_luke.pipeline.confidence import Confidence
from spacy_luke.pipeline.decoding import decode, select_disjoint
from spacy_luke.ties import SCORE_TOLERANCE, levels, likeliest


def least(threshold: float) -> Confidence:
    return Confidence(["A", "B"], threshold, {}, None)


ANY = least(0.0)
ONE_DOC = np.zeros(100, dtype=np.int64)

spans = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 6)).map(lambda x: (x[0], x[0] + x[1])),
    max_size=40,
)


def greedy(candidates: list[tuple[int, int]], taken: set[int]) -> list[int]:
    accepted, used = [], set(taken)
    for i, (start, end) in enumerate(candidates):
        if not used & set(range(start, end)):
            used |= set(range(start, end))
            accepted.append(i)
    return accepted


@given(spans, st.sets(st.integers(0, 26)))
@settings(max_examples=300, deadline=None)
def test_rounds_accept_what_a_greedy_loop_accepts(candidates, blocked):
    table = np.asarray(candidates, dtype=np.int64).reshape(-1, 2)
    taken = np.zeros(27, dtype=bool)
    taken[list(blocked)] = True
    result = select_disjoint(table[:, 0], table[:, 1], taken)
    assert result.tolist() == greedy(candidates, blocked)


def test_flat_decoding_prefers_the_larger_raw_logit_not_the_larger_probability():
    logits = np.asarray([[5.0, 4.9, 0.0], [4.0, -9.0, -9.0]])
    rows, *_ = decode(
        logits, np.asarray([0, 1]), np.asarray([2, 3]), ONE_DOC[:2], 0.0, ANY, flat=True
    )
    assert rows.tolist() == [0]


def test_nested_decoding_keeps_overlapping_spans():
    logits = np.asarray([[5.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    rows, *_ = decode(
        logits, np.asarray([0, 1]), np.asarray([2, 3]), ONE_DOC[:2], 0.0, ANY, flat=False
    )
    assert rows.tolist() == [0, 1]


def test_nil_bias_turns_nil_into_a_label_and_back():
    logits = np.asarray([[1.0, 0.0, 1.5]])
    bounds = np.asarray([0]), np.asarray([1]), ONE_DOC[:1]
    assert len(decode(logits, *bounds, 0.0, ANY, flat=True)[1]) == 0
    assert decode(logits, *bounds, 1.0, ANY, flat=True)[1].tolist() == [0]
    assert len(decode(logits, *bounds, 0.4, ANY, flat=True)[1]) == 0


def test_threshold_is_on_the_probability_of_the_label():
    logits = np.asarray([[1.0, 0.0, 0.5]])
    bounds = np.asarray([0]), np.asarray([1]), ONE_DOC[:1]
    *_, probabilities = decode(logits, *bounds, 0.0, ANY, flat=True)
    expected = np.exp(1.0) / (np.exp(1.0) + np.exp(0.0) + np.exp(0.5))
    assert np.allclose(probabilities, expected)
    assert len(decode(logits, *bounds, 0.0, least(expected + 0.01), flat=True)[1]) == 0


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=100, deadline=None)
def test_higher_thresholds_only_remove_spans(seed, flat):
    """What is written with a threshold is among what it was chosen on."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (30, 3))
    starts = rng.integers(0, 12, 30)
    candidates = logits, starts, starts + rng.integers(1, 5, 30), np.zeros(30, dtype=np.int64), 0.0
    rows, classes, scores = decode(*candidates, ANY, flat)
    for thresholds in ({"A": 0.8}, {"B": None}, {"A": 0.6, "B": 0.9}):
        kept = decode(*candidates, Confidence(["A", "B"], 0.0, thresholds, None), flat)
        limits = [thresholds.get(x, 0.0) for x in ("A", "B")]
        expected = [
            row
            for row, label, score in zip(rows, classes, scores)
            if limits[label] is not None and score >= limits[label] - SCORE_TOLERANCE
        ]
        assert kept[0].tolist() == expected


def test_no_candidates_give_no_spans():
    nothing = np.zeros(0, dtype=np.int64)
    assert len(decode(np.zeros((0, 3)), nothing, nothing, nothing, 0.0, ANY, flat=True)[1]) == 0


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=3, max_size=3), min_size=1),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=200, deadline=None)
def test_rounding_decides_nothing(values, seed):
    """Logits are equal or far apart, as those of an encoder whose states are all alike."""
    rng = np.random.default_rng(seed)
    logits = np.asarray(values)
    starts = rng.integers(0, 20, len(logits))
    ends = starts + rng.integers(1, 5, len(logits))
    of_doc = np.zeros(len(logits), dtype=np.int64)
    exact = decode(logits, starts, ends, of_doc, 0.0, ANY, flat=True)
    noise = rng.uniform(-5e-6, 5e-6, logits.shape)
    noisy = decode(logits + noise, starts, ends, of_doc, 0.0, ANY, flat=True)
    assert [x.tolist() for x in exact[:2]] == [x.tolist() for x in noisy[:2]]


def test_a_probability_that_is_the_threshold_but_for_rounding_reaches_it():
    bounds = np.asarray([0]), np.asarray([1]), ONE_DOC[:1]
    for noise in (-1e-6, 0.0, 1e-6):
        logits = np.asarray([[1.0 + noise, 1.0 - np.log(3.0)]])
        assert len(decode(logits, *bounds, 0.0, least(0.75), flat=True)[1]) == 1


def test_another_document_does_not_make_scores_equal():
    """Scores that rise in steps below the tolerance would all be one level."""
    starts, ends = np.asarray([0, 1, 9]), np.asarray([2, 3, 10])
    logits = np.asarray([[1.0, 0.0], [1.0 + 1.5e-4, 0.0], [1.0 + 0.75e-4, 0.0]])
    together = decode(logits, starts, ends, np.asarray([0, 0, 1]), 0.0, ANY, flat=True)
    assert together[0].tolist() == [1, 2]


def test_scores_that_rise_in_small_steps_to_another_one_are_not_equal():
    """Steps below the tolerance would otherwise make one level of them all."""
    steps = np.arange(10) * 0.9e-4
    assert levels(steps, np.zeros(10, dtype=np.int64)).tolist() == list(range(1, 11))
    pair = np.asarray([0.5, 0.5 + 0.9e-4, 1.0])
    assert levels(pair, np.zeros(3, dtype=np.int64)).tolist() == [1, 1, 2]
    assert levels(np.zeros(0), np.zeros(0, dtype=np.int64)).tolist() == []


def test_equal_logits_of_many_classes_are_not_those_of_equal_probabilities():
    """A thousand probabilities all differ by less than the tolerance; the logits do not."""
    logits = np.random.default_rng(0).normal(size=(50, 1000))
    assert likeliest(logits).tolist() == logits.argmax(-1).tolist()


def test_every_label_has_its_own_least_score_and_scores_are_calibrated():
    logits = np.asarray([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])  # 0.79 each, of the labels A and B
    bounds = np.asarray([0, 1]), np.asarray([1, 2]), ONE_DOC[:2]
    own = Confidence(["A", "B"], 0.0, {"B": 0.8}, None)
    assert decode(logits, *bounds, 0.0, own, flat=True)[0].tolist() == [0]
    table = {"slope": 1.0, "shift": -1.0, "slopes": {"B": 0.5}, "shifts": {"B": 2.0}, "least": 0.0}
    calibrated = Confidence(["A", "B"], 0.8, {}, table)
    rows, classes, scores = decode(logits, *bounds, 0.0, calibrated, flat=True)
    x = np.log(np.exp(2.0) / 2)  # logit of the probability of either
    assert rows.tolist() == [1] and classes.tolist() == [1]
    assert np.allclose(scores, 1 / (1 + np.exp(-(0.5 * x + 2.0))))
