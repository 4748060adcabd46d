"""luke_linker learns from links, on any encoder, and is saved with its knowledge base."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import DocBin
from spacy.training import Example

from spacy_luke.corpora.preset import preset_ents_corpus
from spacy_luke.kb.entity import Entity
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.layers.encoder import module_of
from spacy_luke.layers.task_layer import encoder_below, encoder_of, head_of
from spacy_luke.pipeline.entity_vectors import make_name_vectors, make_vectors, vectors_hash
from spacy_luke.pipeline.thresholds import Goal
from spacy_luke.pipeline.tuning import tune
from tests.pipeline.conftest import LISTENER, fit
from tests.pipeline.linker_data import (
    RECORDS,
    TEXTS,
    links,
    make_doc,
    make_docs,
    make_examples,
    make_linker,
)

# All vectors of the tiny encoder are alike, so the way to "NIL" is long.
FAST = {"learn_rate_factor": 10.0}
GOLD = [["city", ""], ["band"], ["ada", "NIL"], ["city"], ["city", "band"], ["NIL"]]


@pytest.fixture
def nlp(bert_dir, tmp_path):
    return make_linker(bert_dir, tmp_path / "kb", model=FAST)


def linker_of(nlp):
    return nlp.get_pipe("luke_linker")


def learn(nlp):
    fit(nlp, make_examples(nlp), 60, rate=2e-3)


def predicted(nlp):
    """The links of annotated mentions."""
    docs = [links(doc) for doc in nlp.pipe(make_docs(nlp))]
    return [[x for x, y in zip(*pair) if y] for pair in zip(docs, GOLD)]


def expected():
    return [[x for x in ids if x] for ids in GOLD]


def with_vectors(nlp):
    """Give the knowledge base the vectors of the linker's encoder."""
    pipe = linker_of(nlp)
    make_vectors(nlp, pipe.kb, component="luke_linker")
    return pipe


def test_links_and_nil_are_learned_from_context(nlp):
    assert predicted(nlp) != expected()
    learn(nlp)
    assert predicted(nlp) == expected()


def test_an_encoder_with_a_listener_learns_links(bert_dir, tmp_path):
    nlp = make_linker({**LISTENER, "name": str(bert_dir)}, tmp_path / "kb", model=FAST)
    before = [p.clone() for p in encoder_of(linker_of(nlp).model).parameters()]
    learn(nlp)
    after = list(encoder_of(linker_of(nlp).model).parameters())
    assert any(not np.allclose(a.detach(), b.detach()) for a, b in zip(before, after))
    assert predicted(nlp) == expected()


def test_the_head_alone_learns_on_a_frozen_encoder(bert_dir, tmp_path):
    nlp = make_linker({**LISTENER, "name": str(bert_dir)}, tmp_path / "kb", model=FAST)
    pipe = with_vectors(nlp)
    before = pipe.kb.vectors_hash
    with nlp.select_pipes(disable=["luke"]):
        learn(nlp)
    assert predicted(nlp) == expected()
    nlp.to_disk(tmp_path / "saved")
    assert linker_of(nlp).kb.vectors_hash == before


def test_mentions_without_annotation_teach_nothing(nlp):
    fit(nlp, make_examples(nlp), 1)
    head = head_of(linker_of(nlp).model)
    before = {name: p.detach().clone() for name, p in head.named_parameters()}
    texts = [(words, [(a, b, "") for a, b, _ in mentions]) for words, mentions in TEXTS]
    losses = fit(nlp, make_examples(nlp, texts), 3)
    assert losses["luke_linker"] == 0.0
    assert all(np.array_equal(p.detach(), before[name]) for name, p in head.named_parameters())


@pytest.mark.parametrize("trained", [False, True])
def test_counted_names_without_descriptions_are_learned(bert_dir, tmp_path, trained):
    """Beside mentions that teach nothing, whose candidates are left out of an update."""
    records = [{k: v for k, v in x.items() if k != "description"} for x in RECORDS]
    block = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    block |= {} if trained else {"learn_rate_factor": 0.0}
    nlp = make_linker(block, tmp_path / "kb", records)
    examples = make_examples(nlp, [*TEXTS, ("Tokyo and Kyoto", [(0, 1, ""), (2, 3, "kyoto")])])
    first = fit(nlp, examples, 1)["luke_linker"]
    assert fit(nlp, examples, 30)["luke_linker"] < first


def test_a_gold_entity_that_is_no_candidate_teaches_nothing(nlp):
    for gold in ("ada", "unheard"):
        losses = fit(nlp, make_examples(nlp, [("Tokyo sang", [(0, 1, gold)])]), 1)
        assert losses["luke_linker"] == 0.0
    losses = fit(nlp, make_examples(nlp, [("Tokyo sang", [(0, 1, "NIL")])]), 1)
    assert losses["luke_linker"] > 0.0


def test_gold_links_do_not_reach_the_linker(nlp, tmp_path):
    """A linker that links nothing has a score of 0, though the references have links."""
    references = [make_doc(nlp, text, links=True) for text in TEXTS]
    DocBin(docs=references, store_user_data=True).to_disk(tmp_path / "train.spacy")
    examples = list(preset_ents_corpus(tmp_path / "train.spacy")(nlp))
    assert sum(len(eg.predicted.ents) for eg in examples) == 9
    linker_of(nlp).cfg.update(nil_bias=-1000.0, overwrite=False)
    scores = nlp.evaluate(examples)
    assert scores["nel_micro_f"] == scores["nel_kb_acc"] == scores["nel_ambiguous_kb_acc"] == 0.0
    assert scores["nel_candidate_recall"] == 1.0 and scores["nel_nil_r"] == 1.0


def test_vectors_of_entities_are_those_of_the_present_weights(nlp, tmp_path):
    pipe = with_vectors(nlp)
    encoder = encoder_below(pipe.model)
    first = pipe.kb.vectors_hash
    fit(nlp, make_examples(nlp), 20, rate=3e-3)
    assert pipe.kb.vectors_hash == first  # not made again in every step
    scored = dict(nlp(make_docs(nlp)[0]).ents[0]._.candidates)
    nlp.to_disk(tmp_path / "saved")
    assert pipe.kb.vectors_hash == vectors_hash(encoder, nlp.tokenizer, "description") != first
    again = dict(nlp(make_docs(nlp)[0]).ents[0]._.candidates)
    assert again == pytest.approx(scored, abs=1e-5)
    fit(nlp, make_examples(nlp), 1)
    loaded = spacy.load(tmp_path / "saved")
    kb = linker_of(loaded).kb
    kb.check_vectors(
        vectors_hash(encoder_below(linker_of(loaded).model), loaded.tokenizer, "description")
    )
    assert dict(loaded(make_docs(loaded)[0]).ents[0]._.candidates) == pytest.approx(
        scored, abs=1e-5
    )


def test_saved_pipelines_have_the_same_answers(nlp, tmp_path):
    fit(nlp, make_examples(nlp), 20, rate=3e-3)
    with_vectors(nlp)
    expected = [[x._.candidates for x in doc.ents] for doc in nlp.pipe(make_docs(nlp))]
    nlp.to_disk(tmp_path / "one")
    config = nlp.config.copy()
    empty = spacy.util.load_model_from_config(config, vocab=True)
    copies = {
        "disk": spacy.load(tmp_path / "one"),
        "bytes": empty.from_bytes(nlp.to_bytes()),
        "copy": deepcopy(nlp),
        "pickle": pickle.loads(pickle.dumps(nlp)),
    }
    for name, other in copies.items():
        docs = other.pipe(make_docs(other))
        assert [[x._.candidates for x in doc.ents] for doc in docs] == expected, name
        assert linker_of(other).kb.has_vectors


def test_files_of_the_knowledge_base_are_linked_at_every_save(nlp, tmp_path):
    for folder in ("one", "two", "one"):
        nlp.to_disk(tmp_path / folder)
    for file in (tmp_path / "kb").glob("*.npy"):
        saved = tmp_path / "one" / "luke_linker" / "kb" / file.name
        assert saved.stat().st_ino == file.stat().st_ino, file.name
    loaded = spacy.load(tmp_path / "one")
    loaded.to_disk(tmp_path / "one")  # over itself
    assert predicted(spacy.load(tmp_path / "one")) == predicted(nlp)


def test_entities_are_added_and_removed_without_training(nlp, tmp_path):
    pipe = with_vectors(nlp)
    pipe.nil_bias = 1000.0
    japan = Entity("japan", "Japan", {"Japan": 1.0}, "a government")
    pipe.set_kb(lambda vocab: pipe.kb.edited(add=[japan], remove=["kyoto"]))
    assert links(nlp(make_docs(nlp)[0]))[1] == "japan"
    assert {x for doc in nlp.pipe(make_docs(nlp)) for x in links(doc)} & {"kyoto"} == set()
    nlp.to_disk(tmp_path / "saved")
    kb = MappedKB.open(tmp_path / "saved" / "luke_linker" / "kb", nlp.vocab)
    assert not len(kb.without_vector()) and "japan" in kb


def test_tuning_chooses_the_nil_bias_and_calibrates(nlp):
    learn(nlp)
    pipe = linker_of(nlp)
    pipe.nil_bias = -1000.0
    examples = make_examples(nlp, TEXTS * 10)
    (tuned,) = tune(nlp, examples, Goal())
    assert tuned.before.f == 0.0 and tuned.after.f == 1.0
    assert pipe.nil_bias != -1000.0 and pipe.calibration is not None
    assert predicted(nlp) == expected()
    nlp.update(examples, sgd=nlp.create_optimizer())
    assert pipe.calibration is None


def test_two_linkers_share_an_encoder(bert_dir, tmp_path):
    nlp = make_linker({**LISTENER, "name": str(bert_dir)}, tmp_path / "kb")
    config = {"model": {"encoder": LISTENER}, "overwrite": False}
    second = nlp.add_pipe("luke_linker", "second", config=config)
    second.set_kb(lambda vocab: linker_of(nlp).kb)
    second.initialize(lambda: make_examples(nlp), nlp=nlp)
    nlp.get_pipe("luke").find_listeners(second)
    docs = list(nlp.pipe(make_docs(nlp)))
    with nlp.select_pipes(disable=["second"]):
        assert list(map(links, docs)) == list(map(links, nlp.pipe(make_docs(nlp))))


def test_examples_may_have_other_tokens(nlp):
    reference = make_doc(nlp, ("Tokyo sang their best songs .", [(0, 1, "band")]), True)
    doc = nlp.make_doc("Tokyo sang their best songs .")
    doc.ents = [doc.char_span(0, 5, "X")]
    losses: dict[str, float] = {}
    nlp.update([Example(doc, reference)], losses=losses, sgd=False)
    assert losses["luke_linker"] > 0.0


def test_vectors_of_names_are_made_again_for_an_evaluation(nlp, tmp_path, caplog):
    spacy.util.logger.propagate = True
    pipe = linker_of(nlp)
    make_name_vectors(nlp, pipe.kb, component="luke_linker")
    encoder, first = encoder_below(pipe.model), pipe.kb.name_vectors_hash
    fit(nlp, make_examples(nlp), 3)
    assert pipe.kb.name_vectors_hash == first  # not in every step
    assert caplog.text.count("by vectors of names that its earlier weights made") == 1
    nlp(make_docs(nlp)[0])
    assert pipe.kb.name_vectors_hash == vectors_hash(encoder, nlp.tokenizer, "name") != first
    fit(nlp, make_examples(nlp), 1)
    nlp.to_disk(tmp_path / "saved")
    assert pipe.kb.name_vectors_hash == vectors_hash(encoder, nlp.tokenizer, "name")
    loaded = spacy.load(tmp_path / "saved")
    assert linker_of(loaded).kb.name_vectors_hash == pipe.kb.name_vectors_hash


def test_vectors_of_names_of_a_frozen_encoder_are_those_of_its_weights(bert_dir, tmp_path, caplog):
    """Also in an update after other weights were loaded."""
    spacy.util.logger.propagate = True
    block = {"@architectures": "spacy-luke.LukeEncoder.v1", "name": str(bert_dir)}
    nlp = make_linker({**block, "learn_rate_factor": 0.0}, tmp_path / "kb")
    pipe = linker_of(nlp)
    make_name_vectors(nlp, pipe.kb)
    nlp(make_docs(nlp)[0])
    encoder, first = encoder_below(pipe.model), pipe.kb.name_vectors_hash
    module = module_of(encoder)
    with torch.no_grad(), module.changing():
        next(iter(module.network.layers.parameters())).view(-1)[0] += 0.1
    fit(nlp, make_examples(nlp), 1)
    assert pipe.kb.name_vectors_hash == vectors_hash(encoder, nlp.tokenizer, "name") != first
    assert "its earlier weights made" not in caplog.text
