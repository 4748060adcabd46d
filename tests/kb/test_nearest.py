"""Candidates by vectors of names: exact, whatever the batch and the block."""

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_luke.errors import ConfigError, InputError, KnowledgeBaseError
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.entity import NOT_GIVEN, Entity
from spacy_luke.kb.knowledge_base import MappedKB
from spacy_luke.kb.nearest import NearestSettings
from tests.kb.conftest import build

WIDTH = 16


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def random_vectors(n, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(n, WIDTH))).astype(np.float32)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """400 entities; every name but the last means one to three of them, every tenth has the vector
    of another name."""
    folder = tmp_path_factory.mktemp("kb") / "kb"
    counts = np.random.default_rng(1).integers(0, 5, 400).tolist()
    entities = [
        Entity(f"e{i}", f"n{i}", {f"n{i}": NOT_GIVEN, f"shared{i // 3}": NOT_GIVEN}, count=n)
        for i, n in enumerate(counts)
    ]
    build_kb([*entities, Entity("zero", "zero", {"zero": NOT_GIVEN})], folder)
    kb = MappedKB.open(folder, Vocab())
    vectors = random_vectors(len(kb.tables.keys))
    vectors[::10] = vectors[1::10][: len(vectors[::10])]
    vectors[kb.tables.keys.find("zero")] = 0
    kb.set_name_vectors(vectors, "w")
    return kb


def rows(kb, vectors, **settings):
    results = kb.nearest_candidates(vectors, NearestSettings(**settings))
    return [[(x.id, x.alias_, x.likeness, x.prior) for x in row] for row in results]


def searched(kb, mention, k):
    """All names, one after the other."""
    names, best = kb.tables.name_vectors.astype(np.float64), {}
    for key, name in enumerate(names):
        if not name.any():
            continue
        cosine = round(float(name @ mention / np.linalg.norm(name) / np.linalg.norm(mention)), 6)
        meanings = kb.tables.meanings_of_key(key)
        for row, prior in zip(meanings.entities.tolist(), meanings.priors.tolist()):
            rank = (-cosine, -prior, row)
            if row not in best or rank < best[row]:
                best[row] = rank
    return [(kb.tables.ids[row], -cosine) for cosine, _, row in sorted(best.values())][:k]


@pytest.mark.parametrize("k", [1, 7, 30, 1000])
def test_it_finds_what_a_search_of_all_names_finds(large, k):
    mentions = random_vectors(20, seed=2)
    for mention, found in zip(mentions, rows(large, mentions, k=k)):
        expected = searched(large, mention.astype(np.float64), k)
        assert [(x, pytest.approx(max(0, y), abs=2e-6)) for x, y in expected] == [
            (x, likeness) for x, _, likeness, _ in found
        ]
        assert len(found) == min(k, 400) and "zero" not in [x[0] for x in found]


def test_results_depend_neither_on_the_batch_nor_on_the_blocks(large, monkeypatch):
    mentions = np.concatenate([random_vectors(30, seed=3), large.tables.name_vectors[:50]])
    alone = [rows(large, mention[None])[0] for mention in mentions]
    assert rows(large, mentions) == alone
    assert rows(large, mentions[::-1]) == alone[::-1]
    assert rows(large, np.asfortranarray(mentions)) == alone
    for name, size in (("_NAMES", 37), ("_MENTIONS", 7), ("_EXACT_ROWS", 3)):
        monkeypatch.setattr(f"spacy_luke.kb.nearest.{name}", size)
        assert rows(large, mentions) == alone


def test_the_length_of_vectors_does_not_matter(large):
    mentions = random_vectors(5, seed=4)
    expected = rows(large, mentions.astype(np.float64), k=5)
    again = MappedKB(Vocab(), store=large.tables.store)
    tiny = rows(large, 1e-30 * mentions.astype(np.float64), k=5)
    lengths = np.array([1e-25, 3, 1e25], np.float32)[np.arange(len(large.tables.keys)) % 3]
    again.set_name_vectors(large.tables.name_vectors * lengths[:, None], "w")
    for found in (tiny, rows(again, mentions)):
        assert [x[:2] for x in found[0][:5]] == [x[:2] for x in expected[0]]
        assert np.allclose([x[2] for x in found[0][:5]], [x[2] for x in expected[0]], atol=1e-5)


def test_equal_vectors_are_ordered_by_prior_then_by_the_file(kb):
    vectors = np.tile(random_vectors(1), (len(kb.tables.keys), 1))
    kb.set_name_vectors(vectors, "w")
    (found,) = rows(kb, vectors[:1])
    # Every entity has a name that means it alone, but the two of one name.
    assert [x[0] for x in found] == ["Q1", "Q2", "Q3", "7", "8", "8b"]
    assert [x[3] for x in found] == [1, 1, 1, 1, 1, 0.5]
    assert rows(kb, vectors[:1], k=2) == [found[:2]]


def test_one_entity_with_all_of_the_nearest_names_does_not_hide_others(tmp_path):
    many = [f"name {i}" for i in range(500)]
    build(tmp_path / "kb", [{"id": 1, "name": "a", "aliases": many}, {"id": 2, "name": "b"}])
    kb = MappedKB.open(tmp_path / "kb", Vocab())
    vectors = np.zeros((502, 2), np.float16)
    vectors[:, 0], vectors[kb.tables.keys.find("b")] = 1, [0.6, 0.8]
    kb.set_name_vectors(vectors, "w")
    found = kb.nearest_candidates(np.array([[1, 0], [0, 0], [-1, 0]], np.float32))
    assert [[(x.id, x.match) for x in row] for row in found] == [
        [("1", "nearest"), ("2", "nearest")], [], [("2", "nearest"), ("1", "nearest")]
    ]  # fmt: skip
    assert [x.likeness for x in found[0]] == [1, pytest.approx(0.6, abs=1e-3)]
    assert [x.likeness for x in found[2]] == [0, 0]
    assert rows(kb, np.array([[1, 0], [-1, 0]]), min_likeness=0.7)[1] == []
    assert [x[0] for x in rows(kb, np.array([[1, 0]]), min_likeness=0.7)[0]] == ["1"]


def test_a_batch_or_a_knowledge_base_may_be_empty(large):
    assert large.nearest_candidates(np.zeros((0, WIDTH), np.float32)) == []
    empty = MappedKB(Vocab())
    empty.set_name_vectors(np.zeros((0, WIDTH), np.float32), "w")
    assert empty.nearest_candidates(random_vectors(2)) == [[], []]


def test_what_cannot_be_searched_is_named(large, kb):
    with pytest.raises(KnowledgeBaseError, match="no vectors of names"):
        kb.nearest_candidates(random_vectors(1))
    for vectors in (np.zeros(WIDTH), np.zeros((1, 3))):
        with pytest.raises(InputError, match=r"\[n, 16\]"):
            large.nearest_candidates(vectors)
    with pytest.raises(InputError, match="NaN"):
        large.nearest_candidates(np.full((1, WIDTH), np.nan))
    with pytest.raises(ConfigError, match="nearest.k is 0"):
        NearestSettings(k=0)
