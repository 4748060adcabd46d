"""Which words and entities of a sequence are hidden, drawn from (seed, epoch, sequence)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError
from .objective import MaskedBatch, pack_sequences

Array = np.ndarray


@dataclass(frozen=True)
class Sample:
    """A training sequence. epoch, index: of the pass over all shards and of the sequence in them;
    its masks are drawn by them. pieces: (n,); word_starts: pieces that begin a word; ids, starts,
    ends: of its entities; anchors: texts of its entities."""

    epoch: int
    index: int
    pieces: Array
    word_starts: Array
    ids: Array
    starts: Array
    ends: Array
    anchors: Sequence[str] = ()


@dataclass(frozen=True)
class Masking:
    """words: share of the pieces that is hidden. entities: share of the known entities, at least
    one where there is one. whole_words: hide all pieces of a word (as LUKE), or each on its own (as
    mLUKE). Of hidden words 80 % become [MASK], 10 % a random piece, 10 % stay; hidden entities all
    become [MASK]. unknown: links outside the vocabulary enter as [UNK] (as LUKE), or are left out
    (as mLUKE); they are never asked for."""

    words: float = 0.15
    entities: float = 0.15
    whole_words: bool = True
    unknown: bool = True

    def __post_init__(self) -> None:
        for name in ("words", "entities"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(
                    f"The share of masked {name} is {getattr(self, name)}, not 0 to 1."
                )
        if not self.words and not self.entities:
            raise ConfigError("Neither words nor entities are masked: there is nothing to learn.")


@dataclass(frozen=True)
class Vocabularies:
    """Ids that masking needs: special pieces, special entities, number of pieces."""

    cls: int
    sep: int
    mask: int
    n_pieces: int
    entity_mask: int
    entity_unk: int


def mask_batch(
    samples: Sequence[Sample], masking: Masking, ids: Vocabularies, seed: int
) -> MaskedBatch:
    """Hide words and entities, and pack."""
    pieces, entities, starts, ends = [], [], [], []
    words, word_targets, asked, entity_targets = [], [], [], []
    n_pieces = n_entities = 0
    for sample in samples:
        rng = np.random.default_rng([seed, sample.epoch, sample.index])
        hidden = hidden_pieces(sample, masking, rng)
        words.append(hidden + n_pieces + 1)
        word_targets.append(sample.pieces[hidden])
        pieces.append(_replaced(sample, hidden, masking, ids, rng))
        n_pieces += len(sample.pieces) + 2
        known = sample.ids != ids.entity_unk
        kept = np.flatnonzero(known | masking.unknown)
        target_ids = sample.ids[kept]
        chosen = _choose(np.flatnonzero(known[kept]), masking.entities, rng)
        asked.append(chosen + n_entities)
        entity_targets.append(target_ids[chosen])
        shown = target_ids.copy()
        shown[chosen] = ids.entity_mask
        entities.append(shown)
        starts.append(sample.starts[kept])
        ends.append(sample.ends[kept])
        n_entities += len(kept)
    return MaskedBatch(
        pack_sequences(pieces, entities, starts, ends, ids.cls, ids.sep),
        *(np.concatenate(x).astype(np.int64) for x in (words, word_targets, asked, entity_targets)),
    )


def hidden_pieces(sample: Sample, masking: Masking, rng: np.random.Generator) -> Array:
    """Sorted pieces to predict: whole words in random order until the share is reached; a word
    that would go beyond is passed over."""
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
    """The pieces with hidden ones replaced; all pieces of a word share their fate."""
    if masking.whole_words:
        words = np.searchsorted(sample.word_starts, hidden, side="right")
        _, units = np.unique(words, return_inverse=True)
    else:
        units = np.arange(len(hidden))
    fates = rng.random(int(units.max(initial=-1)) + 1)[units]
    pieces = sample.pieces.copy()
    pieces[hidden[fates < 0.8]] = ids.mask
    swapped = hidden[(fates >= 0.8) & (fates < 0.9)]
    pieces[swapped] = rng.integers(0, ids.n_pieces, len(swapped))
    return pieces


def _choose(items: Array, share: float, rng: np.random.Generator) -> Array:
    """That share of the items, at least one of them, sorted."""
    if not share or not len(items):
        return items[:0]
    return np.sort(rng.permutation(items)[: max(1, round(share * len(items)))])
