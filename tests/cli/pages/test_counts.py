"""Entities of other tokens than the annotation's: the page counts what the scorer does."""

import pytest
import spacy
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.cli.pages.counts import Counts, count
from spacy_luke.cli.pages.document import entities_of, predicted_entities
from spacy_luke.cli.pages.text import cut_text


class WhitespaceTokenizer:
    def __init__(self, vocab):
        self.vocab = vocab

    def __call__(self, text):
        return Doc(self.vocab, words=text.split(" "))


@pytest.mark.parametrize("coarse", ["predicted", "reference"])
def test_entities_of_other_tokens_are_counted_as_by_the_scorer(coarse):
    """As gold data that is cut at white space: ``Kilbride.`` is one token."""
    text, places = "Clara Byrne saw Kilbride.", {"Clara Byrne": "PERSON", "Kilbride": "PLACE"}
    fine, rough = spacy.blank("en"), spacy.blank("en")
    rough.tokenizer = WhitespaceTokenizer(rough.vocab)
    docs = [x.make_doc(text) for x in ((rough, fine) if coarse == "predicted" else (fine, rough))]
    for doc in docs:
        start = [text.index(x) for x in places]
        spans = [
            doc.char_span(i, i + len(x), label=places[x], alignment_mode="expand")
            for i, x in zip(start, places)
        ]
        doc.ents = spans
    predicted, reference = docs
    example = Example(predicted, reference)
    expected = get_ner_prf([example])
    gold = entities_of(reference)
    found = predicted_entities(example)
    counts = count(found, gold)
    assert (counts.p, counts.r) == (expected["ents_p"], expected["ents_r"])
    kinds = {piece.kind for piece in cut_text(text, found, gold)} - {""}
    if coarse == "reference":  # its token has the period, too
        assert counts == Counts(2, 0, 0) and kinds == {"agreed"}


@pytest.mark.parametrize("label", ["GPE", "ROUTE"])
def test_of_two_entities_in_one_token_of_the_reference_one_may_be_right(label):
    text = "Paris-London"
    nlp = spacy.blank("en")
    reference = Doc(nlp.vocab, words=[text])
    predicted = Doc(nlp.vocab, words=["Paris", "-", "London"], spaces=[False] * 3)
    reference.ents = [Span(reference, 0, 1, label=label)]
    predicted.ents = [Span(predicted, i, i + 1, label="GPE") for i in (0, 2)]
    example = Example(predicted, reference)
    found, gold = predicted_entities(example), entities_of(reference)
    n_right = int(label == "GPE")
    assert count(found, gold) == Counts(n_right, 2 - n_right, 1 - n_right)
    expected = get_ner_prf([example])
    assert count(found, gold).p == expected["ents_p"] and count(found, gold).r == n_right
    kinds = [piece.kind for piece in cut_text(text, found, gold)]
    assert kinds.count("agreed") == n_right
