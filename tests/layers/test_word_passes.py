"""Components on one encoder encode a document's words once, and never with old weights."""

import gc
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import SGD

from spacy_luke.layers import encoder_run, word_passes
from spacy_luke.layers.word_passes import WordPasses
from spacy_luke.model.network import LukeModel, WordPass
from tests.pipeline.conftest import fit
from tests.pipeline.relation_data import make_examples

LISTENER = {"@architectures": "spacy-luke.LukeListener.v1"}
CONSUMERS = ("luke_relation", "luke_entity_typing")


@pytest.fixture
def nlp(bert_dir):
    torch.manual_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    # Untrained, but every word is an entity: so all components have something to ask.
    words = {"@misc": "spacy-luke.sentence_spans_suggester.v1", "max_words": 1}
    ner = {"model": {"encoder": LISTENER}, "nil_bias": 50.0, "suggester": words}
    nlp.add_pipe("luke_ner", config=ner)
    for name in CONSUMERS:
        nlp.add_pipe(name, config={"model": {"encoder": LISTENER}, "threshold": 0.0})
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


@pytest.fixture
def calls(monkeypatch):
    """Grows by one at every word pass."""
    made = []
    original = LukeModel.encode_words

    def encode_words(self, *args):
        made.append(1)
        return original(self, *args)

    monkeypatch.setattr(LukeModel, "encode_words", encode_words)
    return made


def answers(nlp):
    docs = list(nlp.pipe([Doc(nlp.vocab, words=WORDS), Doc(nlp.vocab, words=WORDS[2:])]))
    relations = [r.score for doc in docs for r in doc._.relations]
    types = [score for doc in docs for ent in doc.ents for score in ent._.types.values()]
    return [ent.text for doc in docs for ent in doc.ents], np.asarray(relations + types)


WORDS = ["Ada", "Lovelace", "met", "Charles", "Babbage", "in", "London", "."]


def test_three_components_need_one_word_pass(nlp, calls):
    ents, scores = answers(nlp)
    assert ents and len(scores)
    assert len(calls) == 1


def test_the_answers_are_those_of_passes_of_their_own(nlp, calls, monkeypatch):
    ents, scores = answers(nlp)
    monkeypatch.setattr(word_passes, "MAX_ROWS", 0)
    nlp.get_pipe("luke").upstream.passes.clear()
    others, other_scores = answers(nlp)
    assert len(calls) == 1 + 3
    assert others == ents and np.abs(scores - other_scores).max() < 1e-6


def test_a_component_on_an_encoder_of_its_own_remembers_nothing(nlp):
    nlp.remove_pipe("luke_ner")
    nlp.remove_pipe("luke_entity_typing")
    doc = make_examples(nlp)[3].predicted
    nlp.get_pipe("luke_relation").predict([doc])
    assert not nlp.get_pipe("luke").upstream.passes._passes


def test_trained_weights_are_not_answered_for_by_old_passes(nlp, tmp_path):
    before = answers(nlp)[1]
    fit(nlp, make_examples(nlp), 1, rate=1e-2)
    ents, after = answers(nlp)
    nlp.to_disk(tmp_path)
    loaded_ents, loaded = answers(spacy.load(tmp_path))
    assert ents == loaded_ents and np.allclose(after, loaded, atol=1e-5)
    assert before.shape != after.shape or not np.allclose(before, after, atol=1e-4)


def test_weights_written_by_hand_are_seen(nlp, calls):
    answers(nlp)
    module = nlp.get_pipe("luke").model.shims[0].module
    with torch.no_grad():
        module.network.layers[0].qkv.weight.mul_(2.0)
    calls.clear()
    answers(nlp)
    assert len(calls) == 1


def remembered(nlp) -> int:
    passes = nlp.get_pipe("luke").upstream.passes
    return sum(kept.n_rows for kept in passes._passes.values())


def pieces_encoded(nlp, docs, monkeypatch) -> int:
    """Pieces that went through the words' half of the network while the pipeline ran."""
    made = []
    original = LukeModel.encode_words

    def encode_words(self, words, *args):
        made.append(len(words.piece_ids))
        return original(self, words, *args)

    monkeypatch.setattr(LukeModel, "encode_words", encode_words)
    list(nlp.pipe(docs, batch_size=len(docs)))
    monkeypatch.setattr(LukeModel, "encode_words", original)
    return sum(made)


def long_docs(nlp, n: int):
    """Documents of 68 words, no two alike: a pass is found by its content."""
    words = [[*WORDS[:-1], *["to"] * i, "is", *["to"] * (59 - i), "."] for i in range(n)]
    return [Doc(nlp.vocab, words=x) for x in words]


def test_many_documents_and_many_candidates_need_one_pass_too(bert_dir, monkeypatch):
    torch.manual_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    for name in ("luke_ner", *CONSUMERS):  # as they come: luke_ner asks about 8 spans a word
        nlp.add_pipe(name, config={"model": {"encoder": LISTENER}})
    nlp.initialize(lambda: make_examples(nlp))
    once = pieces_encoded(nlp, [nlp.make_doc("Ada")], monkeypatch)
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 1000)  # so that there are several groups
    per_doc = pieces_encoded(nlp, long_docs(nlp, 1), monkeypatch)
    assert once and pieces_encoded(nlp, long_docs(nlp, 32), monkeypatch) == 32 * per_doc


def test_nothing_is_remembered_once_all_have_answered(nlp):
    answers(nlp)
    assert remembered(nlp) == 0


def test_if_a_component_is_away_passes_go_with_the_documents(nlp):
    with nlp.select_pipes(disable=["luke_entity_typing"]):
        for _ in range(3):
            docs = list(nlp.pipe([Doc(nlp.vocab, words=WORDS), Doc(nlp.vocab, words=WORDS[2:])]))
            assert 0 < remembered(nlp) < 100
        del docs[0]
        assert remembered(nlp) == 0
    answers(nlp)
    assert remembered(nlp) == 0


def test_a_component_that_encodes_in_its_own_way_leaves_nothing_behind(bert_dir):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(bert_dir)}})
    nlp.add_pipe("luke_ner", config={"model": {"encoder": LISTENER}, "nil_bias": 50.0})
    markers = {"mode": "markers", "encoder": LISTENER}
    nlp.add_pipe("luke_relation", config={"model": markers, "threshold": 0.0})
    nlp.initialize(lambda: make_examples(nlp))
    docs = list(nlp.pipe(long_docs(nlp, 2)))
    assert len(docs) == 2 and remembered(nlp) == 0


def test_memory_is_bounded_by_rows_and_what_does_not_fit_is_encoded_again(nlp, monkeypatch):
    monkeypatch.setattr(word_passes, "MAX_ROWS", 200)
    monkeypatch.setattr(encoder_run, "MAX_ROWS", 200)
    docs = long_docs(nlp, 6)
    most, keep = [], WordPasses.keep

    def spy(self, *args):
        keep(self, *args)
        most.append(sum(kept.n_rows for kept in self._passes.values()))

    monkeypatch.setattr(WordPasses, "keep", spy)
    per_doc = pieces_encoded(nlp, long_docs(nlp, 1), monkeypatch)
    encoded = pieces_encoded(nlp, docs, monkeypatch)
    assert 6 * per_doc < encoded < 3 * 6 * per_doc and 0 < max(most) <= 200


def test_a_pipeline_that_shares_an_encoder_can_be_pickled(nlp):
    copy = pickle.loads(pickle.dumps(nlp))
    before, after = answers(nlp), answers(copy)
    assert before[0] == after[0] and np.allclose(before[1], after[1], atol=1e-6)
    fit(copy, make_examples(copy), 1, rate=1e-2)
    assert not np.allclose(answers(copy)[1][:1], after[1][:1], atol=1e-4)
    assert np.allclose(answers(nlp)[1], before[1], atol=1e-6)


def test_a_step_taken_between_predictions_is_seen(nlp, calls):
    examples = make_examples(nlp)
    nlp.update(examples, sgd=False)
    answers(nlp)
    for _, component in nlp.pipeline:
        component.finish_update(SGD(0.1, use_averages=False))
    calls.clear()
    answers(nlp)
    assert len(calls) == 1


def test_a_pass_is_freed_when_it_is_dropped_not_by_the_garbage_collector():
    passes, vocab = WordPasses(), Vocab()
    docs = [Doc(vocab), Doc(vocab)]
    states = [torch.zeros(1, 1), torch.zeros(1, 1)]
    alive = [ref(tensor) for tensor in states]
    gc.disable()
    try:
        for i, doc in enumerate(docs):
            passes.keep((i,), 1, WordPass(None, states.pop(0), [], []), doc)
        passes.end(2, 2, docs[0])  # the last component is done
        assert [tensor() is None for tensor in alive] == [True, False]
        del doc, docs
        assert [tensor() is None for tensor in alive] == [True, True]
    finally:
        gc.enable()


def test_threads_may_predict_at_the_same_time(monkeypatch):
    monkeypatch.setattr(word_passes, "MAX_ROWS", 50)
    passes = WordPasses()
    word_pass = WordPass(None, torch.zeros(1, 1), [], [])
    vocab = Vocab()

    def work(thread: int) -> None:
        doc = Doc(vocab)
        for i in range(2000):
            passes.keep((thread, i), thread, word_pass, doc)
            passes.find((thread, i - 5), 9, 3)
            if i % 20 == 0:
                passes.end(thread, 9, doc)
                doc = Doc(vocab)
            if i % 50 == 0:
                passes.begin(thread)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert len(passes._passes) <= 50
