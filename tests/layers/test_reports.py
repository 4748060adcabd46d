"""What concerns most batches of some texts is logged once, not with every batch."""

import logging

import spacy
from spacy.tokens import Doc

from tests.pipeline.conftest import make_examples, make_ner

LONG = "." * 100  # a piece each


def test_cut_tokens_and_unfit_entities_are_logged_once_per_encoder(bert_dir, caplog):
    nlp = make_ner(bert_dir)
    nlp.initialize(lambda: make_examples(nlp))
    docs = [Doc(nlp.vocab, words=["Ada", LONG]) for _ in range(4)]
    with caplog.at_level(logging.WARNING, "spacy.luke"):
        list(nlp.pipe(docs, batch_size=1))
    assert sum("have more than" in x.message for x in caplog.records) == 1
    other = make_ner(bert_dir)
    other.initialize(lambda: make_examples(other))
    with caplog.at_level(logging.WARNING, "spacy.luke"):
        other(Doc(other.vocab, words=[LONG]))
    assert sum("have more than" in x.message for x in caplog.records) == 2

    vectors = spacy.blank("en")
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    vectors.add_pipe("luke", config={"model": encoder})
    vectors.initialize()
    for _ in range(3):
        doc = Doc(vectors.vocab, words=["Ada"] * 900, ents=["B-X"] + ["I-X"] * 899)
        with caplog.at_level(logging.WARNING, "spacy.luke"):
            assert not vectors(doc).ents[0]._.luke_vector.any()
    assert sum("their vectors are zero" in x.message for x in caplog.records) == 1
