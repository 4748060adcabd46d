"""A shared encoder learns from every batch of its own, whatever happens around it, or says so."""

import copy

import numpy as np
import pytest
import spacy
from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import SGD

from tests.pipeline.relation_data import make_examples
from tests.pipeline.test_joint import TASKS, answers, encoder, gradients, head, initialized, weights

TOLD = "A shared encoder takes no part in an update"


WIDTH = 32
"""Of the encoder. The vectors of ``entity_linker`` have as many columns."""


def sgd() -> SGD:
    return SGD(0.05, grad_clip=0.0, L2=0.0, use_averages=False)


class Replacing:
    """A component that puts other documents into the pipeline."""

    def __call__(self, doc: Doc) -> Doc:
        return doc.copy()


@Language.factory("replacing_component_of_tests")
def make_replacing(nlp: Language, name: str) -> Replacing:
    return Replacing()


@pytest.fixture
def joint(bert_dir):
    return initialized(bert_dir)


@pytest.mark.parametrize("direct", [True, False])
def test_documents_that_are_replaced_in_a_batch_are_still_its_own(joint, caplog, direct):
    nlp, _ = joint
    nlp.add_pipe("replacing_component_of_tests", after="luke")
    before = weights(encoder(nlp))
    annotates = ["replacing_component_of_tests"]
    nlp.update(make_examples(nlp), sgd=sgd() if direct else False, annotates=annotates)
    if not direct:
        nlp.get_pipe("luke").finish_update(sgd())
    assert np.abs(weights(encoder(nlp)) - before).max() > 1e-5
    assert TOLD not in caplog.text


def copies(docs):
    return [doc.copy() for doc in docs]


def test_copies_that_a_component_makes_itself_train_the_encoder(joint, caplog, monkeypatch):
    nlp, examples = joint
    pipe = nlp.get_pipe("luke_ner")
    make = pipe._query
    monkeypatch.setattr(pipe, "_query", lambda docs, *args, **kw: make(copies(docs), *args, **kw))
    exclude = ["luke_relation", "luke_entity_typing"]
    before = weights(encoder(nlp))
    for _ in range(2):  # the step of the first is owed until the second
        nlp.update(examples, sgd=sgd(), exclude=exclude)
    assert np.abs(weights(encoder(nlp)) - before).max() > 1e-5 and TOLD not in caplog.text


@pytest.mark.parametrize("of_given", [True, False])
def test_the_entity_linker_of_spacy_trains_the_encoder(bert_dir, caplog, of_given):
    """It learns from copies of the documents, with gold entities, or from the documents."""
    nlp, examples = with_entity_linker(bert_dir, use_gold_ents=not of_given)
    for example in examples if of_given else ():
        example.predicted.ents = [
            Span(example.predicted, x.start, x.end, x.label) for x in example.reference.ents
        ]
    before = weights(encoder(nlp))
    nlp.update(examples, sgd=sgd())
    assert np.abs(weights(encoder(nlp)) - before).max() > 1e-5 and TOLD not in caplog.text
    before = weights(encoder(nlp))
    nlp.update(examples, sgd=sgd(), exclude=["luke"])
    assert np.array_equal(weights(encoder(nlp)), before) and TOLD in caplog.text


def with_entity_linker(directory, **settings):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke", config={"model": {"name": str(directory)}})
    tok2vec = {"@architectures": "spacy-luke.LukeListener.v1"}
    model = {"@architectures": "spacy.EntityLinker.v2", "tok2vec": tok2vec}
    config = {"model": model, "entity_vector_length": WIDTH, **settings}
    linker = nlp.add_pipe("entity_linker", config=config)
    linker.set_kb(make_kb)
    doc = Doc(nlp.vocab, words=["Ada", "left", "London"], sent_starts=[True, False, False])
    gold = doc.copy()
    gold.ents = [Span(gold, 0, 1, "PER", kb_id="Q1"), Span(gold, 2, 3, "LOC", kb_id="Q2")]
    examples = [Example(doc.copy(), gold.copy()) for _ in range(2)]
    nlp.initialize(lambda: examples)
    return nlp, examples


def make_kb(vocab):
    kb = InMemoryLookupKB(vocab, WIDTH)
    for name, (id_, other), at in (("Ada", ("Q1", "Q3"), 0), ("London", ("Q2", "Q3"), 1)):
        for n, entity in enumerate((id_, other)):
            if not kb.contains_entity(entity):
                kb.add_entity(entity, 5, np.eye(WIDTH, dtype="f")[at + n].tolist())
        kb.add_alias(name, [id_, other], [0.5, 0.5])
    return kb


@pytest.mark.parametrize("way", ["exclude", "select_pipes", "own update"])
def test_an_upstream_that_takes_no_part_is_said_once_and_the_head_learns(joint, caplog, way):
    nlp, examples = joint
    shared, own = weights(encoder(nlp)), weights(head(nlp, "luke_ner"))
    for _ in range(2):
        if way == "exclude":
            nlp.update(examples, sgd=sgd(), exclude=["luke"])
        elif way == "select_pipes":
            with nlp.select_pipes(disable=["luke"]):
                nlp.update(examples, sgd=sgd())
        else:
            nlp.get_pipe("luke_ner").update(examples, sgd=sgd())
    assert (weights(encoder(nlp)) == shared).all()
    assert (weights(head(nlp, "luke_ner")) != own).any()
    told = [message for message in caplog.messages if TOLD in message]
    assert len(told) == (1 if way == "own update" else 3)  # of each component


def test_a_link_that_an_earlier_batch_left_open_never_raises(joint):
    nlp, examples = joint
    nlp.update(examples, sgd=sgd(), exclude=["luke_ner"])
    shared, added = weights(encoder(nlp)), gradients(encoder(nlp))
    others = [Example(Doc(nlp.vocab, words=["Other", "words"]), Doc(nlp.vocab, ["Other", "words"]))]
    nlp.get_pipe("luke_ner").update(others, sgd=False)
    assert (weights(encoder(nlp)) == shared).all()
    assert (gradients(encoder(nlp)) == added).all()


@pytest.mark.parametrize("direct", [True, False])
def test_gradients_of_a_batch_that_failed_are_not_those_of_the_next(bert_dir, monkeypatch, direct):
    def learned(fails: bool) -> np.ndarray:
        nlp, examples = initialized(bert_dir)
        if fails:
            pipe = nlp.get_pipe("luke_relation")
            with monkeypatch.context() as patch:
                patch.setattr(pipe, "_loss", lambda *args: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    nlp.update(examples[:2], sgd=False)
            assert not gradients(encoder(nlp)).any()
            assert not any(gradients(head(nlp, task)).any() for task in TASKS)
        optimizer = sgd()
        nlp.update(examples, sgd=optimizer if direct else False, drop=0.0)
        if not direct:
            nlp.get_pipe("luke").finish_update(optimizer)
        return weights(encoder(nlp))

    assert np.abs(learned(True) - learned(False)).max() < 1e-6


@pytest.mark.parametrize("way", ["disk", "bytes"])
def test_a_step_that_is_owed_is_taken_before_saving(joint, tmp_path, way):
    """nlp.update finishes the upstream before its listeners have run, and one is not there."""
    nlp, examples = joint
    before = weights(encoder(nlp))
    nlp.update(examples, sgd=sgd(), exclude=["luke_entity_typing"], drop=0.0)
    if way == "disk":
        nlp.to_disk(tmp_path)
        saved = spacy.load(tmp_path)
    else:
        saved = nlp.from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert np.abs(weights(encoder(saved)) - before).max() > 1e-5
    assert (weights(encoder(saved)) == weights(encoder(nlp))).all()
    assert not gradients(encoder(nlp)).any()


def test_a_copied_pipeline_shares_an_encoder_of_its_own(joint):
    nlp, examples = joint
    nlp.update(examples, sgd=sgd())
    other = copy.deepcopy(nlp)
    assert answers(other) == answers(nlp)
    assert encoder(other) is not encoder(nlp)
    mine, theirs = weights(encoder(nlp)), weights(encoder(other))
    other.update(make_examples(other), sgd=sgd())
    assert (weights(encoder(nlp)) == mine).all()
    assert np.abs(weights(encoder(other)) - theirs).max() > 1e-5
    nlp.update(make_examples(nlp), sgd=sgd())
    assert np.abs(weights(encoder(nlp)) - mine).max() > 1e-5


def test_a_copied_model_alone_has_no_upstream(joint):
    nlp, _ = joint
    alone = nlp.get_pipe("luke_relation").model.copy()
    assert alone.layers[0].attrs["link"].encoder is None


def test_an_owed_step_is_not_taken_on_averages(joint):
    nlp, examples = joint
    optimizer = SGD(0.05, grad_clip=0.0, L2=0.0, use_averages=True)
    nlp.update(examples, sgd=optimizer, drop=0.0)
    before = weights(encoder(nlp))
    nlp.update(examples, sgd=optimizer, exclude=["luke_entity_typing"], drop=0.0)
    averages = {key: value.copy() for key, value in optimizer.averages.items()}
    with nlp.use_params(optimizer.averages):
        inside = weights(encoder(nlp))
        nlp.to_bytes()
        assert (weights(encoder(nlp)) == inside).all()
    assert np.abs(weights(encoder(nlp)) - before).max() > 1e-6
    assert set(averages) <= set(optimizer.averages)
