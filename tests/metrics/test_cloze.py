"""Exact match and F1 of completions, against hand-computed cases."""

import pytest
import spacy
from spacy.training import Example

from spacy_luke.annotations.queries import Offsets, set_completion_offsets
from spacy_luke.errors import InputError
from spacy_luke.metrics.cloze import cloze_answers, cloze_score

NLP = spacy.blank("en")
QUERY = "@placeholder won."


def example(*queries, predicted=True):
    """queries: (best completion or None, right texts)."""
    docs = [NLP("The U.S. and the New York Mets"), NLP("The U.S. and the New York Mets")]
    for doc in docs:
        doc._.queries = [QUERY] * len(queries)
    best = [[] if text is None else [Offsets(text, [], 0.5)] for text, _ in queries]
    if predicted:
        set_completion_offsets(docs[0], best)
    set_completion_offsets(docs[1], [[Offsets(x, []) for x in right] for _, right in queries])
    return Example(*docs)


def test_scorers_take_another_prefix():
    scorer = spacy.registry.scorers.get("spacy-luke.luke_cloze_scorer.v1")
    examples = [example(("Mets", ["Mets"]))]
    assert scorer()(examples)["cloze_em"] == scorer(prefix="gaps")(examples)["gaps_em"] == 1


@pytest.mark.parametrize(
    "best,right,em,f1",
    [
        ("Mets", ["Mets"], 1, 1),
        ("the Mets!", ["Mets"], 1, 1),  # articles and punctuation do not count
        ("US", ["U.S."], 1, 1),
        ("New York", ["New York Mets"], 0, 0.8),  # precision 2/2, recall 2/3
        ("New York", ["Boston", "York", "Mets"], 0, 2 / 3),  # the best of several
        ("Mets", ["Boston", "The Mets"], 1, 1),
        ("Boston", ["Mets"], 0, 0),
        (None, ["Mets"], 0, 0),
        (None, ["The The"], 0, 0),  # a band, of which normalisation leaves nothing
        # As the official script: no answer is ignored, and F1 is 0 without a common word.
        ("The The", ["The The"], 1, 0),
        ("The The", ["The The", "Mets"], 1, 0),
    ],
)
def test_a_query_is_scored_by_the_best_of_its_answers(best, right, em, f1):
    scores = cloze_score([example((best, right))])
    assert (scores["cloze_em"], scores["cloze_f1"]) == (em, pytest.approx(f1))


def test_scores_are_means_over_queries_with_known_answers():
    scores = cloze_score([example(("Mets", ["Mets"]), ("Mets", []), ("A", ["B"])), example()])
    assert (scores["cloze_em"], scores["cloze_queries"]) == (0.5, 2)
    nothing = cloze_score([example(("Mets", []))])
    assert set(nothing.values()) == {None}


def test_a_document_without_predictions_is_wrong():
    assert cloze_score([example(("", ["Mets"]), predicted=False)])["cloze_em"] == 0


def test_other_queries_are_an_error():
    given = example(("Mets", ["Mets"]))
    given.predicted._.queries = []
    with pytest.raises(InputError, match="PresetEntsCorpus"):
        cloze_score([given])


def test_best_completions_are_answers_for_tuning():
    answers = cloze_answers([example(("Mets", ["mets"]), ("Boston", ["Mets"]), (None, ["Mets"]))])
    assert (answers.right, answers.scores) == ([True, False], [0.5, 0.5])
    assert answers.n_gold.total() == 3
