"""Relations are scored by the characters of their sides, over all of gold."""

import random
from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.errors import InputError
from spacy_luke.metrics.relations import (
    make_luke_relation_scorer,
    make_semeval_scorer,
    relation_score,
    semeval_score,
)

NLP = spacy.blank("en")
WORDS = ["Ada", "Lovelace", "met", "Charles", "Babbage", "in", "London", "."]
ADA, LOVELACE, CHARLES, LONDON = (0, 2), (1, 2), (3, 5), (6, 7)
LABELS = {ADA: "PER", LOVELACE: "PER", CHARLES: "PER", LONDON: "LOC"}


def annotate(doc, relations, labels):
    """Relations as (head, tail, label) or (..., score), sides as token ranges."""
    sides = {side for head, tail, *_ in relations for side in (head, tail)}
    doc.ents = [Span(doc, *side, label=labels[side]) for side in sorted(sides)]
    doc._.relations = [(doc[slice(*h)], doc[slice(*t)], *rest) for h, t, *rest in relations]
    return doc


def example(predicted, gold, labels=LABELS, words=WORDS):
    docs = [Doc(NLP.vocab, words=words) for _ in range(2)]
    annotate(docs[0], predicted, labels)
    annotate(docs[1], gold, LABELS)
    return Example(*docs)


def prf(scores, part=""):
    return tuple(scores[f"rels_{part}{figure}"] for figure in "prf")


def test_micro_macro_and_labels_by_hand() -> None:
    predicted = [(ADA, CHARLES, "met"), (ADA, LONDON, "in"), (LONDON, ADA, "in")]
    gold = [(ADA, CHARLES, "met"), (CHARLES, ADA, "met"), (ADA, LONDON, "in")]
    scores = relation_score([example(predicted, gold)])
    assert prf(scores) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    # met: P 1, R 1/2, F 2/3; in: P 1/2, R 1, F 2/3
    assert prf(scores, "macro_") == pytest.approx((3 / 4, 3 / 4, 2 / 3))
    assert scores["rels_per_type"]["met"] == pytest.approx({"p": 1, "r": 1 / 2, "f": 2 / 3})
    assert scores["rels_per_type"]["in"] == pytest.approx({"p": 1 / 2, "r": 1, "f": 2 / 3})
    assert len(scores) == 13


def test_gold_between_entities_that_were_not_found_still_counts() -> None:
    scores = relation_score([example([(LOVELACE, CHARLES, "met")], [(ADA, CHARLES, "met")])])
    assert prf(scores) == (0, 0, 0)
    scores = relation_score([example([], [(ADA, CHARLES, "met")]), example([], [])])
    assert prf(scores) == (0, 0, 0)


def test_the_strict_figures_ask_for_entity_labels_too() -> None:
    relations = [(ADA, CHARLES, "met"), (ADA, LONDON, "in")]
    eg = example(relations, relations, labels={**LABELS, LONDON: "ORG"})
    assert prf(relation_score([eg])) == (1, 1, 1)
    assert prf(relation_score([eg]), "strict_") == (1 / 2, 1 / 2, 1 / 2)


def test_a_group_of_spans_gives_the_entity_labels_of_nested_spans() -> None:
    eg = example([(ADA, LONDON, "in")], [(ADA, LONDON, "in")])
    for doc, label in ((eg.predicted, "PER"), (eg.reference, "ORG")):
        doc.spans["sc"] = [Span(doc, *ADA, label=label), Span(doc, *LOVELACE, label="PER")]
    assert prf(relation_score([eg], spans_key="sc"), "strict_") == (0, 0, 0)
    assert prf(relation_score([eg], spans_key="other"), "strict_") == (1, 1, 1)


def test_direction_counts_unless_the_label_is_symmetric() -> None:
    eg = example([(CHARLES, ADA, "met")], [(ADA, CHARLES, "met")])
    assert prf(relation_score([eg])) == (0, 0, 0)
    assert prf(relation_score([eg], symmetric=["in"])) == (0, 0, 0)
    assert prf(relation_score([eg], symmetric=["met"])) == (1, 1, 1)
    assert prf(relation_score([eg], symmetric=["met"]), "strict_") == (1, 1, 1)


def test_both_directions_of_a_symmetric_label_count_once() -> None:
    both = [(CHARLES, ADA, "met"), (ADA, CHARLES, "met")]
    eg = example([*both, (ADA, LONDON, "met")], both)
    assert prf(relation_score([eg], symmetric=["met"]))[:2] == (1 / 2, 1)
    assert prf(relation_score([eg]))[:2] == (pytest.approx(2 / 3), 1)


def test_duplicates_count_once() -> None:
    twice = [(ADA, CHARLES, "met", 0.5), (ADA, CHARLES, "met", 0.75)]
    eg = example([*twice, (ADA, LONDON, "in")], [*twice, *twice])
    assert prf(relation_score([eg]))[:2] == (1 / 2, 1)


def test_the_two_sides_may_be_tokenised_differently() -> None:
    text = "Ada-Marie met Charles."
    predicted = annotate(
        Doc(NLP.vocab, words=["Ada-Marie", "met", "Charles", "."], spaces=[1, 1, 0, 0]),
        [((0, 1), (2, 3), "met")],
        {(0, 1): "PER", (2, 3): "PER"},
    )
    words = ["Ada", "-", "Marie", "met", "Charles", "."]
    reference = Doc(NLP.vocab, words=words, spaces=[0, 0, 1, 1, 0, 0])
    reference._.relations = [
        (reference[0:3], reference[4:5], "met"),
        (reference[2:3], reference[4:5], "met"),  # not on the other side's tokens
    ]
    assert predicted.text == reference.text == text
    assert prf(relation_score([Example(predicted, reference)]))[:2] == (1, 1 / 2)


def test_white_space_that_only_one_text_has_does_not_matter() -> None:
    predicted = NLP("Ada Lovelace met Charles Babbage in  London.")
    annotate(predicted, [(ADA, CHARLES, "met"), (ADA, (7, 8), "in")], {**LABELS, (7, 8): "LOC"})
    reference = annotate(
        Doc(NLP.vocab, words=WORDS), [(ADA, CHARLES, "met"), (ADA, LONDON, "in")], LABELS
    )
    assert predicted.text != reference.text
    scores = relation_score([Example(predicted, reference)])
    assert prf(scores) == prf(scores, "strict_") == (1, 1, 1)


def test_labels_without_gold_are_no_part_of_the_mean() -> None:
    eg = example([(ADA, CHARLES, "met"), (ADA, LONDON, "in")], [(ADA, CHARLES, "met")])
    scores = relation_score([eg], labels=["met", "in", "never"])
    assert prf(scores) == pytest.approx((1 / 2, 1, 2 / 3))
    assert prf(scores, "macro_") == (1, 1, 1)
    assert scores["rels_per_type"]["in"] == {"p": 0, "r": 0, "f": 0}
    assert scores["rels_per_type"]["never"] == {"p": None, "r": None, "f": None}


def test_a_label_that_the_component_lacks_counts_as_missed() -> None:
    eg = example([(ADA, CHARLES, "met")], [(ADA, CHARLES, "met"), (ADA, LONDON, "in")])
    scores = relation_score([eg], labels=["met"])
    assert prf(scores)[:2] == (1, 1 / 2)
    assert prf(scores, "macro_") == (1 / 2, 1 / 2, 1 / 2)


@pytest.mark.parametrize("examples", [[], [example([(ADA, CHARLES, "met")], [])]])
def test_without_gold_there_is_no_score(examples) -> None:
    scores = relation_score(examples, labels=["met"])
    assert len(scores) == 13 and set(scores.values()) == {None}
    assert semeval_score(examples) == {"rels_semeval_f": None}


def test_scorers_take_the_settings_of_a_component_and_another_prefix() -> None:
    eg = example([(ADA, CHARLES, "met")], [(ADA, CHARLES, "met")])
    score = make_luke_relation_scorer()
    assert score([eg], threshold=0.5, spans_key=None, prefix="links")["links_f"] == 1
    scores = make_semeval_scorer()(iter([eg]), threshold=0.5, prefix="links")
    assert (scores["links_f"], scores["links_semeval_f"]) == (1, 1)
    for name in ("luke_relation_scorer", "semeval_scorer"):
        scorer = spacy.registry.scorers.get(f"spacy-luke.{name}.v1")
        assert scorer()([eg])["rels_f"] == scorer(prefix="links")([eg])["links_f"] == 1


# SemEval-2010 Task 8


def pair(predicted, gold):
    """An example from labels such as "Cause-Effect(e2,e1)"; None is no relation."""
    sides = {"e1": ADA, "e2": CHARLES}

    def relations(label):
        if label in (None, "Other"):
            return []
        name, _, order = label[:-1].partition("(")
        head, tail = order.split(",")
        return [(sides[head], sides[tail], name)]

    return example(relations(predicted), relations(gold))


def test_the_wrong_direction_is_wrong_for_precision_and_recall_of_its_relation() -> None:
    examples = [
        pair("C-E(e1,e2)", "C-E(e1,e2)"),
        pair("C-E(e2,e1)", "C-E(e1,e2)"),
        pair("C-E(e1,e2)", "Other"),
        pair("M-T(e1,e2)", "M-T(e1,e2)"),
        pair("Other", "M-T(e2,e1)"),
    ]
    # C-E: P 1/3, R 1/2, F 2/5; M-T: P 1, R 1/2, F 2/3
    assert semeval_score(examples)["rels_semeval_f"] == pytest.approx((2 / 5 + 2 / 3) / 2)


def test_relations_that_gold_never_has_are_no_part_of_the_mean() -> None:
    examples = [pair("C-E(e1,e2)", "C-E(e1,e2)"), pair("M-T(e1,e2)", "Other")]
    assert semeval_score(examples)["rels_semeval_f"] == 1
    examples = [pair("C-E(e1,e2)", "C-E(e1,e2)"), pair("M-T(e1,e2)", "C-E(e1,e2)")]
    assert semeval_score(examples)["rels_semeval_f"] == pytest.approx(2 / 3)


def test_a_direction_in_the_label_is_that_of_head_and_tail() -> None:
    eg = example([(ADA, CHARLES, "C-E(e2,e1)")], [(CHARLES, ADA, "C-E(e1,e2)")])
    assert semeval_score([eg])["rels_semeval_f"] == 1


def test_the_best_of_several_predictions_counts() -> None:
    gold = [(ADA, CHARLES, "C-E")]
    better = [(ADA, CHARLES, "C-E", 0.9), (CHARLES, ADA, "C-E", 0.3), (ADA, CHARLES, "M-T", 0.5)]
    assert semeval_score([example(better, gold)])["rels_semeval_f"] == 1
    other = [(ADA, CHARLES, "C-E", 0.3), (ADA, CHARLES, "Other", 0.6)]
    assert semeval_score([example(other, gold)])["rels_semeval_f"] == 0
    assert semeval_score([example(other, gold)], other="None")["rels_semeval_f"] == 0


def test_the_relation_of_another_pair_is_wrong() -> None:
    eg = example([(LOVELACE, CHARLES, "C-E")], [(ADA, CHARLES, "C-E")])
    right = pair("C-E(e1,e2)", "C-E(e1,e2)")
    assert semeval_score([eg, right])["rels_semeval_f"] == 1 / 2


def test_several_gold_relations_of_a_document_are_refused() -> None:
    eg = example([], [(ADA, CHARLES, "C-E"), (ADA, LONDON, "C-E")])
    with pytest.raises(InputError, match="has 2 gold relations"):
        semeval_score([eg])


RELATIONS = ["A-A", "B-B", "C-C", "D-D", "E-E", "F-F", "G-G", "H-H", "I-I"]


def by_confusion(pairs):
    """The official definition over again, from the matrix of all 19 labels."""
    matrix = Counter(pairs)
    names = [f"{name}({way})" for name in RELATIONS for way in ("e1,e2", "e2,e1")] + ["Other"]
    scores = []
    for name in RELATIONS:
        own = [label for label in names if label.startswith(name)]
        right = sum(matrix[label, label] for label in own)
        proposed = sum(matrix[label, gold] for label in own for gold in names)
        actual = sum(matrix[label, gold] for label in names for gold in own)
        if actual:
            scores.append(2 * right / (proposed + actual))
    return sum(scores) / len(scores)


@pytest.mark.parametrize("seed", range(5))
def test_the_figure_is_that_of_the_whole_confusion_matrix(seed) -> None:
    draw = random.Random(seed)
    names = [f"{name}({way})" for name in RELATIONS for way in ("e1,e2", "e2,e1")] + ["Other"] * 3
    in_gold = names[2 * (seed % 3) :]
    pairs = []
    for _ in range(120):
        gold = draw.choice(in_gold)
        pairs.append((gold if draw.random() < 0.4 else draw.choice(names), gold))
    found = semeval_score([pair(*labels) for labels in pairs])["rels_semeval_f"]
    assert found == pytest.approx(by_confusion(pairs))


def test_pairs_that_are_labelled_as_unrelated_are_not_relations() -> None:
    gold = [(ADA, CHARLES, "met"), (ADA, LONDON, "no_relation")]
    scores = relation_score(
        [example([(ADA, CHARLES, "met"), (CHARLES, LONDON, "no_relation")], gold)]
    )
    assert prf(scores) == (1, 1, 1) and set(scores["rels_per_type"]) == {"met"}


def test_gold_with_a_low_score_is_not_there() -> None:
    """As Doc.cats, and the dictionaries of spaCy's relation tutorial, write it."""
    gold = [(ADA, CHARLES, "met", 1.0), (ADA, LONDON, "met", 0.0), (CHARLES, LONDON, "met", 0.49)]
    eg = example([(ADA, CHARLES, "met", 0.1)], gold)
    assert prf(relation_score([eg])) == (1, 1, 1)
    assert semeval_score([eg])["rels_semeval_f"] == 1


def test_pairs_that_are_labelled_as_unrelated_are_none_of_the_nine() -> None:
    unrelated = example([], [(ADA, CHARLES, "no_relation")])
    right = pair("C-E(e1,e2)", "C-E(e1,e2)")
    assert semeval_score([unrelated, right])["rels_semeval_f"] == 1
