"""Random packed inputs, and the same inputs padded for ``transformers``."""

from typing import Any

import numpy as np
import pytest

from spacy_luke.model.packing import Entities, LukeInputs, Words

torch = pytest.importorskip("torch")


@pytest.fixture
def random_inputs():
    """Makes inputs of given lengths: ``(n_pieces, n_entities)`` of each sequence.

    Piece and entity ids avoid padding (pieces 0-4; entity 0), which the reference treats
    specially. Entities have ranges of 1 to 5 pieces.
    """

    def make(lengths, config, seed=0) -> LukeInputs:
        rng = np.random.default_rng(seed)
        n_pieces = np.asarray([n for n, _ in lengths], dtype=np.int64)
        n_entities = np.asarray([m for _, m in lengths], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(n_pieces)]).astype(np.int64)
        entity_offsets = np.concatenate([[0], np.cumsum(n_entities)]).astype(np.int64)
        ids = rng.integers(5, config.vocab_size, offsets[-1])
        longest = np.repeat(n_pieces, n_entities)
        widths = rng.integers(1, 6, len(longest)).clip(max=longest)
        starts = (rng.random(len(longest)) * (longest - widths + 1)).astype(np.int64)
        entity_ids = rng.integers(1, config.entity_vocab_size, len(longest))
        entities = Entities(entity_ids, starts, starts + widths, entity_offsets)
        return LukeInputs(Words(ids, offsets), entities)

    return make


@pytest.fixture
def padded():
    """Packed inputs as the padded keyword arguments of a ``transformers`` LUKE."""

    def pad(inputs: LukeInputs, with_positions: bool = False) -> dict[str, Any]:
        words, entities = inputs.words, inputs.entities
        n_pieces, n_entities = np.diff(words.offsets), np.diff(entities.offsets)
        shape = (len(n_pieces), n_pieces.max())
        ids = torch.ones(shape, dtype=torch.long)
        mask = torch.zeros(shape, dtype=torch.long)
        entity_shape = (len(n_pieces), max(n_entities.max(), 1))
        entity_ids = torch.zeros(entity_shape, dtype=torch.long)
        entity_mask = torch.zeros(entity_shape, dtype=torch.long)
        positions = torch.full((*entity_shape, 30), -1, dtype=torch.long)
        for i in range(len(n_pieces)):
            a, b = words.offsets[i : i + 2]
            ids[i, : b - a] = torch.as_tensor(words.piece_ids[a:b])
            mask[i, : b - a] = 1
            for j, row in enumerate(range(*entities.offsets[i : i + 2])):
                entity_ids[i, j] = int(entities.ids[row])
                entity_mask[i, j] = 1
                start, end = int(entities.starts[row]), int(entities.ends[row])
                positions[i, j, : end - start] = torch.arange(start, end)
        values = {"input_ids": ids, "attention_mask": mask}
        if with_positions:
            values["position_ids"] = torch.arange(shape[1]).expand(shape)
        if len(entities.ids):
            values.update(
                entity_ids=entity_ids,
                entity_attention_mask=entity_mask,
                entity_position_ids=positions,
            )
        return values

    return pad
