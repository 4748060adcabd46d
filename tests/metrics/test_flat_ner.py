"""The score of a corpus as one chain of tags, in which gold is read as IOB1."""

import pytest
import spacy
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.metrics.flat_ner import flat_ner_score

NLP = spacy.blank("en")


def example(n, gold, predicted, starts=(0,), missing=False) -> Example:
    """n words; (start, end, label) of gold and predicted entities; first words of sentences."""
    flags = [i in starts for i in range(n)]
    docs = [Doc(NLP.vocab, words=["w"] * n), Doc(NLP.vocab, words=["w"] * n, sent_starts=flags)]
    for doc, ents in zip(docs, (predicted, gold)):
        if not (missing and doc is docs[1]):
            doc.set_ents([Span(doc, *ent) for ent in ents], default="outside")
    return Example(*docs)


def test_it_is_spacys_score_where_no_entities_of_a_type_meet_between_sentences():
    per, loc = (1, 3, "PER"), (3, 4, "LOC")
    examples = [
        example(5, [per, loc], [per, (3, 5, "LOC")], starts=(0, 3)),
        example(3, [(0, 1, "PER"), (1, 2, "PER")], [(0, 1, "PER")]),  # meet inside a sentence
        example(2, [], [(0, 1, "ORG")]),
    ]
    assert flat_ner_score(examples) == get_ner_prf(examples)


@pytest.mark.parametrize("apart", [False, True], ids=["in one document", "in two"])
def test_entities_of_a_type_that_meet_between_sentences_are_one_in_gold(apart):
    """Perfect predictions are two wrong entities, and one gold entity is missed."""
    ents = [(1, 3, "PER"), (3, 4, "PER"), (5, 6, "LOC")]
    if apart:
        examples = [
            example(3, ents[:1], ents[:1]),
            example(3, [(0, 1, "PER"), (2, 3, "LOC")], [(0, 1, "PER"), (2, 3, "LOC")]),
        ]
    else:
        examples = [example(6, ents, ents, starts=(0, 3))]
    assert get_ner_prf(examples)["ents_f"] == 1.0
    scores = flat_ner_score(examples)
    assert scores["ents_p"] == pytest.approx(1 / 3)
    assert scores["ents_r"] == pytest.approx(1 / 2)
    assert scores["ents_per_type"]["LOC"] == {"p": 1.0, "r": 1.0, "f": 1.0}
    assert scores["ents_per_type"]["PER"]["f"] == 0.0


def test_whole_sentences_of_a_type_are_one_entity():
    ents = [(0, 1, "ORG"), (1, 2, "ORG"), (2, 3, "ORG")]
    scores = flat_ner_score([example(3, ents, [(0, 3, "ORG")], starts=(0, 1, 2))])
    assert scores["ents_f"] == 1.0


def test_entities_of_two_types_stay_two():
    ents = [(0, 1, "ORG"), (1, 2, "PER")]
    assert flat_ner_score([example(2, ents, ents, starts=(0, 1))])["ents_f"] == 1.0


def test_without_annotation_there_is_no_score():
    examples = [example(3, [], [(0, 1, "PER")], missing=True)]
    assert set(flat_ner_score(examples).values()) == {None}
    assert set(flat_ner_score([]).values()) == {None}


def test_predictions_on_other_tokens_are_put_on_those_of_the_reference():
    reference = Doc(NLP.vocab, words=["New", "York", "is"])
    reference.set_ents([Span(reference, 0, 2, "LOC")], default="outside")
    predicted = Doc(NLP.vocab, words=["New York", "is"])
    predicted.set_ents([Span(predicted, 0, 1, "LOC")], default="outside")
    assert flat_ner_score([Example(predicted, reference)])["ents_f"] == 1.0


def test_it_is_registered():
    assert registry.scorers.get("spacy-luke.flat_ner_scorer.v1")() is flat_ner_score
