"""The official metric of SQuAD, on cases computed by hand."""

import random
from types import SimpleNamespace

import pytest

from spacy_luke.metrics.squad import (
    AnswerScore,
    Best,
    best_threshold,
    mean_score,
    normalize_answer,
    score_answer,
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Grand\tHotel,", "grand hotel"),
        ("a an the", ""),
        ("An apple a day", "apple day"),
        ("Theatre and another", "theatre and another"),  # not articles
        ("U.S.A.", "usa"),
        ("the-a", "thea"),  # punctuation is removed before articles
        ("(!?)", ""),
        ("$1,000.50", "100050"),
        ("Der Österreicher", "der österreicher"),  # only English articles
        ("«Straße»", "«straße»"),  # only ASCII punctuation
        ("Zürich\u00a0West", "zürich west"),  # any Unicode white space
        ("", ""),
    ],
)
def test_normalisation(text, normal):
    assert normalize_answer(text) == normal


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("the Eiffel Tower", ["Eiffel Tower!"], 1, 1),
        ("in Paris, France", ["Paris"], 0, 2 * 1 / (3 + 1)),
        # Words count as often as they occur: one of two, of two and three words.
        ("New New", ["New York City"], 0, 2 * 1 / (2 + 3)),
        # The best of the golds, for both values.
        ("Ada King", ["Ada Lovelace", "Countess Ada King", "ada king"], 1, 1),
        ("Ada King", ["Ada Lovelace", "Countess Ada King"], 0, 2 * 2 / (2 + 3)),
        ("Berlin", ["Bonn"], 0, 0),
        ("", [], 1, 1),
        ("Bonn", [], 0, 0),
        ("", ["Bonn"], 0, 0),
        # Only punctuation or articles: equal to no answer.
        ("...", [], 1, 1),
        ("...", ["Bonn"], 0, 0),
        ("", ["the"], 1, 1),
        ("Bonn", ["!", "Bonn"], 1, 1),
        ("", ["!", "Bonn"], 0, 0),
        ("am 3. März", ["3. März"], 0, 2 * 2 / (3 + 2)),
        ("ÖSTERREICH", ["Österreich"], 1, 1),
    ],
)
def test_exact_match_and_f1(prediction, golds, exact, f1):
    found = score_answer(prediction, golds)
    assert found[:2] == pytest.approx((exact, f1))
    assert found[2:] == (bool(golds), bool(prediction))


def test_means():
    scores = [score_answer("Bonn", ["Bonn"]), score_answer("in Bonn", ["Bonn"])]
    assert mean_score(scores) == pytest.approx((0.5, (1 + 2 / 3) / 2, 2))
    assert mean_score([]) == (None, None, 0)


def scored(exact, f1, answerable=True, answered=True):
    return AnswerScore(float(exact), f1, answerable, answered)


NO_GOLD = scored(0, 0.0, answerable=False)


def test_the_best_threshold_sweeps_over_the_scores():
    scores = [scored(1, 1.0), NO_GOLD, scored(0, 0.6), scored(0, 0.7), NO_GOLD]
    no_answer = [0.1, 0.2, 0.3, 0.4, 0.9]
    # Right questions if those up to each value are kept: 2 of 5 at first, then 3, 2, 2, 2, 1.
    assert best_threshold(scores, no_answer, "exact") == Best(3 / 5, 0.1)
    # By F1: 2, then 3, 2, 2.6, 3.3, 2.3.
    assert best_threshold(scores, no_answer, "f1") == pytest.approx((3.3 / 5, 0.4))
    order = [4, 2, 0, 3, 1]
    shuffled = [scores[i] for i in order], [no_answer[i] for i in order]
    assert best_threshold(*shuffled, "exact") == Best(3 / 5, 0.1)


def test_it_may_be_best_to_keep_no_answer():
    assert best_threshold([NO_GOLD, scored(0, 0.5)], [0.1, 0.2], "f1") == Best(0.5, None)
    assert best_threshold([], [], "f1") is None


def test_an_empty_prediction_changes_nothing():
    silent = scored(1, 1.0, answerable=False, answered=False)
    assert best_threshold([silent, scored(1, 1.0)], [0.5, 0.7], "exact") == Best(1.0, 0.7)


def test_no_threshold_separates_equal_scores():
    assert best_threshold([scored(1, 1.0), NO_GOLD], [0.5, 0.5], "exact") == Best(0.5, None)


def test_scores_are_needed_for_every_question():
    with pytest.raises(ValueError, match="zip"):
        best_threshold([NO_GOLD], [], "exact")


def test_values_are_those_of_the_script_as_transformers_has_it():
    official = pytest.importorskip("transformers.data.metrics.squad_metrics")
    draw = random.Random(0)
    texts = [
        "",
        "the",
        "...",
        "Ada King",
        "Ada, the King",
        "a king",
        "King Ada's",
        "1843",
        "\u00df a",
    ]
    golds = [draw.choices(texts, k=draw.randrange(4)) for _ in range(500)]
    predictions = {i: draw.choice(texts) for i in range(len(golds))}
    no_answer = {i: draw.random() for i in range(len(golds))}
    asked = [
        SimpleNamespace(qas_id=i, answers=[{"text": x} for x in of_one])
        for i, of_one in enumerate(golds)
    ]
    exact, f1 = official.get_raw_scores(asked, predictions)
    scores = [score_answer(predictions[i], of_one) for i, of_one in enumerate(golds)]
    assert [x.exact for x in scores] == list(exact.values())
    assert [x.f1 for x in scores] == pytest.approx(list(f1.values()))
    answerable = {i: bool(of_one) for i, of_one in enumerate(golds)}
    for name, values in (("exact", exact), ("f1", f1)):
        value, threshold = official.find_best_thresh(predictions, values, no_answer, answerable)
        found = best_threshold(scores, list(no_answer.values()), name)
        assert found == (pytest.approx(value / 100), threshold)
        assert 0.0 < threshold < 1.0
