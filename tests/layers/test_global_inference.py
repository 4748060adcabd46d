"""Global inference: which mention is resolved when, and what the others see."""

import numpy as np
import pytest
import torch

from spacy_luke.layers.global_inference import resolve

NIL = -100.0


class Passes:
    """Records the inputs of every further pass; logits stay as they are, plus 1 per pass for the
    first candidate (so that the pass of a result can be told)."""

    def __init__(self, first):
        self.first, self.seen = torch.tensor(first), []

    def __call__(self, inputs, which):
        self.seen.append((inputs.tolist(), which.tolist()))
        logits = self.first[torch.from_numpy(which)].clone()
        logits[:, 1] += len(self.seen)
        return logits


def run(first, rows, sequences=None, nil_bias=0.0, max_rounds=100, accepts=None):
    passes = Passes(first)
    sequences = [0] * len(first) if sequences is None else sequences
    logits, n_open = resolve(
        passes.first, np.asarray(rows), np.asarray(sequences), passes, nil_bias, max_rounds, accepts
    )
    return logits.numpy(), n_open, passes.seen


def test_the_most_certain_mention_is_resolved_first_and_shown():
    first = [[NIL, 1.0, 0.0], [NIL, 3.0, 0.0], [NIL, 0.0, 9.0]]
    logits, n_open, seen = run(first, [[10, 11], [20, 21], [30, 31]])
    assert seen == [([-1, -1, 31], [0, 1]), ([-1, 20, 31], [0])]
    assert n_open == 0
    assert logits[:, 1].tolist() == [1.0 + 2, 3.0 + 1, 0.0]  # of the third, second, first pass


def test_equal_mentions_are_resolved_in_the_order_of_the_text():
    first = [[NIL, 2.0, 0.0], [NIL, 2.00001, 0.0], [NIL, 1.99999, 0.0]]
    _, _, seen = run(first, [[10, 11], [20, 21], [30, 31]])
    assert [inputs for inputs, _ in seen] == [[10, -1, -1], [10, 20, -1]]


def test_certainty_counts_all_other_candidates():
    first = [[NIL, 3.0, 2.9], [NIL, 2.0, -9.0]]
    _, _, seen = run(first, [[10, 11], [20, 21]])
    assert [inputs for inputs, _ in seen] == [[-1, 20]]


def test_what_has_no_row_is_resolved_without_a_pass():
    first = [
        [9.0, 0.0, 0.0],  # "none of the candidates"
        [NIL, 8.0, 0.0],  # the best has no row
        [NIL, -np.inf, -np.inf],  # no candidates
        [NIL, 3.0, 0.0],
        [NIL, 1.0, 0.0],
    ]
    rows = [[10, 11], [-1, 21], [-1, -1], [40, 41], [50, 51]]
    logits, n_open, seen = run(first, rows)
    assert seen == [([-1, -1, -1, 40, -1], [4])] and n_open == 0
    assert logits[1].tolist() == first[1]
    assert run(first[:3], rows[:3])[2] == []


def test_the_nil_bias_counts_in_decisions_alone():
    first = [[3.0, 1.0, 0.0], [NIL, 1.0, 0.0]]
    assert run(first, [[10, 11], [20, 21]])[2] == []  # the second one is the last
    logits, _, seen = run(first, [[10, 11], [20, 21]], nil_bias=50.0)
    assert [inputs for inputs, _ in seen] == [[10, -1]] and logits[0].tolist() == first[0]


def test_what_is_not_probable_enough_is_not_shown():
    """It is "NIL" by the threshold. Log-odds are 5, and then 3 and 2: 0.95 and 0.88."""
    first = [[NIL, 5.0, 0.0], [NIL, 2.0, 0.0], [NIL, 1.0, 0.0]]
    rows = [[10, 11], [20, 21], [30, 31]]
    for least, shown in ((0.9, [10, 20]), (0.96, [10]), (1.0, [])):
        _, n_open, seen = run(first, rows, accepts=lambda p, least=least: p >= least)
        assert n_open == 0 and [max(inputs) for inputs, _ in seen] == shown


def test_sequences_do_not_influence_each_other():
    first = [[NIL, 1.0, 0.0], [NIL, 5.0, 0.0], [NIL, 2.0, 0.0], [NIL, 0.5, 0.0]]
    rows = [[10, 11], [20, 21], [30, 31], [40, 41]]
    together = run(first, rows, [0, 1, 1, 0])
    assert together[2] == [([10, 20, -1, -1], [2, 3])]
    alone = run([first[1], first[2]], [rows[1], rows[2]])
    assert alone[0].tolist() == together[0][1:3].tolist()


@pytest.mark.parametrize("max_rounds,n_open", [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_rounds_are_capped(max_rounds, n_open):
    first = [[NIL, 1.0, 0.0], [NIL, 3.0, 0.0], [NIL, 2.0, 0.0]]
    logits, left, seen = run(first, [[10, 11], [20, 21], [30, 31]], max_rounds=max_rounds)
    assert left == n_open and len(seen) == min(max_rounds, 3) - 1
    assert np.isfinite(logits).all()


def test_nothing_to_resolve():
    logits, n_open, seen = run([[0.0]], [[]])
    assert n_open == 0 and seen == [] and logits.shape == (1, 1)
