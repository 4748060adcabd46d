"""Faults that users of the port in ``transformers`` report, each absent here.

The others have their tests where they belong: [MASK] of lite vocabularies learns
(``tests/model/test_matrix.py``), ``<ent>`` has the id of its file
(``tests/vocab/test_sentencepiece.py``).
"""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span

from spacy_luke.model.network import LukeModel
from spacy_luke.pipeline.published import import_checkpoint

TEXT = "Ada Lovelace was born in London ."


@pytest.fixture(scope="module")
def luke(luke_dir):
    return import_checkpoint(str(luke_dir), "en")


@pytest.fixture
def calls(monkeypatch):
    """The inputs of every call of the network."""
    seen = []
    forward = LukeModel.forward

    def record(self, inputs, attention="full"):
        seen.append(inputs)
        return forward(self, inputs, attention)

    monkeypatch.setattr(LukeModel, "forward", record)
    return seen


def annotated(nlp, words, spans):
    doc = Doc(nlp.vocab, words=words)
    doc.ents = [Span(doc, start, end, label="X") for start, end in spans]
    return doc


def vectors(nlp, doc):
    return nlp.get_pipe("luke")(doc)._.luke


def encode(nlp, docs):
    """Vectors of documents that are one batch."""
    pipe = nlp.get_pipe("luke")
    return pipe._encode(docs, [list(doc.ents) for doc in docs])


def test_padding_is_never_attended_to(luke):
    """Neither words nor entities change when others of the batch are longer or have more."""
    short = annotated(luke, TEXT.split(" "), [(0, 2)])
    long = annotated(luke, TEXT.split(" ") * 10, [(i, i + 1) for i in range(40)])
    none = annotated(luke, ["Tokyo"], [])
    alone, batched = encode(luke, [short])[0], encode(luke, [long, short, none])[1]
    assert np.abs(alone.token_vectors - batched.token_vectors).max() < 1e-5
    assert np.abs(alone.entity_vectors - batched.entity_vectors).max() < 1e-5


def test_no_entities_are_asked_about_but_those_given(luke, calls):
    vectors(luke, annotated(luke, TEXT.split(" "), [(0, 2), (5, 6)])).entity_vectors.any()
    assert [len(x.entities.ids) for x in calls] == [2]


def test_spans_beyond_a_window_are_answered(luke):
    words = TEXT.split(" ") * 300
    found = vectors(luke, annotated(luke, words, [(0, 2), (2098, 2099)])).entity_vectors
    assert found.shape == (2, 32) and (np.abs(found) > 0).any(axis=1).all()


def test_long_texts_with_entities_overflow_into_windows(luke, calls):
    words = TEXT.split(" ") * 60
    spans = [(i * 7, i * 7 + 2) for i in range(60)]
    assert vectors(luke, annotated(luke, words, spans)).entity_vectors.shape == (60, 32)
    assert sum(len(x.words.offsets) - 1 for x in calls) > 5
    assert sum(len(x.entities.ids) for x in calls) == 60


def test_words_that_come_split_are_the_words_of_the_text(luke):
    text = "Ada Lovelace was born in London, wasn't she?"
    parsed = spacy.blank("en")(text)
    split = Doc(
        luke.vocab, words=[x.text for x in parsed], spaces=[bool(x.whitespace_) for x in parsed]
    )
    one, other = (vectors(luke, doc).token_vectors for doc in (luke.make_doc(text), split))
    assert np.array_equal(one, other)


def test_no_spans_at_all_are_no_error(luke):
    found = vectors(luke, annotated(luke, TEXT.split(" "), []))
    assert found.entity_vectors.shape == (0, 32) and found.token_vectors.shape == (7, 32)


def test_every_sequence_ends_with_its_special_piece(luke, calls):
    pieces = luke.get_pipe("luke").model.shims[0].module.pieces
    for words, spans in ((TEXT.split(" "), []), (TEXT.split(" ") * 50, [(3, 4)])):
        vectors(luke, annotated(luke, words, spans)).token_vectors.any()
    for inputs in calls:
        ids, offsets = inputs.words.piece_ids, inputs.words.offsets
        assert (ids[offsets[1:] - 1] == pieces.sep_id).all()
        assert (ids[offsets[:-1]] == pieces.cls_id).all()


def test_entities_that_are_not_there_are_not_in_the_loss(make_checkpoint):
    """A batch with different numbers of spans has the gradient of its documents' sum."""
    nlp = import_checkpoint(str(make_checkpoint("luke")), "en")
    network = nlp.get_pipe("luke").model.shims[0].module.network
    docs = [
        annotated(nlp, TEXT.split(" "), [(0, 2)]),
        annotated(nlp, TEXT.split(" ") * 3, [(i, i + 1) for i in range(9)]),
    ]
    calls = []
    forward = LukeModel.forward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            LukeModel, "forward", lambda self, x, a="full": calls.append(x) or forward(self, x, a)
        )
        for batch in (docs, docs[:1], docs[1:]):
            encode(nlp, batch)
    gradients = []
    for inputs in calls:
        network.zero_grad()
        (network(inputs).entities ** 2).sum().backward()
        gradients.append(network.entity_embeddings.table.grad.clone())
    assert torch.allclose(gradients[0], gradients[1] + gradients[2], atol=1e-4)
