"""Mask words and entities of a sequence at random, seeded by (seed, epoch, sequence)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .objective import MaskedBatch, pack_sequences
from .settings import Masking

Array = np.ndarray


@dataclass(frozen=True)
class Sample:
    """A training sequence.

    epoch: of the training. index: of the sequence in the shards. Both seed its masks.
    pieces: (n_pieces,). word_starts: indices of pieces that start a word.
    ids, starts, ends, anchors: (n_entities,), ids, pieces [start, end) and texts of the entities.
    """

    epoch: int
    index: int
    pieces: Array
    word_starts: Array
    ids: Array
    starts: Array
    ends: Array
    anchors: Sequence[str] = ()


@dataclass(frozen=True)
class Vocabularies:
    """Ids of special pieces and entities, and the number of pieces."""

    cls: int
    sep: int
    mask: int
    n_pieces: int
    entity_mask: int
    entity_unk: int


def mask_batch(
    samples: Sequence[Sample], masking: Masking, ids: Vocabularies, seed: int
) -> MaskedBatch:
    """Mask and pack sequences.

    Example: of two sequences with 3 pieces each, [CLS] a b c [SEP] [CLS] d e f [SEP], masking b and
    d gives the packed rows ``words`` [2, 6].
    """
    pieces, entities, starts, ends = [], [], [], []
    words, word_targets, masked, entity_targets = [], [], [], []
    n_pieces = n_entities = 0
    for sample in samples:
        rng = np.random.default_rng([seed, sample.epoch, sample.index])
        hidden = hidden_pieces(sample, masking, rng)
        words.append(hidden + n_pieces + 1)  # after [CLS]
        word_targets.append(sample.pieces[hidden])
        pieces.append(_replaced(sample, hidden, masking, ids, rng))
        n_pieces += len(sample.pieces) + 2
        in_vocab = sample.ids != ids.entity_unk
        kept = np.flatnonzero(in_vocab | masking.unknown)
        entity_ids = sample.ids[kept]
        chosen = _choose(np.flatnonzero(in_vocab[kept]), masking.entities, rng)
        masked.append(chosen + n_entities)
        entity_targets.append(entity_ids[chosen])
        inputs = entity_ids.copy()
        inputs[chosen] = ids.entity_mask
        entities.append(inputs)
        starts.append(sample.starts[kept])
        ends.append(sample.ends[kept])
        n_entities += len(kept)
    return MaskedBatch(
        pack_sequences(pieces, entities, starts, ends, ids.cls, ids.sep),
        *(
            np.concatenate(x).astype(np.int64)
            for x in (words, word_targets, masked, entity_targets)
        ),
    )


def hidden_pieces(sample: Sample, masking: Masking, rng: np.random.Generator) -> Array:
    """Sorted indices of the masked pieces.

    Whole words are taken in random order until the share is reached. A word that would exceed it is
    skipped.
    """
    n = len(sample.pieces)
    if not masking.whole_words:
        return np.sort(_choose(np.arange(n), masking.words, rng))
    starts = np.union1d(sample.word_starts, [0]) if n else np.zeros(0, dtype=np.int64)
    lengths = np.diff(np.append(starts, n))
    room = max(1, round(masking.words * n)) if masking.words and n else 0
    hidden = []
    for word in rng.permutation(len(starts)).tolist():
        if room == 0:
            break
        if lengths[word] <= room:
            hidden.append(np.arange(starts[word], starts[word] + lengths[word]))
            room -= int(lengths[word])
    return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *hidden]))


def _replaced(
    sample: Sample, hidden: Array, masking: Masking, ids: Vocabularies, rng: np.random.Generator
) -> Array:
    """The pieces, with hidden ones replaced. All pieces of a word are replaced in the same way."""
    if masking.whole_words:
        words = np.searchsorted(sample.word_starts, hidden, side="right")
        _, units = np.unique(words, return_inverse=True)
    else:
        units = np.arange(len(hidden))
    # One number per word, repeated for its pieces: units [0, 0, 1] gives draws [x, x, y].
    draws = rng.random(int(units.max(initial=-1)) + 1)[units]
    pieces = sample.pieces.copy()
    pieces[hidden[draws < 0.8]] = ids.mask
    random_ones = hidden[(draws >= 0.8) & (draws < 0.9)]
    pieces[random_ones] = rng.integers(0, ids.n_pieces, len(random_ones))
    return pieces


def _choose(items: Array, share: float, rng: np.random.Generator) -> Array:
    """A random share of the items, but at least one, sorted."""
    if not share or not len(items):
        return items[:0]
    return np.sort(rng.permutation(items)[: max(1, round(share * len(items)))])
