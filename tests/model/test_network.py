"""What must not change a result: padding, blocks, checkpointing, an empty batch, bf16."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_luke.model import packing
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.network import LukeModel, init_weights
from spacy_luke.model.packing import Entities, LukeInputs, Plan, Words, inverse

torch = pytest.importorskip("torch")

MIXED = [(60, 20), (3, 0), (61, 0), (4, 40), (59, 1), (3, 1)]
CPU = torch.device("cpu")
ATOL = 1e-5


def network(**settings):
    torch.manual_seed(0)
    values = {
        "vocab_size": 60,
        "entity_vocab_size": 20,
        "hidden_size": 32,
        "entity_emb_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 130,
        **settings,
    }
    model = LukeModel(LukeConfig(**values))
    init_weights(model, 0.2)
    return model.eval()


PATTERNS = pytest.mark.parametrize("pattern", ["full", "probe"])
AWARE = pytest.mark.parametrize("aware", [True, False], ids=["entity-aware", "plain"])


@PATTERNS
@AWARE
@pytest.mark.parametrize("waste", [0.0, 0.15, 1000.0])
def test_padding_changes_no_result(pattern, aware, waste, random_inputs, monkeypatch):
    model = network(use_entity_aware_attention=aware)
    inputs = random_inputs(MIXED, model.config)
    with torch.no_grad():
        monkeypatch.setitem(packing._LIMITS, "cpu", packing.Limits(-1.0, 0))  # each sequence alone
        alone = model(inputs, pattern)
        monkeypatch.setitem(packing._LIMITS, "cpu", packing.Limits(waste, 4_000_000))
        together = model(inputs, pattern)
    torch.testing.assert_close(together.words, alone.words, atol=ATOL, rtol=0)
    torch.testing.assert_close(together.entities, alone.entities, atol=ATOL, rtol=0)


@PATTERNS
@AWARE
def test_a_batch_may_be_empty(pattern, aware):
    model = network(use_entity_aware_attention=aware)
    nothing = np.zeros(0, dtype=np.int64)
    states = model(
        LukeInputs(Words(nothing, np.zeros(1, dtype=np.int64)), Entities.none(0)), pattern
    )
    assert states.words.shape == states.entities.shape == (0, 32)
    (states.words.sum() + states.entities.sum()).backward()


@PATTERNS
@AWARE
def test_gradient_checkpointing_changes_no_gradient(pattern, aware, random_inputs):
    model = network(use_entity_aware_attention=aware)
    inputs = random_inputs(MIXED, model.config)
    model.train()
    model.set_dropout(0.0)
    gradients = []
    for on in (False, True):
        model.zero_grad()
        model.gradient_checkpointing = on
        states = model(inputs, pattern)
        (states.words.square().sum() + states.entities.square().sum()).backward()
        gradients.append(
            {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        )
    assert gradients[0].keys() == gradients[1].keys() != set()
    for name, expected in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], expected, atol=1e-6, rtol=1e-5)


@PATTERNS
def test_every_parameter_that_serves_gets_a_gradient(pattern, random_inputs):
    model = network(word_shapes=True, entity_labels=["PER", "LOC"])
    inputs = random_inputs(MIXED, model.config)
    inputs.words.shapes = np.arange(len(inputs.words.piece_ids)) % 6
    inputs.entities.labels = np.arange(len(inputs.entities.ids)) % 3
    states = model(inputs, pattern)
    generator = torch.Generator().manual_seed(0)
    loss = (states.words * torch.randn(states.words.shape, generator=generator)).sum()
    loss = loss + (states.entities * torch.randn(states.entities.shape, generator=generator)).sum()
    loss.backward()
    without = {n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    # In probe, no word asks an entity.
    unused = {f"layers.{i}.word_to_entity.{kind}" for i in range(3) for kind in ("weight", "bias")}
    assert without == (unused if pattern == "probe" else set())


@PATTERNS
def test_bf16_is_close_and_comes_back_as_float32(pattern, random_inputs):
    model = network()
    inputs = random_inputs(MIXED, model.config)
    with torch.no_grad():
        exact = model(inputs, pattern)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rough = model(inputs, pattern)
    for a, b in ((rough.words, exact.words), (rough.entities, exact.entities)):
        assert a.dtype == torch.float32
        assert 0 < (a - b).norm() < 0.05 * b.norm()


def test_dropout_is_set_everywhere_and_only_acts_in_training(random_inputs):
    model = network()
    inputs = random_inputs(MIXED, model.config)
    model.set_dropout(0.5)
    with torch.no_grad():
        assert torch.equal(model(inputs).words, model(inputs).words)
        model.train()
        assert not torch.equal(model(inputs).words, model(inputs).words)
        model.set_dropout(0.0)
        assert torch.equal(model(inputs).words, model(inputs).words)
        model.attention_dropout = 0.5
        assert not torch.equal(model(inputs).words, model(inputs).words)


def test_word_shapes_and_labels_enter_the_embeddings(random_inputs):
    model = network(word_shapes=True, entity_labels=["PER"])
    inputs = random_inputs([(9, 2)], model.config)
    inputs.words.shapes = np.zeros(9, dtype=np.int64)
    inputs.entities.labels = np.zeros(2, dtype=np.int64)
    other = copy.deepcopy(inputs)
    other.words.shapes[3] = 2
    labelled = copy.deepcopy(inputs)
    labelled.entities.labels[1] = 1
    with torch.no_grad():
        base = model(inputs, "probe")
        assert not torch.allclose(model(other, "probe").words, base.words)
        states = model(labelled, "probe").entities
    torch.testing.assert_close(states[0], base.entities[0])
    assert not torch.allclose(states[1], base.entities[1])
    unlabelled = LukeInputs(inputs.words, inputs.entities)
    unlabelled.entities.labels = None
    with torch.no_grad():  # label 0 is "none": its vector is zero
        torch.testing.assert_close(model(unlabelled, "probe").entities, base.entities)


def test_dropped_word_shapes_are_not_seen_in_training(random_inputs):
    """Both runs draw the same pieces; the shapes of these do not matter, those of the others do."""
    model = network(word_shapes=True)
    model.set_dropout(0.0)
    model.word_embeddings.shape_dropout = 0.25
    ids, positions = torch.arange(400) % model.config.vocab_size, torch.zeros(400, dtype=torch.long)
    lower, upper = torch.zeros(400, dtype=torch.long), torch.full((400,), 2)

    def unchanged():
        states = []
        for shapes in (lower, upper):
            torch.manual_seed(0)
            with torch.no_grad():
                states.append(model.word_embeddings(ids, positions, shapes))
        return (states[0] == states[1]).all(1).sum()

    assert unchanged() == 0
    model.train()
    assert 60 < unchanged() < 140
    model.word_embeddings.shape_dropout = 0.0
    assert unchanged() == 0


def test_an_empty_range_has_a_zero_position_vector():
    table = network().entity_embeddings
    starts, ends = torch.tensor([3, 0, 4]), torch.tensor([3, 130, 5])
    means = table.mean_positions(starts, ends)
    assert torch.equal(means[0], torch.zeros(32))
    torch.testing.assert_close(means[1], table.positions.weight.mean(0))
    torch.testing.assert_close(means[2], table.positions.weight[4])


lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 50)), max_size=12)


@given(lengths, st.sampled_from([0.0, 0.15, 1.0, 50.0]))
@settings(max_examples=100, deadline=None)
def test_blocks_hold_every_row_once(lengths, waste):
    words = np.asarray([n for n, _ in lengths], dtype=np.int64)
    entities = np.asarray([m for _, m in lengths], dtype=np.int64)
    plan = Plan(words, entities, CPU)
    limits = packing.Limits(waste, 30_000)
    plan.groups = packing._group(words[plan.order], entities[plan.order], limits)
    for counts in (words, entities):
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = plan.rows(offsets)
        assert sorted(rows.tolist()) == list(range(offsets[-1]))
        packed = torch.as_tensor(rows)[:, None] + 1
        blocks = plan.blocks(counts)
        laid_out = list(packing.padded(blocks, packed))
        unpadded = [block.unpad(rows) for block, rows in zip(blocks, laid_out)]
        if unpadded:
            assert torch.equal(
                torch.cat(unpadded)[torch.as_tensor(inverse(rows))][:, 0],
                torch.arange(offsets[-1]) + 1,
            )
        for block, padded in zip(blocks, laid_out):
            assert padded.shape == (block.n_sequences, block.width, 1)
            if block.keep is not None:
                assert torch.equal(padded[..., 0] > 0, block.keep)
            else:
                assert (padded > 0).all()


@given(lengths)
@settings(max_examples=50, deadline=None)
def test_blocks_stay_within_their_bounds(lengths):
    words = np.asarray(sorted(n for n, _ in lengths), dtype=np.int64)
    entities = np.asarray([m for _, m in lengths], dtype=np.int64)
    groups = packing._group(words, entities, packing.Limits(0.15, 3_000))
    assert [i for a, b in groups for i in range(a, b)] == list(range(len(words)))
    for a, b in groups:
        used = words[a:b].sum() + entities[a:b].sum()
        room = (b - a) * (words[a:b].max() + entities[a:b].max())
        rows = words[a:b].max() + entities[a:b].max()
        assert b - a == 1 or (room <= used * 1.15 + 1e-9 and (b - a) * rows**2 <= 3_000)
