"""Predictions inside ``nlp.memory_zone()``: nothing of them stays, and they are as outside."""

import gc
from weakref import ref

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from tests.pipeline.conftest import LISTENER, WORDS, undecided
from tests.pipeline.relation_data import make_examples

WORD = {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 1}
HEADS = {
    "luke_ner": {"nil_bias": 50.0, "suggester": WORD},  # untrained, but every word is an entity
    "luke_relation": {"threshold": 0.0},
    "luke_entity_typing": {"threshold": 0.0},
}


@pytest.fixture(scope="module", params=["joint", "separate"])
def nlp(bert_dir, request, tmp_path_factory):
    """Loaded, so that no string of it is known but those that loading adds."""
    own = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    encoder = LISTENER if request.param == "joint" else own
    nlp = spacy.blank("en")
    config = {"model": {"name": str(bert_dir)}, "keep_vectors": True, "vector_hooks": True}
    nlp.add_pipe("luke", config=config)
    for name, settings in HEADS.items():
        nlp.add_pipe(name, config={"model": {"encoder": encoder}, **settings})
    nlp.initialize(lambda: make_examples(nlp))
    undecided(nlp)
    path = tmp_path_factory.mktemp(request.param)
    nlp.to_disk(path)
    return spacy.load(path)


def answers(doc):
    """Everything that is written, in plain objects."""
    ents = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    relations = [(x.head.text, x.tail.text, x.label) for x in doc._.relations]
    types = [dict(ent._.types) for ent in doc.ents]
    return ents, relations, types, np.array(doc._.luke.token_vectors), np.array(doc[0:1].vector)


def same(one, other):
    alike = [x.keys() for x in one[2]] == [x.keys() for x in other[2]]
    close = all(np.allclose(x, y, atol=1e-5) for x, y in zip(one[3:], other[3:]))
    return one[:2] == other[:2] and alike and close


def test_predictions_in_a_zone_are_as_outside_and_leave_nothing(nlp):
    n_strings, outside, docs = None, None, []
    for i in range(3):
        with nlp.memory_zone():
            given = [Doc(nlp.vocab, words=[*WORDS, f"unheard{i}.{j}"]) for j in range(5)]
            inside = [answers(doc) for doc in nlp.pipe(given, batch_size=2)]
            assert all(ents and relations for ents, relations, *_ in inside)
            docs += [ref(doc) for doc in given]
            alone = answers(nlp(Doc(nlp.vocab, words=WORDS)))
            del given
        gc.collect()
        assert not any(doc() for doc in docs)
        assert "unheard0.0" not in nlp.vocab.strings
        n_strings = n_strings or len(nlp.vocab.strings)
        assert len(nlp.vocab.strings) == n_strings
        outside = outside or answers(nlp(Doc(nlp.vocab, words=WORDS)))
        n_strings = len(nlp.vocab.strings)
        assert same(alone, outside)
    assert same(answers(nlp(Doc(nlp.vocab, words=WORDS))), outside)
