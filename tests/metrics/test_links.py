"""Links are scored mention by mention, by the characters of the mentions."""

import logging
import math
import random
import warnings

import pytest
import spacy
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations.annotated import set_annotated
from spacy_luke.metrics.answers import Answer
from spacy_luke.metrics.links import link_answers, link_score, make_luke_linker_scorer

NLP = spacy.blank("en")
WORDS = ["Ada", "met", "Charles", "Babbage", "in", "London", "and", "Ada", "in", "Paris", "."]
ADA, CHARLES, BABBAGE, LONDON, ADA2, PARIS = (0, 1), (2, 4), (3, 4), (5, 6), (7, 8), (9, 10)
LABELS = {ADA: "PER", CHARLES: "PER", BABBAGE: "PER", LONDON: "LOC", ADA2: "PER", PARIS: "LOC"}


def annotate(doc, links, key):
    """links: token range -> id, or a list of ids for a span that the group has several times."""
    spans = [
        Span(doc, *place, LABELS.get(place, "X"), kb_id=name)
        for place, names in links.items()
        for name in (names if isinstance(names, list) else [names])
    ]
    if key is None:
        doc.set_ents(spans, default="outside")
    else:
        doc.spans[key] = spans
    return doc


def example(predicted, gold, candidates=None, key=None):
    """candidates: token range -> {id: score}."""
    docs = [Doc(NLP.vocab, words=WORDS) for _ in range(2)]
    annotate(docs[0], predicted, key)
    for place, scores in (candidates or {}).items():
        docs[0][slice(*place)]._.candidates = list(scores.items())
    return Example(docs[0], annotate(docs[1], gold, key))


def prf(scores, part):
    return tuple(scores[f"nel_{part}_{figure}"] for figure in "prf")


def f(p, r):
    return 2 * p * r / (p + r)


N_KEYS = 37


# Shared mentions


def test_micro_macro_and_labels_by_hand() -> None:
    gold = {ADA: "Q1", CHARLES: "Q2", LONDON: "Q3", ADA2: "NIL", PARIS: "Q5"}
    predicted = {ADA: "Q1", CHARLES: "Q9", LONDON: "Q3", ADA2: "Q1", PARIS: "NIL"}
    scores = link_score([example(predicted, gold)])
    # PER: one right, two wrong links, one id missed; LOC: one right, one id missed
    assert prf(scores, "micro") == pytest.approx((2 / 4, 2 / 4, 2 / 4))
    of_per, of_loc = (1 / 3, 1 / 2, f(1 / 3, 1 / 2)), (1, 1 / 2, 2 / 3)
    assert prf(scores, "macro") == pytest.approx([(a + b) / 2 for a, b in zip(of_per, of_loc)])
    assert scores["nel_f_per_type"] == {
        "PER": pytest.approx(dict(zip("prf", of_per))),
        "LOC": pytest.approx(dict(zip("prf", of_loc))),
    }
    assert scores["nel_score"] == scores["nel_micro_f"]
    assert scores["nel_score_desc"] == "micro F"
    assert len(scores) == N_KEYS


def random_examples(rng, found):
    """Every mention is annotated. found: the probability that the pipeline has a mention."""
    examples = []
    for _ in range(10):
        ids = ["Q1", "Q2", "NIL"]
        gold = {place: rng.choice(ids) for place in (ADA, CHARLES, LONDON, ADA2, PARIS)}
        kept = [place for place in gold if rng.random() < found]
        predicted = {place: rng.choice([gold[place], *ids, ""]) for place in kept}
        examples.append(example({**predicted, (8, 9): "Q1"}, gold))
    return examples


@pytest.mark.parametrize("found", [0.0, 0.4, 1.0])
def test_on_annotated_mentions_the_figures_are_those_of_spacy(found) -> None:
    rng = random.Random(0)
    for _ in range(20):
        examples = random_examples(rng, found)
        expected = Scorer.score_links(examples, negative_labels=["NIL", ""])
        scores = link_score(examples)
        assert {name: scores[name] for name in expected} == expected


def test_accuracy_with_and_without_nil_by_hand() -> None:
    one = example({ADA: "Q1", CHARLES: "Q9", LONDON: ""}, {ADA: "Q1", CHARLES: "Q2", LONDON: "NIL"})
    two = example({ADA: "Q1", PARIS: "Q4"}, {ADA: "Q1", PARIS: "NIL"})
    nothing = example({ADA: "NIL"}, {ADA: "NIL"})  # no id: not a document of the mean
    scores = link_score([one, two, nothing])
    assert scores["nel_kb_acc"] == pytest.approx(2 / 3)
    assert scores["nel_acc"] == pytest.approx(4 / 6)
    assert scores["nel_doc_acc"] == pytest.approx((1 / 2 + 1) / 2)


def test_nil_by_hand() -> None:
    gold = {ADA: "NIL", CHARLES: "NIL", LONDON: "NIL", ADA2: "Q1", PARIS: "Q5"}
    predicted = {ADA: "NIL", CHARLES: "", LONDON: "Q3", ADA2: "NIL", PARIS: "Q5"}
    scores = link_score([example(predicted, gold)])
    assert prf(scores, "nil") == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert scores["nel_acc"] == pytest.approx(3 / 5)
    without_nil = link_score([example({ADA: ""}, {ADA: "Q1"})])
    assert prf(without_nil, "nil") == (None, None, None)


def test_mentions_without_annotation_stay_out_of_everything() -> None:
    right = example({ADA: "Q1"}, {ADA: "Q1"}, {ADA: {"Q1": 0.5, "Q2": 0.5}})
    more = example(
        {ADA: "Q1", CHARLES: "Q2", LONDON: "NIL", PARIS: ""},
        {ADA: "Q1", CHARLES: "", LONDON: "", PARIS: ""},
        {x: {"Q1": 0.5, "Q2": 0.5} for x in (ADA, CHARLES, LONDON, PARIS)},
    )
    assert link_score([more]) == link_score([right])


def test_an_untrained_linker_that_writes_nothing_scores_zero() -> None:
    scores = link_score([example({ADA: "", LONDON: ""}, {ADA: "Q1", LONDON: "Q2"})])
    for part in ("micro", "macro", "end_to_end"):
        assert prf(scores, part) == (0, 0, 0)
    assert scores["nel_kb_acc"] == scores["nel_acc"] == scores["nel_doc_acc"] == 0


def test_gold_ids_of_mentions_that_were_not_found_give_zero_not_none() -> None:
    """So that a training whose first evaluation finds no mention keeps the weight of the score."""
    scores = link_score([example({}, {ADA: "Q1"})])
    for part in ("micro", "macro", "end_to_end"):
        assert prf(scores, part) == (0, 0, 0)
    assert scores["nel_f_per_type"] == {} and scores["nel_ambiguous_mentions"] == 0
    assert scores["nel_kb_acc"] is scores["nel_acc"] is scores["nel_doc_acc"] is None


def test_labels_of_the_two_sides_are_not_compared() -> None:
    eg = example({ADA: "Q1"}, {ADA: "Q1"})
    eg.predicted.ents = [Span(eg.predicted, *ADA, label="ORG", kb_id="Q1")]
    scores = link_score([eg])
    assert prf(scores, "micro") == prf(scores, "end_to_end") == (1, 1, 1)
    assert set(scores["nel_f_per_type"]) == {"PER"}


# Candidates and ambiguous mentions


def test_candidate_recall_by_hand() -> None:
    gold = {ADA: "Q1", CHARLES: "Q2", LONDON: "Q3", ADA2: "Q1", PARIS: "NIL"}
    candidates = {
        ADA: {"NIL": 0.7, "Q1": 0.2, "Q9": 0.1},  # NIL is not a candidate
        CHARLES: {"Q9": 0.6, "Q2": 0.4},
        LONDON: {},
        PARIS: {"Q5": 0.5},
    }  # those of the second Ada were not set
    scores = link_score([example(dict.fromkeys(gold, ""), gold, candidates)])
    assert scores["nel_candidate_recall"] == 2 / 4
    assert scores["nel_candidate_recall_1"] == 1 / 4
    unset = link_score([example(dict.fromkeys(gold, ""), gold)])
    assert unset["nel_candidate_recall"] is unset["nel_candidate_recall_1"] is None


def test_ambiguous_mentions_by_hand() -> None:
    two, other = {"Q1": 0.6, "Q2": 0.4}, {"Q8": 0.6, "Q9": 0.4}
    one = example(
        {ADA: "Q1", CHARLES: "Q1", LONDON: "Q3", ADA2: "NIL", PARIS: "Q8"},
        {ADA: "Q1", CHARLES: "Q2", LONDON: "Q3", ADA2: "NIL", PARIS: "Q5"},
        {ADA: two, CHARLES: two, LONDON: {"Q3": 0.6, "NIL": 0.4}, ADA2: other, PARIS: other},
    )  # ambiguous: the two persons and the one that is none
    another = example(
        {ADA: "Q2", LONDON: "Q1", PARIS: "Q1"},
        {ADA: "Q2", LONDON: "NIL", PARIS: ""},
        {ADA: two, LONDON: two, PARIS: two},
    )  # ambiguous: Ada and London
    scores = link_score([one, another])
    assert scores["nel_ambiguous_mentions"] == 5
    assert scores["nel_ambiguous_kb_acc"] == pytest.approx(2 / 3)
    assert scores["nel_ambiguous_acc"] == pytest.approx(3 / 5)
    assert scores["nel_ambiguous_doc_acc"] == pytest.approx((1 / 2 + 1) / 2)
    assert prf(scores, "ambiguous_micro") == pytest.approx((2 / 4, 2 / 3, f(1 / 2, 2 / 3)))
    assert prf(scores, "ambiguous_macro") == pytest.approx((1 / 3, 1 / 3, 1 / 3))  # persons, London
    assert prf(scores, "ambiguous_nil") == pytest.approx((1, 1 / 2, 2 / 3))
    assert "nel_ambiguous_candidate_recall" not in scores  # 1 by definition
    assert scores["nel_ambiguous_candidate_recall_1"] == pytest.approx(1 / 3)


def test_without_ambiguous_mentions_their_number_is_zero_and_their_scores_are_none() -> None:
    scores = link_score([example({ADA: "Q1"}, {ADA: "Q1"}, {ADA: {"Q1": 1.0}})])
    ambiguous = {name: x for name, x in scores.items() if name.startswith("nel_ambiguous_")}
    assert ambiguous.pop("nel_ambiguous_mentions") == 0
    assert len(ambiguous) == 13 and set(ambiguous.values()) == {None}


def test_ambiguous_mentions_that_are_all_nil_have_an_accuracy_but_no_f() -> None:
    candidates = {ADA: {"Q1": 0.6, "Q2": 0.4}}
    scores = link_score([example({ADA: "NIL"}, {ADA: "NIL"}, candidates)])
    assert scores["nel_ambiguous_mentions"] == scores["nel_ambiguous_acc"] == 1
    assert scores["nel_ambiguous_kb_acc"] is None
    assert prf(scores, "ambiguous_micro") == (None, None, None)
    assert prf(scores, "ambiguous_nil") == (1, 1, 1)


# End to end


def test_end_to_end_by_hand() -> None:
    gold = {ADA: "Q1", CHARLES: "Q2", LONDON: "Q3", ADA2: "NIL", PARIS: ""}
    predicted = {ADA: "Q1", BABBAGE: "Q2", ADA2: "Q1", PARIS: "Q5", (1, 2): "", (6, 7): "NIL"}
    scores = link_score([example(predicted, gold)])
    # Links: Ada right; Babbage not a mention; the second Ada none; Paris not annotated.
    assert prf(scores, "end_to_end") == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert prf(scores, "micro") == pytest.approx((1 / 2, 1, 2 / 3))


def test_links_in_a_document_without_mentions_are_wrong_end_to_end_alone() -> None:
    scores = link_score([example({ADA: "Q1"}, {ADA: "Q1"}), example({ADA: "Q1"}, {})])
    assert prf(scores, "end_to_end") == pytest.approx((1 / 2, 1, 2 / 3))
    assert prf(scores, "micro") == (1, 1, 1) and scores["nel_doc_acc"] == 1


@pytest.mark.parametrize("key", [None, "sc"])
def test_links_on_spans_of_unknown_annotation_do_not_count(key) -> None:
    right, declared = (example({ADA: "Q1", LONDON: "Q3"}, {ADA: "Q1"}, key=key) for _ in range(2))
    assert prf(link_score([right], spans_key=key), "end_to_end")[:2] == (1 / 2, 1)
    set_annotated(declared.reference, "ents", False)
    bare = example({LONDON: "Q3"}, {}, key=key)
    bare = Example(bare.predicted, Doc(NLP.vocab, words=WORDS))
    assert prf(link_score([declared, bare], spans_key=key), "end_to_end") == (1, 1, 1)


# What is compared


def test_a_mention_with_several_ids_is_right_with_any_of_them() -> None:
    gold = {ADA: ["Q1", "Q2"], LONDON: ["", "Q3"], PARIS: ["Q5", "NIL"], CHARLES: ["", "NIL"]}
    predicted = {ADA: "Q2", LONDON: "Q3", PARIS: "NIL", CHARLES: "NIL"}
    candidates = {ADA: {"Q2": 1.0}, PARIS: {"Q5": 0.25}}
    scores = link_score([example(predicted, gold, candidates, key="sc")], spans_key="sc")
    assert prf(scores, "micro") == pytest.approx((1, 2 / 3, 4 / 5))
    assert prf(scores, "nil") == pytest.approx((1 / 2, 1, 2 / 3))
    assert scores["nel_acc"] == 3 / 4 and scores["nel_candidate_recall"] == pytest.approx(2 / 3)


def test_of_equal_predicted_spans_the_first_with_a_link_counts() -> None:
    eg = example({ADA: ["", "Q2", "Q1"], PARIS: ["", ""]}, {ADA: "Q2", PARIS: "Q5"}, key="sc")
    scores = link_score([eg], spans_key="sc")
    assert prf(scores, "micro") == prf(scores, "end_to_end") == pytest.approx((1, 1 / 2, 2 / 3))


def test_spans_may_be_those_of_a_group() -> None:
    gold = {CHARLES: "Q2", BABBAGE: "Q4"}  # nested
    eg = example({CHARLES: "Q2", BABBAGE: "Q9"}, gold, key="sc")
    assert link_score([eg], spans_key="sc")["nel_kb_acc"] == 1 / 2
    for settings in ({}, {"spans_key": "other"}):
        assert set(link_score([eg], **settings).values()) == {None}


def test_mentions_with_discarded_labels_stay_out() -> None:
    gold = {ADA: "Q1", LONDON: "Q3", PARIS: "NIL"}
    candidates = {ADA: {"Q1": 0.5}, LONDON: {"Q3": 0.5, "Q9": 0.5}}
    eg = example({ADA: "Q1", LONDON: "Q9", PARIS: "Q5"}, gold, candidates)
    scores = link_score([eg], labels_discard=["LOC"])
    assert prf(scores, "micro") == prf(scores, "end_to_end") == (1, 1, 1)
    assert set(scores["nel_f_per_type"]) == {"PER"} and prf(scores, "nil") == (None, None, None)
    assert scores["nel_ambiguous_mentions"] == 0
    answers = link_answers([eg], labels_discard=["LOC"])
    assert answers.found == [Answer("PER", 0.5, True)] and answers.n_gold == {"PER": 1}


def test_of_equal_mentions_only_those_with_discarded_labels_stay_out() -> None:
    eg = example({ADA: "Q1"}, {}, key="sc")
    rows = [("SHIP", "Q9"), ("NAME", ""), ("PER", "Q1"), ("POET", "Q2")]
    eg.reference.spans["sc"] = [Span(eg.reference, *ADA, label, kb_id=x) for label, x in rows]
    scores = link_score([eg], spans_key="sc", labels_discard=["SHIP"])
    assert scores["nel_f_per_type"] == {"PER": {"p": 1, "r": 1, "f": 1}}
    scores = link_score([eg], spans_key="sc", labels_discard=["SHIP", "PER"])
    assert scores["nel_f_per_type"] == {"POET": {"p": 0, "r": 0, "f": 0}}


def test_the_two_sides_may_be_tokenised_differently() -> None:
    predicted = NLP("Ada-Marie met  Charles.")
    predicted.ents = [
        Span(predicted, 0, 3, "P", kb_id="Q1"),
        Span(predicted, 5, 6, "P", kb_id="Q2"),
    ]
    assert [ent.text for ent in predicted.ents] == ["Ada-Marie", "Charles"]
    predicted.ents[0]._.candidates = [("Q1", 0.75), ("Q3", 0.25)]
    reference = Doc(NLP.vocab, words=["Ada-Marie", "met", "Charles", "."], spaces=[1, 1, 0, 0])
    reference.ents = [
        Span(reference, 0, 1, "P", kb_id="Q1"),
        Span(reference, 2, 3, "P", kb_id="Q3"),
    ]
    assert predicted.text != reference.text
    scores = link_score([Example(predicted, reference)])
    assert prf(scores, "micro") == prf(scores, "end_to_end") == (1 / 2, 1 / 2, 1 / 2)
    assert scores["nel_candidate_recall"] == 1 / 2 and scores["nel_ambiguous_acc"] == 1


# Answers


def test_answers_are_the_links_with_their_scores() -> None:
    eg = example(
        {ADA: "Q1", BABBAGE: "Q2", LONDON: "Q3", ADA2: "Q1", PARIS: "NIL"},
        {ADA: "Q1", CHARLES: "Q2", LONDON: "Q9", ADA2: "", PARIS: "Q5"},
        {
            ADA: {"Q2": 0.75, "Q1": 0.25},
            BABBAGE: {"Q2": 0.5},
            LONDON: {"Q9": 0.5},  # another component has made the link
            ADA2: {"Q1": 1.0},
            PARIS: {"NIL": 0.75, "Q5": 0.25},
        },
    )
    answers = link_answers([eg])
    assert answers.found == [Answer("PER", 0.25, True), Answer("PER", 0.5, False)]
    assert answers.n_gold == {"PER": 2, "LOC": 2}
    scores = link_score([eg])
    assert scores["nel_calibration_error"] == pytest.approx((0.75 + 0.5) / 2)
    assert [row[1] for row in scores["nel_reliability"]] == [1, 1]


def test_what_another_component_has_linked_is_not_asked_for() -> None:
    gold = {ADA: "Q1", LONDON: "Q3", PARIS: "Q5", ADA2: "Q1"}
    found = {ADA: "Q1", LONDON: "Q3", PARIS: "Q9", ADA2: ""}
    answers = link_answers([example(found, gold, {ADA: {"Q1": 0.75}, ADA2: {}})])
    assert answers.found == [Answer("PER", 0.75, True)]
    assert answers.n_gold == {"PER": 2}
    assert answers.prf() == (1.0, 0.5, f(1.0, 0.5))


def test_answers_are_those_that_the_end_to_end_scores_count() -> None:
    rng = random.Random(1)
    for _ in range(20):
        examples = random_examples(rng, 0.7)
        for eg in examples:
            for ent in eg.predicted.ents:
                ent._.candidates = [(x, rng.random()) for x in ("Q1", "Q2")]
        assert link_answers(examples).prf() == pytest.approx(
            prf(link_score(examples), "end_to_end")
        )


# Nothing to count


@pytest.mark.parametrize(
    "examples",
    [
        [],
        [example({ADA: "Q1"}, {ADA: ""}, {ADA: {"Q1": 0.5, "Q2": 0.5}})],
        [example({ADA: "Q1"}, {})],
        [Example(Doc(NLP.vocab), Doc(NLP.vocab))],
        [Example(Doc(NLP.vocab, words=WORDS), Doc(NLP.vocab, words=WORDS))],
    ],
    ids=["no examples", "no annotation", "no mentions", "empty text", "unknown mentions"],
)
@pytest.mark.parametrize("key", [None, "sc"])
def test_without_annotated_mentions_there_is_no_score(examples, key, caplog) -> None:
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        scores = link_score(examples, spans_key=key)
    assert len(scores) == N_KEYS and set(scores.values()) == {None}
    assert not caplog.records
    answers = link_answers(examples, spans_key=key)
    assert not answers.n_gold and not any(answer.right for answer in answers.found)


def test_empty_documents_change_nothing() -> None:
    right, empty = example({ADA: "Q1"}, {ADA: "Q1"}), Example(Doc(NLP.vocab), Doc(NLP.vocab))
    assert link_score([empty, right, empty]) == link_score([right])


def test_only_nil_has_accuracy_and_scores_of_nil() -> None:
    scores = link_score([example({ADA: "NIL", PARIS: "Q5"}, {ADA: "NIL", PARIS: "NIL"})])
    assert prf(scores, "nil") == pytest.approx((1, 1 / 2, 2 / 3))
    assert scores["nel_acc"] == 1 / 2 and scores["nel_kb_acc"] is None
    assert prf(scores, "micro") == prf(scores, "end_to_end") == (None, None, None)


def test_all_scores_are_from_zero_to_one_or_none() -> None:
    scores = link_score(random_examples(random.Random(2), 0.8))
    numbers = {name: x for name, x in scores.items() if isinstance(x, float)}
    assert len(numbers) > 15
    assert all(0 <= x <= 1 and not math.isnan(x) for x in numbers.values())


def test_the_scorer_takes_the_settings_of_a_component_and_another_prefix() -> None:
    eg = example({ADA: "Q1"}, {ADA: "Q1"})
    scores = make_luke_linker_scorer()([eg], threshold=0.5, incl_prior=True, prefix="gold_nel")
    assert scores["gold_nel_micro_f"] == 1 and len(scores) == N_KEYS
    assert all(name.startswith("gold_nel_") for name in scores)
    name = "spacy-luke.luke_linker_scorer.v1"
    scorer = spacy.registry.scorers.get(name)(prefix="other")
    assert scorer([eg]) == link_score([eg], prefix="other")


def test_links_of_spans_on_tokens_of_unknown_annotation_are_not_wrong() -> None:
    eg = example({ADA: "1", CHARLES: "2", LONDON: "3"}, {ADA: "1"})
    known = [eg.reference[1:2], eg.reference[4:7]]
    eg.reference.set_ents(list(eg.reference.ents), outside=known, default="missing")
    # London is wrong.
    assert prf(link_score([eg]), "end_to_end") == pytest.approx((1 / 2, 1, 2 / 3))
