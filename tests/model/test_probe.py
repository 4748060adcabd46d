"""The ``probe`` pattern: words do not see entities; an entity sees words and itself."""

import math

import numpy as np
import pytest

from spacy_luke.model import packing
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.network import LukeModel, init_weights
from spacy_luke.model.packing import Entities, LukeInputs

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

LENGTHS = [(20, 6), (5, 0), (90, 17), (21, 1), (5, 2)]
ATOL = 1e-5


@pytest.fixture(params=[True, False], ids=["entity-aware", "plain"])
def model(request):
    torch.manual_seed(0)
    config = LukeConfig(
        vocab_size=60,
        entity_vocab_size=20,
        hidden_size=32,
        entity_emb_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=130,
        use_entity_aware_attention=request.param,
    )
    network = LukeModel(config)
    init_weights(network, 0.2)
    for parameter in network.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return network.eval()


@pytest.fixture
def inputs(model, random_inputs):
    return random_inputs(LENGTHS, model.config)


def probe(model, inputs):
    with torch.no_grad():
        return model(inputs, "probe")


def test_words_are_as_without_entities(model, inputs):
    without = LukeInputs(inputs.words, Entities.none(inputs.words.n_sequences))
    with torch.no_grad():
        expected = model(without).words
    torch.testing.assert_close(probe(model, inputs).words, expected, atol=ATOL, rtol=0)


def test_an_entity_does_not_depend_on_the_others(model, inputs):
    together = probe(model, inputs).entities
    entities = inputs.entities
    sequences = np.repeat(np.arange(len(LENGTHS)), np.diff(entities.offsets))
    for row in range(len(entities.ids)):
        offsets = np.concatenate([[0], np.cumsum(np.arange(len(LENGTHS)) == sequences[row])])
        one = slice(row, row + 1)
        alone = Entities(entities.ids[one], entities.starts[one], entities.ends[one], offsets)
        state = probe(model, LukeInputs(inputs.words, alone)).entities
        torch.testing.assert_close(state, together[one], atol=ATOL, rtol=0)


def test_an_entity_does_not_depend_on_their_order(model, inputs):
    entities = inputs.entities
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(entities.offsets, entities.offsets[1:])]
    )
    turned = Entities(
        entities.ids[order], entities.starts[order], entities.ends[order], entities.offsets
    )
    states = probe(model, LukeInputs(inputs.words, turned)).entities
    expected = probe(model, inputs).entities[order.copy()]
    torch.testing.assert_close(states, expected, atol=ATOL, rtol=0)


@pytest.mark.parametrize("pattern", ["probe", "full"])
def test_a_state_does_not_depend_on_the_batch(pattern, model, inputs, monkeypatch):
    with torch.no_grad():
        batched = model(inputs, pattern)
        for i in range(len(LENGTHS)):
            alone = model(one_sequence(inputs, i), pattern)
            a, b = inputs.words.offsets[i : i + 2]
            torch.testing.assert_close(alone.words, batched.words[a:b], atol=ATOL, rtol=0)
            a, b = inputs.entities.offsets[i : i + 2]
            torch.testing.assert_close(alone.entities, batched.entities[a:b], atol=ATOL, rtol=0)


def one_sequence(inputs, i):
    words, entities = inputs.words, inputs.entities
    a, b = words.offsets[i : i + 2]
    piece_ids = words.piece_ids[a:b]
    c, d = entities.offsets[i : i + 2]
    return LukeInputs(
        packing.Words(piece_ids, np.asarray([0, b - a])),
        Entities(
            entities.ids[c:d], entities.starts[c:d], entities.ends[c:d], np.asarray([0, d - c])
        ),
    )


def test_states_follow_the_formula(model, inputs):
    """Section 3.2, row by row: softmax over [words; the entity itself] of q k / sqrt(d)."""
    states = probe(model, inputs).entities
    for i in (0, 2, 4):
        a, b = inputs.entities.offsets[i : i + 2]
        expected = torch.stack(
            [by_formula(model, one_sequence(inputs, i), j) for j in range(b - a)]
        )
        torch.testing.assert_close(states[a:b], expected, atol=ATOL, rtol=0)


def by_formula(model, inputs, j):
    """The state of entity ``j`` of one sequence, one head and one layer at a time."""
    config = model.config
    size = config.hidden_size // config.num_attention_heads
    start, end = int(inputs.entities.starts[j]), int(inputs.entities.ends[j])
    with torch.no_grad():
        words = word_embeddings(model, inputs.words.piece_ids)
        table = model.entity_embeddings
        entity = table.dense.weight @ table.entities.weight[int(inputs.entities.ids[j])]
        entity = entity + table.positions.weight[start:end].mean(0) + table.types.weight[0]
        entity = table.norm(entity)
        for layer in model.layers:
            query, key, value = (projection(layer, words, n) for n in range(3))
            own_key, own_value = projection(layer, entity, 1), projection(layer, entity, 2)
            if layer.entity_queries is None:
                to_words = to_self = projection(layer, entity, 0)
            else:
                to_words, to_self = layer.entity_queries(entity).chunk(2)
            context, own_context = [], []
            for head in range(config.num_attention_heads):
                part = slice(head * size, (head + 1) * size)
                scores = query[:, part] @ key[:, part].T / math.sqrt(size)
                context.append(scores.softmax(-1) @ value[:, part])
                scores = [to_words[part] @ k / math.sqrt(size) for k in key[:, part]]
                scores.append(to_self[part] @ own_key[part] / math.sqrt(size))
                values = torch.cat([value[:, part], own_value[None, part]])
                own_context.append(torch.stack(scores).softmax(-1) @ values)
            words = feed_forward(layer, words, torch.cat(context, -1))
            entity = feed_forward(layer, entity, torch.cat(own_context, -1))
    return entity


def word_embeddings(model, piece_ids):
    table = model.word_embeddings
    positions = torch.arange(len(piece_ids)) + 2  # the padding id is 1
    rows = table.words.weight[torch.as_tensor(piece_ids)] + table.positions.weight[positions]
    return table.norm(rows + table.types.weight[0])


def projection(layer, states, n):
    """Query (0), key (1) or value (2)."""
    weight, bias = layer.qkv.weight.chunk(3)[n], layer.qkv.bias.chunk(3)[n]
    return F.linear(states, weight, bias)


def feed_forward(layer, states, context):
    states = layer.attention_norm(layer.attention_output(context) + states)
    return layer.output_norm(layer.output(F.gelu(layer.intermediate(states))) + states)


def test_one_word_pass_serves_any_questions(model, inputs):
    """Both halves equal ``forward``, whatever number of entities the plan expected."""
    both = probe(model, inputs)
    for expected in (None, np.diff(inputs.entities.offsets), np.asarray([0, 90, 3, 0, 1])):
        with torch.no_grad():
            words = model.encode_words(inputs.words, expected)
            entities = model.encode_entities(words, inputs.entities)
            none = model.encode_entities(words, Entities.none(len(LENGTHS)))
        torch.testing.assert_close(words.states, both.words, atol=ATOL, rtol=0)
        torch.testing.assert_close(entities, both.entities, atol=ATOL, rtol=0)
        assert none.shape == (0, model.config.hidden_size)


def test_gradients_reach_words_through_entities(model, inputs):
    model.zero_grad()
    model(inputs, "probe").entities.sum().backward()
    assert model.word_embeddings.words.weight.grad.abs().sum() > 0
