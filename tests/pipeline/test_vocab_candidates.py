"""Candidates of luke_linker from the encoder's entity vocabulary."""

import copy
import pickle

import numpy as np
import pytest
import spacy

from spacy_luke.errors import ConfigError
from spacy_luke.kb.tables import Tables
from spacy_luke.layers.task_layer import encoder_below
from spacy_luke.pipeline import vocab_candidates
from spacy_luke.pipeline.entity_vectors import make_name_vectors, make_vectors
from spacy_luke.pipeline.masked_entities import rank_entities
from tests.pipeline.conftest import LISTENER, fit
from tests.pipeline.linker_data import TEXTS, links, make_docs, make_examples, make_linker

FULL = {"attention": "full"}
# Beside them "Tokyo (band)", which is not in the encoder's vocabulary.
SHARED = {"Tokyo": "city", "Ada Lovelace": "ada", "Kyoto": "kyoto"}


@pytest.fixture(scope="module")
def masked_dir(make_checkpoint):
    return make_checkpoint("luke", "LukeForMaskedLM")


def pipe_of(nlp):
    return nlp.get_pipe("luke_linker")


def candidates(nlp, texts=TEXTS):
    """The ids of each mention's candidates."""
    query, _ = pipe_of(nlp).predict(make_docs(nlp, texts))
    ids = query.kb.tables.ids
    return [[ids[row] for row in own if row >= 0] for own in query.rows.tolist()]


def test_they_are_those_that_the_masked_entity_head_ranks_first(masked_dir, tmp_path):
    nlp = make_linker(masked_dir, tmp_path, model=FULL, from_vocabulary=2)
    mentions = [span for doc in make_docs(nlp) for span in doc.ents]
    ranked = rank_entities(encoder_below(pipe_of(nlp).model), mentions, 10_000)
    expected = [[SHARED[x] for x, _ in own if x in SHARED][:2] for own in ranked]
    tables = pipe_of(nlp).kb.tables
    found = pipe_of(nlp)._predicted(pipe_of(nlp).kb, mentions, 2)
    assert [[tables.ids[row] for row in rows] for rows in found] == expected
    plain = candidates(make_linker(masked_dir, tmp_path, model=FULL))
    for before, after, more in zip(plain, candidates(nlp), expected):
        assert set(after) == set(before) | set(more)


def test_a_mention_whose_name_nobody_knows_has_candidates(masked_dir, tmp_path):
    texts = [("It sang best .", [(0, 1, "")])]
    assert candidates(make_linker(masked_dir, tmp_path), texts) == [[]]
    nlp = make_linker(masked_dir, tmp_path, from_vocabulary=3)
    assert sorted(candidates(nlp, texts)[0]) == sorted(SHARED.values())
    (doc,) = list(nlp.pipe(make_docs(nlp, texts)))
    scores = dict(doc.ents[0]._.candidates)
    assert set(scores) >= set(SHARED.values()) and all(0 < x < 1 for x in scores.values())


def test_copies_have_the_tables_of_the_knowledge_base_once(masked_dir, tmp_path, monkeypatch):
    """Also after predictions, for which something was computed that has them in it."""
    nlp = make_linker(masked_dir, tmp_path, from_vocabulary=3, nearest=2)
    make_vectors(nlp, pipe_of(nlp).kb, component="luke_linker")
    make_name_vectors(nlp, pipe_of(nlp).kb, component="luke_linker")
    expected = candidates(nlp)

    def refuse(self, protocol):
        raise AssertionError("the tables are copied beside those of the knowledge base")

    monkeypatch.setattr(Tables, "__reduce_ex__", refuse)
    for copied in (copy.deepcopy(nlp), pickle.loads(pickle.dumps(nlp))):
        assert candidates(copied) == expected


def test_an_entity_that_its_name_finds_keeps_its_prior(masked_dir, tmp_path):
    nlp = make_linker(masked_dir, tmp_path, from_vocabulary=3)
    plain = make_linker(masked_dir, tmp_path)
    for text in TEXTS[:2]:
        found = {}
        for name, one in (("more", nlp), ("plain", plain)):
            query, _ = pipe_of(one).predict(make_docs(one, [text]))
            ids = [query.kb.tables.ids[row] for row in query.rows[0]]
            found[name] = dict(zip(ids, query.features[0, :, 0].tolist()))
        assert {x: found["more"][x] for x in found["plain"]} == found["plain"]
        assert min(found["more"].values()) == pytest.approx(np.log(1e-3))


def test_only_allowed_ids_count(masked_dir, tmp_path):
    nlp = make_linker(masked_dir, tmp_path, from_vocabulary=3)
    (doc,) = make_docs(nlp, [("It sang best .", [(0, 1, "")])])
    doc.ents[0]._.allowed_ids = ["ada", "band"]
    query, _ = pipe_of(nlp).predict([doc])
    assert {query.kb.tables.ids[row] for row in query.rows[0]} == {"ada", "band"}


@pytest.mark.parametrize("attention", ["probe", "full"])
def test_blocks_batches_and_saving_change_nothing(masked_dir, tmp_path, monkeypatch, attention):
    model = {"attention": attention}
    nlp = make_linker(masked_dir, tmp_path / "kb", from_vocabulary=2, model=model)
    before = candidates(nlp)
    assert [candidates(nlp, [text]) for text in TEXTS] == [
        before[i : i + n] for i, n in ((0, 2), (2, 1), (3, 2), (5, 1), (6, 2), (8, 1))
    ]
    monkeypatch.setattr(vocab_candidates, "_BLOCK", 1)
    monkeypatch.setattr(vocab_candidates, "_MENTIONS", 2)
    asked, mask_states = [], vocab_candidates.mask_states

    def spy(node, mentions, attention):
        asked.append(len(mentions))
        return mask_states(node, mentions, attention)

    monkeypatch.setattr(vocab_candidates, "mask_states", spy)
    assert candidates(nlp) == before
    assert asked == [9]  # in full attention the mentions of a document see each other
    nlp.to_disk(tmp_path / "saved")
    assert candidates(spacy.load(tmp_path / "saved")) == before


def test_another_knowledge_base_is_used_at_once(masked_dir, tmp_path):
    nlp = make_linker(masked_dir, tmp_path, from_vocabulary=3)
    pipe = pipe_of(nlp)
    assert "ada" in candidates(nlp)[0]
    kb = pipe.kb.edited(remove=["ada"])
    pipe.set_kb(lambda vocab: kb)
    assert "ada" not in candidates(nlp)[0]


def test_a_shared_encoder_and_training(masked_dir, tmp_path):
    listener = {**LISTENER, "name": str(masked_dir)}
    nlp = make_linker(listener, tmp_path, from_vocabulary=3)
    fast = {"learn_rate_factor": 5.0}
    own = make_linker(masked_dir, tmp_path, from_vocabulary=3, max_vector_age=1, model=fast)
    assert candidates(nlp) == candidates(own)
    texts = [("It sang best .", [(0, 1, "kyoto")]), ("She sang in Kyoto", [(3, 4, "city")])]
    fit(own, make_examples(own, texts), 100, rate=1e-3)
    assert [links(doc) for doc in own.pipe(make_docs(own, texts))] == [["kyoto"], ["city"]]


def test_an_encoder_that_knows_no_entity_of_the_knowledge_base(
    make_checkpoint, masked_dir, tmp_path
):
    with pytest.raises(ConfigError, match="from_vocabulary needs an encoder with"):
        make_linker(make_checkpoint("bert", None), tmp_path / "a", from_vocabulary=1)
    records = [{"id": "1", "name": "Nothing Known"}]
    texts = [("It sang best .", [(0, 1, "1")])]
    with pytest.raises(ConfigError, match="no id or name of the knowledge base is a title"):
        make_linker(masked_dir, tmp_path / "b", records, texts=texts, from_vocabulary=1)
    with pytest.raises(ConfigError, match="luke_linker.from_vocabulary is 0"):
        make_linker(masked_dir, tmp_path / "c", from_vocabulary=0)
