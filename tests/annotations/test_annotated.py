"""A document says which of its annotations are complete."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_luke.annotations.annotated import (
    all_annotated_labels,
    annotated_labels,
    copy_annotated,
    is_annotated,
    set_annotated,
)
from spacy_luke.errors import InputError

NLP = spacy.blank("en")


def test_a_document_counts_as_annotated_in_full():
    doc = NLP("Ada sang")
    for layer in ("ents", "relations", "types"):
        assert annotated_labels(doc, layer) is None and is_annotated(doc, layer)


@pytest.mark.parametrize(
    "said,labels,some",
    [(True, None, True), (False, frozenset(), False), (["b", "a", "b"], {"a", "b"}, True)],
)
def test_what_was_said_is_kept_and_survives_docbin_and_bytes(said, labels, some):
    doc = NLP("Ada sang")
    set_annotated(doc, "relations", said)
    (stored,) = DocBin(docs=[doc], store_user_data=True).get_docs(NLP.vocab)
    for copy in (doc, stored, doc.copy(), Doc(NLP.vocab).from_bytes(doc.to_bytes())):
        assert annotated_labels(copy, "relations") == labels
        assert is_annotated(copy, "relations") is some
        assert annotated_labels(copy, "ents") is None


def test_layers_are_said_one_by_one():
    doc, other = NLP("Ada sang"), NLP("Bob ran")
    set_annotated(doc, "relations", False)
    set_annotated(doc, "ents", False)
    assert not is_annotated(doc, "relations") and not is_annotated(doc, "ents")
    assert is_annotated(doc, "types")
    assert all_annotated_labels(doc) != all_annotated_labels(other)
    copy_annotated(doc, other)
    assert all_annotated_labels(doc) == all_annotated_labels(other)
    set_annotated(other, "relations", True)
    assert annotated_labels(doc, "relations") == frozenset()


def test_an_unknown_layer_is_an_error():
    with pytest.raises(InputError, match="'rels' is not a layer.*ents, relations, types"):
        set_annotated(NLP("Ada"), "rels", True)
    with pytest.raises(InputError, match="'sents'"):
        is_annotated(NLP("Ada"), "sents")
    with pytest.raises(InputError, match="ents can only be True or False; only relations"):
        set_annotated(NLP("Ada"), "ents", ["PER"])


@pytest.mark.parametrize("labels", ["born_in", {"born_in": 1}, ["born_in", 3], [""], 5, None])
def test_labels_are_a_list_of_names(labels):
    """The letters of a string would be labels that nothing has."""
    with pytest.raises(InputError, match="relations"):
        set_annotated(NLP("Ada"), "relations", labels)
