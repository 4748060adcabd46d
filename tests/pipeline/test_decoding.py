import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_luke.pipeline.decoding import decode, select_disjoint

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
    rows, *_ = decode(logits, np.asarray([0, 1]), np.asarray([2, 3]), 0.0, 0.0, flat=True)
    assert rows.tolist() == [0]


def test_nested_decoding_keeps_overlapping_spans():
    logits = np.asarray([[5.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    rows, *_ = decode(logits, np.asarray([0, 1]), np.asarray([2, 3]), 0.0, 0.0, flat=False)
    assert rows.tolist() == [0, 1]


def test_nil_bias_turns_nil_into_a_label_and_back():
    logits = np.asarray([[1.0, 0.0, 1.5]])
    bounds = np.asarray([0]), np.asarray([1])
    assert len(decode(logits, *bounds, 0.0, 0.0, flat=True)[1]) == 0
    assert decode(logits, *bounds, 1.0, 0.0, flat=True)[1].tolist() == [0]
    assert len(decode(logits, *bounds, 0.4, 0.0, flat=True)[1]) == 0


def test_threshold_is_on_the_probability_of_the_label():
    logits = np.asarray([[1.0, 0.0, 0.5]])
    bounds = np.asarray([0]), np.asarray([1])
    *_, probabilities = decode(logits, *bounds, 0.0, 0.0, flat=True)
    expected = np.exp(1.0) / (np.exp(1.0) + np.exp(0.0) + np.exp(0.5))
    assert np.allclose(probabilities, expected)
    assert len(decode(logits, *bounds, 0.0, expected + 0.01, flat=True)[1]) == 0


def test_no_candidates_give_no_spans():
    nothing = np.zeros(0, dtype=np.int64)
    assert len(decode(np.zeros((0, 3)), nothing, nothing, 0.0, 0.0, flat=True)[1]) == 0
