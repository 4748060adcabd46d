"""Types are scored as sets, span by span, by the characters of the spans."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.metrics.entity_typing import (
    make_luke_entity_typing_scorer,
    typing_answers,
    typing_score,
)
from spacy_luke.pipeline.confidence import Confidence

NLP = spacy.blank("en")
WORDS = ["Ada", "met", "Charles", "Babbage", "in", "London", "."]
ADA, CHARLES, BABBAGE, LONDON = (0, 1), (2, 4), (3, 4), (5, 6)


def annotate(doc, types, key):
    """types: token range -> {type: score}, a string of types of score 1, or None for no types."""
    spans = [Span(doc, *place, label="X") for place in sorted(types)]
    if key is None:
        doc.set_ents(spans, default="outside")
    else:
        doc.spans[key] = spans
    for span in spans:
        found = types[span.start, span.end]
        if found is not None:
            span._.types = dict.fromkeys(found, 1.0) if isinstance(found, str) else found
    return doc


def example(predicted, gold, key=None):
    docs = [Doc(NLP.vocab, words=WORDS) for _ in range(2)]
    return Example(annotate(docs[0], predicted, key), annotate(docs[1], gold, key))


def prf(scores, part):
    return tuple(scores[f"types_{part}_{figure}"] for figure in "prf")


def test_strict_micro_and_macro_by_hand() -> None:
    gold = {ADA: "ps", CHARLES: "p", LONDON: "lc"}
    predicted = {ADA: "ps", CHARLES: "pxyz", LONDON: "l"}
    scores = typing_score([example(predicted, gold)])
    assert scores["types_acc"] == 1 / 3
    assert prf(scores, "micro") == pytest.approx((4 / 7, 4 / 5, 8 / 12))
    p, r = (1 + 1 / 4 + 1) / 3, (1 + 1 + 1 / 2) / 3
    assert prf(scores, "macro") == pytest.approx((p, r, 2 * p * r / (p + r)))
    assert scores["types_per_type"]["p"] == {"p": 1, "r": 1, "f": 1}
    assert scores["types_per_type"]["c"] == {"p": 0, "r": 0, "f": 0}
    assert set(scores["types_per_type"]) == set("pslcxyz")
    assert len(scores) == 11


def test_a_mention_without_prediction_lowers_macro_recall_only() -> None:
    scores = typing_score([example({ADA: "p", LONDON: ""}, {ADA: "p", LONDON: "l"})])
    assert prf(scores, "macro") == pytest.approx((1, 1 / 2, 2 / 3))
    assert prf(scores, "micro") == pytest.approx((1, 1 / 2, 2 / 3))
    assert scores["types_acc"] == 1 / 2


def test_where_no_span_was_predicted_nothing_was() -> None:
    eg = example({ADA: "p", BABBAGE: None}, {ADA: "p", CHARLES: "p", LONDON: "l"})
    scores = typing_score([eg])
    assert prf(scores, "micro")[:2] == prf(scores, "macro")[:2] == (1, pytest.approx(1 / 3))
    assert scores["types_acc"] == 1 / 3


def test_types_of_a_span_that_gold_does_not_have_are_wrong() -> None:
    scores = typing_score([example({ADA: "p", BABBAGE: "ps"}, {ADA: "p", CHARLES: "p"})])
    assert prf(scores, "micro")[:2] == (pytest.approx(1 / 3), 1 / 2)
    assert prf(scores, "macro")[:2] == (1 / 2, 1 / 2)
    assert scores["types_acc"] == 1 / 2
    assert scores["types_per_type"]["s"] == {"p": 0, "r": 0, "f": 0}


def test_a_gold_span_without_annotated_types_says_nothing() -> None:
    scores = typing_score([example({ADA: "p", LONDON: "l"}, {ADA: "p", LONDON: None})])
    assert scores["types_acc"] == 1 and prf(scores, "micro") == prf(scores, "macro") == (1, 1, 1)
    assert "l" not in scores["types_per_type"]


def test_a_document_whose_spans_are_not_annotated_says_nothing() -> None:
    bare = Example(
        annotate(Doc(NLP.vocab, words=WORDS), {LONDON: "l"}, None), Doc(NLP.vocab, words=WORDS)
    )
    right = example({ADA: "p"}, {ADA: "p"})
    assert prf(typing_score([right, bare]), "micro") == (1, 1, 1)
    empty = example({LONDON: "l"}, {})  # annotated: there is no entity
    assert prf(typing_score([right, empty]), "micro") == pytest.approx((1 / 2, 1, 2 / 3))


def test_types_annotated_as_none_are_gold() -> None:
    gold = {ADA: "", CHARLES: "", LONDON: "l"}
    scores = typing_score([example({ADA: "", CHARLES: "p", LONDON: "l"}, gold)])
    assert scores["types_acc"] == pytest.approx(2 / 3)
    assert prf(scores, "micro")[:2] == (1 / 2, 1)
    assert prf(scores, "macro")[:2] == (1 / 2, 1)
    scores = typing_score([example({ADA: "p"}, {ADA: ""})])
    assert scores.pop("types_acc") == 0 and set(scores.values()) == {None}


def test_the_threshold_chooses_predicted_types_only() -> None:
    eg = example({ADA: {"p": 0.5, "s": 0.25}}, {ADA: {"p": 0.5, "t": 0.4}})
    assert typing_score([eg])["types_micro_p"] == 1 / 2
    assert typing_score([eg], threshold=0.5)["types_acc"] == 1
    assert prf(typing_score([eg], threshold=0.6), "macro") == (0, 0, 0)


def test_scores_at_a_threshold_are_as_those_that_a_component_writes() -> None:
    """The last bits of a score depend on its batch, so thresholds have a tolerance."""
    eg = example({ADA: {"/p/q": 0.69999}}, {ADA: {"/p/q": 1.0, "/p": 1.0}})
    confidence = Confidence(["/p/q"], 0.7, {}, None)
    assert confidence.accepts(np.array([0]), np.array([0.69999])).all()
    for thresholds in ({}, {"/p": 0.7}):
        settings = {"threshold": 0.7, "thresholds": thresholds, "ancestors": True}
        assert typing_score([eg], **settings)["types_acc"] == 1
    assert typing_score([eg], threshold=0.701)["types_acc"] == 0


def test_spans_may_be_those_of_a_group() -> None:
    eg = example({CHARLES: "p", BABBAGE: "n"}, {CHARLES: "p", BABBAGE: "n"}, key="sc")
    assert typing_score([eg], spans_key="sc")["types_acc"] == 1
    assert typing_score([eg])["types_acc"] is None
    assert typing_score([eg], spans_key="other")["types_acc"] is None


def test_the_two_sides_may_be_tokenised_differently() -> None:
    predicted = annotate(NLP("Ada-Marie met  Charles."), {(0, 3): "p", (5, 6): "p"}, None)
    assert [ent.text for ent in predicted.ents] == ["Ada-Marie", "Charles"]
    reference = Doc(NLP.vocab, words=["Ada-Marie", "met", "Charles."])
    annotate(reference, {(0, 1): "ps", (2, 3): "p"}, None)
    scores = typing_score([Example(predicted, reference)])
    assert prf(scores, "micro")[:2] == (1 / 2, pytest.approx(1 / 3))


@pytest.mark.parametrize("examples", [[], [example({ADA: "p"}, {ADA: None})]])
def test_without_annotated_types_there_is_no_score(examples) -> None:
    scores = typing_score(examples, labels=["p"])
    assert len(scores) == 11 and set(scores.values()) == {None}


def test_scorers_take_the_settings_of_a_component_and_another_prefix() -> None:
    eg = example({ADA: "p"}, {ADA: "p"})
    score = make_luke_entity_typing_scorer()
    scores = score([eg], labels=["p", "q"], window=512, prefix="kinds")
    assert scores["kinds_macro_f"] == 1
    assert scores["kinds_per_type"]["q"] == {"p": None, "r": None, "f": None}
    name = "spacy-luke.luke_entity_typing_scorer.v1"
    assert callable(spacy.registry.scorers.get(name)())


def test_answers_are_those_that_the_score_counts_also_with_thresholds_of_implied_types() -> None:
    examples = [example({ADA: {"/a/b": 0.9}, LONDON: {"/a": 0.4}}, {ADA: {"/a/b": 1.0}})]
    for thresholds in ({}, {"/a": 0.95}, {"/a": None}, {"/a/b": 0.95}):
        settings = {"threshold": 0.3, "thresholds": thresholds, "ancestors": True}
        scores = typing_score(examples, **settings)
        assert typing_answers(examples, **settings).prf() == prf(scores, "micro")


@pytest.mark.parametrize(
    ("thresholds", "found"),
    [
        ({"/a/b": 0.05}, {"/a/b": 0.5, "/a": 0.5}),  # what implies it is written
        ({"/a/b": 0.05, "/a": 0.6}, {"/a/b": 0.5}),
        ({"/a/b": None, "/a": 0.05}, {"/a": 0.5}),
        ({}, {}),
    ],
)
def test_an_implied_type_counts_if_it_is_written(thresholds, found) -> None:
    eg = example({ADA: {"/a/b": 0.5, "/a": 0.5}}, {ADA: {"/a/b": 1.0}})
    settings = {"threshold": 0.7, "thresholds": thresholds, "ancestors": True}
    assert {x.label: x.score for x in typing_answers([eg], **settings).found} == found
    assert typing_score([eg], **settings)["types_micro_r"] == len(found) / 2


def test_types_of_spans_on_tokens_of_unknown_annotation_are_not_wrong() -> None:
    eg = example({ADA: "p", CHARLES: "p", LONDON: "l"}, {ADA: "p"})
    ents, known = list(eg.reference.ents), [eg.reference[1:2], eg.reference[4:6]]
    eg.reference.set_ents(ents, outside=known, default="missing")
    eg.reference.ents[0]._.types = {"p": 1.0}
    assert prf(typing_score([eg]), "micro") == pytest.approx((1 / 2, 1, 2 / 3))  # London is wrong
