"""``Span._.score``: whose it is, and what it survives."""

import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, SpanGroup

from spacy_luke.annotations.scores import scores_of
from spacy_luke.errors import InputError

SPANS = [(0, 1, "PER"), (0, 2, "PER"), (3, 4, "LOC"), (3, 4, "GPE")]
SCORES = [0.125, 0.875, 0.5, 0.25]


def group(doc, key="ner", spans=SPANS, scores=SCORES):
    made = [Span(doc, a, b, label=label) for a, b, label in spans]
    doc.spans[key] = SpanGroup(doc, name=key, spans=made)
    doc.spans[key].attrs["scores"] = np.asarray(scores, dtype="float32")


@pytest.fixture
def doc():
    doc = spacy.blank("en")("Ada Lovelace left London at noon")
    group(doc)
    doc.set_ents([doc.spans["ner"][1], doc.spans["ner"][2]])
    return doc


def test_entities_and_all_spans_of_the_group_have_their_scores(doc):
    assert [ent._.score for ent in doc.ents] == [0.875, 0.5]
    assert [span._.score for span in doc.spans["ner"]] == SCORES
    assert type(doc.ents[0]._.score) is float
    assert scores_of(doc) == {
        (x.start_char, x.end_char, x.label): x._.score for x in doc.spans["ner"]
    }


def test_scores_are_found_in_any_order_of_a_group(doc):
    order = [2, 0, 3, 1]
    group(doc, "ner", [SPANS[i] for i in order], [SCORES[i] for i in order])
    assert [Span(doc, a, b, label=x)._.score for a, b, x in SPANS] == SCORES


def test_scores_may_be_a_column_as_those_of_spancat_singlelabel(doc):
    doc.spans["ner"].attrs["scores"] = np.asarray(SCORES, dtype="float32")[:, None]
    assert [span._.score for span in doc.spans["ner"]] == SCORES
    assert sorted(scores_of(doc).values()) == sorted(SCORES)


def test_a_span_that_nobody_scored_has_none(doc):
    assert doc[4:5]._.score is None
    assert Span(doc, 3, 4, label="ORG")._.score is None  # another label
    assert spacy.blank("en")("Ada")[:1]._.score is None


def test_scores_stay_with_their_entities_when_another_component_writes_doc_ents(doc):
    noon, london = Span(doc, 5, 6, label="TIME"), Span(doc, 3, 4, label="LOC")
    doc.set_ents([london, noon])
    assert [(ent.text, ent._.score) for ent in doc.ents] == [("London", 0.5), ("noon", None)]
    doc.set_ents([])
    ruler = spacy.blank("en").add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "London"}])
    assert [ent._.score for ent in ruler(doc).ents] == [0.25]


COPIES = {
    "DocBin": lambda doc: next(
        DocBin().from_bytes(DocBin(docs=[doc]).to_bytes()).get_docs(spacy.blank("en").vocab)
    ),
    "bytes": lambda doc: Doc(spacy.blank("en").vocab).from_bytes(doc.to_bytes()),
    "copy": lambda doc: doc.copy(),
    "pickle": lambda doc: pickle.loads(pickle.dumps(doc)),
}


@pytest.mark.parametrize("how", COPIES)
def test_scores_survive(doc, how):
    other = COPIES[how](doc)
    assert [(x.label_, x._.score) for x in other.ents] == [("PER", 0.875), ("LOC", 0.5)]


def test_scores_stay_with_their_entities_when_tokens_are_merged():
    nlp = spacy.blank("en")
    doc = nlp("Ada Lovelace left New York City at noon today")
    spans = [(0, 2, "PER"), (3, 6, "LOC"), (7, 8, "TIME"), (7, 8, "LOC")]
    group(doc, "ner", spans, SCORES)
    doc.set_ents([doc.spans["ner"][i] for i in range(3)])
    nlp.add_pipe("merge_entities")(doc)
    assert [(x.text, len(x)) for x in doc.ents] == [
        ("Ada Lovelace", 1),
        ("New York City", 1),
        ("noon", 1),
    ]
    assert [x._.score for x in doc.ents] == SCORES[:3]
    assert Span(doc, 4, 5, label="LOC")._.score == SCORES[3]
    assert doc[5:6]._.score is None
    assert [scores_of(doc)[x.start_char, x.end_char, x.label] for x in doc.ents] == SCORES[:3]


def test_of_two_groups_the_last_counts(doc):
    group(doc, "later", SPANS[1:3], [0.375, 0.0])
    doc.spans["names"] = [Span(doc, 0, 2, label="PER")]  # without scores
    assert [ent._.score for ent in doc.ents] == [0.375, 0.0]
    assert doc.spans["ner"][0]._.score == 0.125  # only in the first
    assert scores_of(doc) == {
        (x.start_char, x.end_char, x.label): x._.score for x in doc.spans["ner"]
    }


def test_scores_that_are_not_one_per_span_are_an_error(doc):
    doc.spans["ner"].append(Span(doc, 5, 6, label="TIME"))
    for use in (lambda: doc.ents[0]._.score, lambda: scores_of(doc)):
        with pytest.raises(InputError, match=r"Doc.spans\['ner'\] has 5 spans and 4 scores"):
            use()
    assert doc[4:5]._.score is None  # not a span of that group


def test_a_score_is_set_in_its_group(doc):
    with pytest.raises(InputError, match="read from the spans groups"):
        doc.ents[0]._.score = 0.5
    doc.spans["ner"].attrs["scores"] = [0.0, 1.0, 0.0, 0.0]
    assert doc.ents[0]._.score == 1.0


def test_spancat_has_scores_too():
    nlp = spacy.blank("en")
    spancat = nlp.add_pipe("spancat", config={"threshold": 0.0})
    spancat.add_label("PER")
    nlp.initialize()
    doc = nlp("Ada left")
    assert [span._.score for span in doc.spans["sc"]] == pytest.approx(
        doc.spans["sc"].attrs["scores"].tolist()
    )
    assert len(doc.spans["sc"]) > 0
