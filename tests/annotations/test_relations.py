"""Relations and types survive whatever a document goes through."""

import copy
import pickle

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_luke.annotations.mentions import spans_of
from spacy_luke.annotations.relations import (
    Relation,
    relation_offsets,
    relations_as_dict,
)
from spacy_luke.annotations.types import clear_types, get_types
from spacy_luke.errors import InputError
from spacy_luke.metrics.relations import relation_score


@pytest.fixture
def doc() -> Doc:
    doc = spacy.blank("en")("Ada Lovelace was born in London . Kyoto is in Japan .")
    doc.ents = [
        Span(doc, 0, 2, "PER"),
        Span(doc, 5, 6, "LOC"),
        Span(doc, 7, 8, "LOC"),
        Span(doc, 10, 11, "LOC"),
    ]
    ada, london, kyoto, japan = doc.ents
    doc._.relations = [(kyoto, japan, "located_in"), Relation(ada, london, "born_in", 0.75)]
    ada._.types = {"/person": 0.75, "/person/scientist": 0.875}
    return doc


WORDS = ["New", "York", "City", "hired", "Ada", "and", "Bob", "in", "Rome", "today"]


def described(doc: Doc) -> list:
    return [(r.head.text, r.head.label_, r.tail.text, r.label, r.score) for r in doc._.relations]


EXPECTED = [
    ("Ada Lovelace", "PER", "London", "born_in", 0.75),
    ("Kyoto", "LOC", "Japan", "located_in", 1.0),
]


def test_relations_are_read_in_text_order_with_the_documents_own_spans(doc: Doc) -> None:
    assert described(doc) == EXPECTED
    assert doc._.relations[0].head in doc.ents


def test_types_are_read_with_the_likeliest_first(doc: Doc) -> None:
    assert list(doc.ents[0]._.types.items()) == [("/person/scientist", 0.875), ("/person", 0.75)]
    assert doc.ents[1]._.types is None  # nobody was asked
    doc.ents[1]._.types = {}
    assert doc.ents[1]._.types == {}  # it has none
    clear_types(doc)
    assert get_types(doc.ents[0]) is None


def test_bytes_pickle_docbin_and_copies_keep_both(doc: Doc) -> None:
    nlp = spacy.blank("en")
    docs = [
        Doc(nlp.vocab).from_bytes(doc.to_bytes()),
        pickle.loads(pickle.dumps(doc)),
        doc.copy(),
        next(
            DocBin(store_user_data=True)
            .from_bytes(DocBin(docs=[doc], store_user_data=True).to_bytes())
            .get_docs(nlp.vocab)
        ),
    ]
    for other in docs:
        assert described(other) == EXPECTED
        assert other.ents[0]._.types == doc.ents[0]._.types


def test_joined_documents_carry_both_to_their_new_place(doc: Doc) -> None:
    joined = Doc.from_docs([doc, doc.copy()])
    assert described(joined) == EXPECTED + EXPECTED
    starts = [r.head.start for r in joined._.relations]
    assert starts == [0, 7, 12, 19]
    assert joined.ents[4]._.types == doc.ents[0]._.types


SPLITS = [(7, 12), (0, 4), (0, 8)]


def test_a_part_of_a_document_keeps_the_relations_that_lie_in_it(doc: Doc) -> None:
    assert described(doc[7:12].as_doc(copy_user_data=True)) == EXPECTED[1:]
    assert described(doc[0:4].as_doc(copy_user_data=True)) == []
    assert described(doc[7:12].as_doc()) == []
    assert [len(relation_offsets(doc[a:b].as_doc(copy_user_data=True))) for a, b in SPLITS] == [
        1,
        0,
        1,
    ]


def test_merged_tokens_keep_relations(doc: Doc) -> None:
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    assert described(doc) == EXPECTED


def test_relations_are_replaced_and_duplicates_of_a_pair_with_other_labels_stay(doc: Doc) -> None:
    ada, london, *_ = doc.ents
    doc._.relations = [(ada, london, "b"), (ada, london, "a"), (london, ada, "c")]
    assert [x.label for x in relation_offsets(doc)] == ["a", "b", "c"]
    doc._.relations = []
    assert doc._.relations == ()
    assert not any(isinstance(key, tuple) and key[1] == "luke_relations" for key in doc.user_data)


def test_the_tutorials_dictionary(doc: Doc) -> None:
    assert relations_as_dict(doc) == {(0, 5): {"born_in": 0.75}, (7, 10): {"located_in": 1.0}}
    full = relations_as_dict(doc, ["born_in", "located_in"])
    assert full[0, 5] == {"born_in": 0.75, "located_in": 0.0}


def test_a_relation_that_makes_no_sense_is_refused(doc: Doc) -> None:
    ada = doc.ents[0]
    for relation, message in (
        ((ada, doc[3:3], "x"), "The tail of a relation 'x' is an empty span, at token 3"),
        ((ada, doc.copy()[0:1], "x"), "tail .* not a span of the document"),
        ((ada, "Ada", "x"), "tail .* is 'Ada', which is not a span of the document"),
        ((ada, ada, ""), "label of a relation is ''"),
        ((ada, ada, 3), "label of a relation is 3"),
        ((ada, ada, "x", float("nan")), "score of a relation 'x' is nan, not a probability"),
        ((ada, ada), r"not \(head, tail, label, score\)"),
        (ada, r"not \(head, tail, label, score\)"),
    ):
        with pytest.raises(InputError, match=message):
            doc._.relations = [relation]
    with pytest.raises(InputError, match="give a list of relations"):
        doc._.relations = None
    assert described(doc) == EXPECTED


def test_types_that_make_no_sense_are_refused(doc: Doc) -> None:
    ada = doc.ents[0]
    wanted = dict(ada._.types)
    for types, message in (
        (["/person"], "give a dictionary"),
        ({"": 0.5}, "not a non-empty string"),
        ({3: 0.5}, "is 3, not a non-empty string"),
        ({"/person": float("nan")}, "'/person' is nan, not a probability"),
        ({"/person": 7}, "'/person' is 7, not a probability"),
    ):
        with pytest.raises(InputError, match=message):
            ada._.types = types
    with pytest.raises(InputError, match="Assign a new dictionary"):
        ada._.types["/x"] = 1.0
    with pytest.raises(InputError, match="Assign a new dictionary"):
        ada._.types.update({"/x": 1.0})
    assert ada._.types == wanted and type(copy.deepcopy(ada._.types)) is dict


def test_none_of_one_span_can_be_given_to_another(doc: Doc) -> None:
    ada = doc.ents[0]
    for name in ("types", "candidates", "allowed_ids"):
        ada._.set(name, doc.ents[1]._.get(name))
        assert ada._.get(name) is None


@pytest.mark.parametrize("words", [WORDS, WORDS[:-1]])  # at the end of a text spaCy raises
def test_merged_tokens_do_not_move_relations_of_groups(words: list[str]) -> None:
    """spaCy moves the characters of a group's spans, but not their tokens."""
    doc = Doc(spacy.blank("en").vocab, words=words)
    doc.spans["found"] = [Span(doc, 4, 5, "PER"), Span(doc, 8, 9, "LOC")]
    doc._.relations = [(*doc.spans["found"], "works_in")]
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    expected = [("Ada", "PER", "Rome", "works_in", 1.0)]
    assert described(doc) == expected
    scores = relation_score([Example(doc, doc)])
    assert scores["rels_strict_f"] == 1.0
    assert [(x.text, x.label_) for x in spans_of(doc, "found")] == [("Ada", "PER"), ("Rome", "LOC")]
