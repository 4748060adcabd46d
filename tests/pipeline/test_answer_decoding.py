"""Answers from scores: equal to trying every span, whatever the windows."""

import itertools

import numpy as np
import pytest

from spacy_luke.pipeline.answer_decoding import Choice, Found, choose


def brute_force(table: np.ndarray, choice: Choice) -> list[Found]:
    n, most = table.shape
    spans = [(i, i + k + 1, table[i, k]) for i, k in itertools.product(range(n), range(most))]
    spans = sorted((x for x in spans if np.isfinite(x[2])), key=lambda x: -x[2])
    kept: list[Found] = []
    for start, end, odds in spans:
        shared = [min(end, x.end) - max(start, x.start) for x in kept]
        shortest = [min(end - start, x.end - x.start) for x in kept]
        if all(a <= choice.overlap * b for a, b in zip(shared, shortest)):
            kept.append(Found(start, end, odds))
    return kept[: choice.top_k]


@pytest.mark.parametrize("overlap", [0.0, 0.01, 0.4, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_best_answers_that_do_not_overlap(overlap, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(12, 4))
    table[rng.random(table.shape) < 0.2] = -np.inf
    for i in range(12):  # no span beyond the end
        table[i, 12 - i :] = -np.inf
    choice = Choice(top_k=6, max_words=4, overlap=overlap)
    assert choose(table.copy(), choice) == brute_force(table, choice)


def test_of_equal_answers_the_first_is_better():
    table = np.full((4, 2), -np.inf)
    table[1, 0], table[3, 0] = 1.0, 1.00001
    found = choose(table, Choice(1, 2, 0.0))
    assert [(x.start, x.end) for x in found] == [(1, 2)]


def test_no_text_no_answer():
    assert choose(np.zeros((0, 5)), Choice(3, 5, 0.0)) == []
    assert choose(np.full((3, 5), -np.inf), Choice(3, 5, 0.0)) == []
