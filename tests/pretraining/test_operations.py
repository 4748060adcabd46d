"""The count of operations beside what torch counts while it computes."""

import numpy as np
import pytest
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from spacy_luke.model.config import LukeConfig
from spacy_luke.model.packing import Entities, LukeInputs, Words
from spacy_luke.pretraining.objective import MaskedBatch, PretrainingModel
from spacy_luke.pretraining.operations import operations

PIECES, ENTITIES, SEQUENCES = 24, 8, 3


def make_batch() -> MaskedBatch:
    """Sequences of one length: nothing is padded, which torch would count too."""
    draw = np.random.default_rng(0)
    words = Words(draw.integers(5, 50, PIECES * SEQUENCES), np.arange(SEQUENCES + 1) * PIECES)
    starts = draw.integers(0, PIECES - 2, ENTITIES * SEQUENCES)
    ids = draw.integers(3, 20, ENTITIES * SEQUENCES)
    entities = Entities(ids, starts, starts + 2, np.arange(SEQUENCES + 1) * ENTITIES)
    masked_words, masked_entities = np.arange(0, 70, 5), np.arange(0, 24, 2)
    return MaskedBatch(
        LukeInputs(words, entities),
        masked_words,
        words.piece_ids[masked_words],
        masked_entities,
        ids[masked_entities],
    )


@pytest.mark.parametrize("trained", ["", "entit", ("entit", "word_head")])
@pytest.mark.parametrize("attention", ["full", "probe"])
@pytest.mark.parametrize("entity_aware", [False, True])
@pytest.mark.parametrize("width", [64, 16])
def test_operations_are_those_that_torch_counts(width, entity_aware, attention, trained):
    config = LukeConfig(
        vocab_size=50,
        entity_vocab_size=20,
        hidden_size=64,
        entity_emb_size=width,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=40,
        use_entity_aware_attention=entity_aware,
    )
    model = PretrainingModel(config, attention)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.removeprefix("luke.").startswith(trained))
    batch = make_batch()
    plain_products = sdpa_kernel(SDPBackend.MATH)  # torch counts no fused attention on a CPU
    with plain_products, FlopCounterMode(display=False) as counter:
        outcome = model(batch)
        (outcome.word_loss + outcome.entity_loss).backward()
    assert operations(model, batch) == pytest.approx(counter.get_total_flops(), rel=0.0)
