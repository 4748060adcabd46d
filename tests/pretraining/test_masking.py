"""What is hidden, and that only seed, epoch and sequence decide it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_luke.errors import ConfigError
from spacy_luke.pretraining.masking import (
    Masking,
    Sample,
    Vocabularies,
    hidden_pieces,
    mask_batch,
)

IDS = Vocabularies(cls=1, sep=2, mask=3, n_pieces=1000, entity_mask=2, entity_unk=1)


def sample(n=40, entities=(5, 6, 1, 7), index=0, epoch=0, words=None) -> Sample:
    words = np.arange(0, n, 2) if words is None else np.asarray(words)
    at = np.arange(len(entities)) * 3
    return Sample(
        epoch, index, np.arange(n) + 100, words, np.asarray(entities, dtype=np.int64), at, at + 2
    )


def mask(*samples, seed=0, **rules):
    return mask_batch(samples, Masking(**rules), IDS, seed)


def test_targets_are_what_stood_there():
    samples = [sample(), sample(30, (8, 9), index=1)]
    batch = mask(*samples)
    whole = np.concatenate([[1], samples[0].pieces, [2], [1], samples[1].pieces, [2]])
    assert np.array_equal(whole[batch.words], batch.word_targets)
    ids = np.concatenate([x.ids for x in samples])
    assert np.array_equal(ids[batch.entities], batch.entity_targets)
    shown = batch.inputs.entities.ids
    assert (shown[batch.entities] == IDS.entity_mask).all()
    rest = np.setdiff1d(np.arange(len(ids)), batch.entities)
    assert np.array_equal(shown[rest], ids[rest])


def test_what_is_not_hidden_stays():
    batch = mask(sample())
    pieces = batch.inputs.words.piece_ids
    rest = np.setdiff1d(np.arange(1, 41), batch.words)
    assert np.array_equal(pieces[rest], rest + 99) and pieces[0] == 1 and pieces[-1] == 2
    assert np.array_equal(batch.inputs.entities.starts, np.arange(4) * 3 + 1)


def test_masks_do_not_depend_on_the_batch_and_differ_by_epoch_and_seed():
    alone, together = mask(sample(index=7)), mask(sample(index=3), sample(index=7))
    assert np.array_equal(alone.words, together.words[together.words > 42] - 42)
    for other in (
        mask(sample(index=8)),
        mask(sample(index=7, epoch=1)),
        mask(sample(index=7), seed=1),
    ):
        assert not np.array_equal(alone.words, other.words)


def test_whole_words_are_hidden_together():
    for index in range(20):
        hidden = mask(sample(index=index)).words - 1
        assert len(hidden) == 6 and all(x ^ 1 in hidden for x in hidden)
    singles = [mask(sample(index=i), whole_words=False).words - 1 for i in range(20)]
    assert any(x ^ 1 not in hidden for hidden in singles for x in hidden)
    assert {len(x) for x in singles} == {6}


def test_of_hidden_words_most_are_masked_some_replaced_some_kept():
    batch = mask(*(sample(400, index=i) for i in range(50)))
    found = batch.inputs.words.piece_ids[batch.words]
    masked, kept = (found == IDS.mask).mean(), (found == batch.word_targets).mean()
    assert 0.76 < masked < 0.84 and 0.07 < kept < 0.13
    words = found.reshape(-1, 2)  # the pieces of a word share their fate
    assert ((words == IDS.mask).all(1) | (words != IDS.mask).all(1)).all()


def test_unknown_entities_are_never_asked_for_and_may_be_left_out():
    for i in range(20):
        assert IDS.entity_unk not in mask(sample(index=i)).entity_targets
    batch = mask(sample(), unknown=False)
    assert len(batch.inputs.entities.ids) == 3 and 1 not in batch.inputs.entities.ids
    assert batch.inputs.entities.starts.tolist() == [1, 4, 10]


def test_sequences_without_entities_or_words_have_no_task():
    batch = mask(sample(entities=()), sample(0, (), words=()))
    assert not len(batch.entities) and len(batch.inputs.words.piece_ids) == 44
    batch = mask(sample(), words=0.0)
    assert not len(batch.words) and len(batch.entities)
    batch = mask(sample(), entities=0.0)
    assert len(batch.words) and not len(batch.entities)


def test_shares_are_shares():
    with pytest.raises(ConfigError, match="masked words is 1.5"):
        Masking(words=1.5)
    with pytest.raises(ConfigError, match="nothing to predict"):
        Masking(words=0.0, entities=0.0)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 50), st.sets(st.integers(0, 49)), st.floats(0, 1), st.integers(0, 99))
def test_hidden_words_are_whole_and_no_more_than_the_share(n, words, share, seed):
    starts = np.asarray(sorted(x for x in words if x < n), dtype=np.int64)
    example = sample(n, (), words=starts)
    hidden = hidden_pieces(example, Masking(words=share), np.random.default_rng(seed))
    assert len(hidden) <= max(1, round(share * n)) and len(np.unique(hidden)) == len(hidden)
    bounds = np.union1d(starts, [0])
    words_of = np.searchsorted(bounds, hidden, side="right")
    lengths = np.diff(np.append(bounds, n))
    assert all(lengths[w - 1] == (words_of == w).sum() for w in np.unique(words_of))
