"""The LUKE network on packed sequences (Yamada et al. 2020, section 3)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from .activation import gelu
from .attention import Projections, attend_full, attend_probe, attend_words
from .config import LukeConfig
from .embeddings import EntityEmbeddings, WordEmbeddings
from .packing import (
    Array,
    Block,
    Entities,
    LukeInputs,
    LukeStates,
    Plan,
    Words,
    inverse,
    padded,
)

AttentionPattern = Literal["full", "probe"]


class Layer(nn.Module):
    """One transformer layer. Words and entities share all of its weights except the queries.

    The published weights: ``qkv`` is ``query``, ``key`` and ``value``, concatenated;
    ``word_to_entity`` is ``w2e_query``; ``entity_queries`` is ``e2w_query`` and ``e2e_query``,
    concatenated. Without entity-aware attention the last two are None, and all rows use ``query``.
    """

    def __init__(self, config: LukeConfig):
        super().__init__()
        hidden = config.hidden_size
        self.heads = config.num_attention_heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.word_to_entity: nn.Linear | None = None
        self.entity_queries: nn.Linear | None = None
        if config.use_entity_aware_attention:
            self.word_to_entity = nn.Linear(hidden, hidden)
            self.entity_queries = nn.Linear(hidden, 2 * hidden)
        self.attention_output = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.intermediate = nn.Linear(hidden, config.intermediate_size)
        self.output = nn.Linear(config.intermediate_size, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def full(
        self,
        words: torch.Tensor,
        entities: torch.Tensor,
        blocks: list[tuple[Block, Block]],
        dropout: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """words: (n_pieces, hidden), entities: (n_entities, hidden) -> the same."""
        q, k, v = self.qkv(words).chunk(3, -1)
        to_entities = q if self.word_to_entity is None else self.word_to_entity(words)
        entity_projections = self._entity_projections(entities)
        word_blocks, entity_blocks = [x for x, _ in blocks], [x for _, x in blocks]
        words_by_block = self._by_block(word_blocks, q, to_entities, k, v)
        entities_by_block = self._by_block(entity_blocks, *entity_projections)
        word_contexts, entity_contexts = [], []
        for word_block, entity_block, block_words, block_entities in zip(
            word_blocks, entity_blocks, words_by_block, entities_by_block
        ):
            if entity_block.width == 0:
                queries, _, keys, values = block_words
                context = attend_words(queries, keys, values, word_block.keep, dropout)
                word_contexts.append(self._unpad(word_block, context))
                continue
            word_context, entity_context = attend_full(
                block_words, block_entities, word_block.keep, entity_block.keep, dropout
            )
            word_contexts.append(self._unpad(word_block, word_context))
            entity_contexts.append(self._unpad(entity_block, entity_context))
        if word_contexts:
            words = self._finish(words, torch.cat(word_contexts))
        if entity_contexts:
            entities = self._finish(entities, torch.cat(entity_contexts))
        elif self.word_to_entity is not None:
            # Without entities, keep their queries in the graph (this adds no rows): in distributed
            # training every process needs a gradient for every parameter.
            entities = entities + to_entities[:0] + entity_projections[0] + entity_projections[1]
        return words, entities

    def words(
        self, words: torch.Tensor, blocks: list[Block], dropout: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Words without entities: states, keys and values, each (n_pieces, hidden)."""
        q, k, v = self.qkv(words).chunk(3, -1)
        contexts = [
            self._unpad(block, attend_words(queries, keys, values, block.keep, dropout))
            for block, queries, keys, values in zip(
                blocks, *(self._split(blocks, packed) for packed in (q, k, v))
            )
        ]
        return self._finish(words, torch.cat(contexts)) if contexts else words, k, v

    def probe(
        self,
        entities: torch.Tensor,
        word_keys: torch.Tensor,
        word_values: torch.Tensor,
        blocks: list[tuple[Block, Block]],
        dropout: float,
    ) -> torch.Tensor:
        """Entities, with keys and values of :meth:`words` -> (n_entities, hidden)."""
        word_blocks, entity_blocks = [x for x, _ in blocks], [x for _, x in blocks]
        by_block = zip(
            blocks,
            self._by_block(entity_blocks, *self._entity_projections(entities)),
            self._split(word_blocks, word_keys),
            self._split(word_blocks, word_values),
        )
        contexts = []
        for (word_block, entity_block), block_entities, keys, values in by_block:
            if entity_block.width:
                context = attend_probe(block_entities, keys, values, word_block.keep, dropout)
                contexts.append(self._unpad(entity_block, context))
        return self._finish(entities, torch.cat(contexts)) if contexts else entities

    def _entity_projections(self, entities: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Queries for words, queries for entities, keys and values of entities."""
        if self.entity_queries is None:
            q, k, v = self.qkv(entities).chunk(3, -1)
            return q, q, k, v
        hidden = entities.shape[-1]
        weight, bias = self.qkv.weight[hidden:], self.qkv.bias[hidden:]
        return (
            *self.entity_queries(entities).chunk(2, -1),
            *F.linear(entities, weight, bias).chunk(2, -1),
        )

    def _split(self, blocks: list[Block], packed: torch.Tensor) -> Iterator[torch.Tensor]:
        """(packed rows, hidden) -> per block (n_sequences, heads, width, head_size)."""
        for rows in padded(blocks, packed):
            yield rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _by_block(
        self,
        blocks: list[Block],
        to_words: torch.Tensor,
        to_entities: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> Iterator[Projections]:
        """The projections of each block. If both queries are the same tensor, it is split once."""
        queries = (to_words,) if to_words is to_entities else (to_words, to_entities)
        parts = [self._split(blocks, packed) for packed in (*queries, keys, values)]
        for first, *others in zip(*parts):
            *second, k, v = others
            yield first, second[0] if second else first, k, v

    def _unpad(self, block: Block, context: torch.Tensor) -> torch.Tensor:
        return block.unpad(context.transpose(1, 2).flatten(2))

    def _finish(self, states: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Output projection and feed-forward, post-LayerNorm, erf GELU."""
        attended = self.dropout(self.attention_output(context))
        states = self.attention_norm(attended + states)
        inner = self.dropout(self.output(gelu(self.intermediate(states))))
        return self.output_norm(inner + states)


@dataclass
class WordPass:
    """An encoded batch of words, to which entities can be added in ``probe`` attention.

    states: (n_pieces, hidden), packed like the inputs. keys, values: one (n_pieces, hidden) per
    layer, in plan order.
    """

    plan: Plan
    states: torch.Tensor
    keys: list[torch.Tensor]
    values: list[torch.Tensor]


class LukeModel(nn.Module):
    """Computes contextual states of words and entities.

    ``forward`` computes both attention patterns. ``encode_words`` and ``encode_entities`` are the
    two steps of ``probe``: entities can be encoded any number of times on one word pass.
    """

    def __init__(self, config: LukeConfig):
        super().__init__()
        self.config = config
        self.word_embeddings = WordEmbeddings(config)
        self.entity_embeddings = EntityEmbeddings(config)
        self.layers: Iterable[Layer] = nn.ModuleList(  # type: ignore[assignment]
            Layer(config) for _ in range(config.num_hidden_layers)
        )
        self.attention_dropout = 0.0
        self.gradient_checkpointing = False
        self.n_changes = 0  # increased by code that changes weights without torch's version counter

    @property
    def device(self) -> torch.device:
        return self.word_embeddings.words.weight.device

    def set_dropout(self, rate: float) -> None:
        """Set the dropout of embeddings and layers, but not of attention weights."""
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate

    def forward(self, inputs: LukeInputs, attention: AttentionPattern = "full") -> LukeStates:
        """Encode a batch.

        attention: ``full``: words and entities attend to each other, as published. ``probe``: words
        attend to words only, and an entity to words and itself.
        """
        if attention == "probe":
            word_pass = self.encode_words(inputs.words, np.diff(inputs.entities.offsets))
            return LukeStates(word_pass.states, self.encode_entities(word_pass, inputs.entities))
        entity_lengths = np.diff(inputs.entities.offsets)
        plan = Plan(np.diff(inputs.words.offsets), entity_lengths, self.device)
        blocks = list(zip(plan.word_blocks, plan.blocks(entity_lengths)))
        words, word_rows = self._embed_words(inputs.words, plan)
        entities, entity_rows = self._embed_entities(inputs.entities, plan)
        for layer in self.layers:
            words, entities = self._run(
                layer.full, words, entities, blocks, self._attention_dropout
            )
        return LukeStates(self._restore(words, word_rows), self._restore(entities, entity_rows))

    def encode_words(self, words: Words, expected_entities: Array | None = None) -> WordPass:
        """Words without entities, as the first step of ``probe``.

        expected_entities: (n_sequences,) the approximate number of entities that will be encoded in
        each sequence, if known. It balances the blocks and does not change results.
        """
        lengths = np.diff(words.offsets)
        expected = np.zeros_like(lengths) if expected_entities is None else expected_entities
        plan = Plan(lengths, expected, self.device)
        states, rows = self._embed_words(words, plan)
        keys, values = [], []
        for layer in self.layers:
            states, k, v = self._run(layer.words, states, plan.word_blocks, self._attention_dropout)
            keys.append(k)
            values.append(v)
        return WordPass(plan, self._restore(states, rows), keys, values)

    def encode_entities(self, word_pass: WordPass, entities: Entities) -> torch.Tensor:
        """Entities on encoded words, the second step of ``probe`` -> (n_entities, hidden)."""
        plan = word_pass.plan
        blocks = list(zip(plan.word_blocks, plan.blocks(np.diff(entities.offsets))))
        states, rows = self._embed_entities(entities, plan)
        for layer, keys, values in zip(self.layers, word_pass.keys, word_pass.values):
            states = self._run(layer.probe, states, keys, values, blocks, self._attention_dropout)
        return self._restore(states, rows)

    @property
    def _attention_dropout(self) -> float:
        return self.attention_dropout if self.training else 0.0

    def _run(self, function: Callable, *args):  # type: ignore[no-untyped-def]
        if self.gradient_checkpointing and self.training and torch.is_grad_enabled():
            return checkpoint(_with_present_mode(function), *args, use_reentrant=False)
        return function(*args)

    def _embed_words(self, words: Words, plan: Plan) -> tuple[torch.Tensor, Array]:
        rows = plan.rows(words.offsets)
        positions = np.arange(len(words.piece_ids)) - np.repeat(
            words.offsets[:-1], np.diff(words.offsets)
        )
        shapes = None if words.shapes is None else self._tensor(words.shapes[rows])
        types = None if words.types is None else self._tensor(words.types[rows])
        states = self.word_embeddings(
            self._tensor(words.piece_ids[rows]), self._tensor(positions[rows]), shapes, types
        )
        return states, rows

    def _embed_entities(self, entities: Entities, plan: Plan) -> tuple[torch.Tensor, Array]:
        rows = plan.rows(entities.offsets)
        labels = None if entities.labels is None else self._tensor(entities.labels[rows])
        states = self.entity_embeddings(
            self._tensor(entities.ids[rows]),
            self._tensor(entities.starts[rows]),
            self._tensor(entities.ends[rows]),
            labels,
        )
        return states, rows

    def _restore(self, states: torch.Tensor, rows: Array) -> torch.Tensor:
        """Plan order -> the caller's order, in float32 (NumPy and CuPy have no bf16)."""
        return states.index_select(0, self._tensor(inverse(rows))).float()

    def _tensor(self, array: Array) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)).to(self.device)


def _with_present_mode(function: Callable) -> Callable:
    """A layer's method that always runs with the layer's present mode and dropout rate: gradient
    checkpointing repeats it in the backward pass, and a prediction may change both before that."""
    layer: Layer = function.__self__  # type: ignore[attr-defined]
    training, rate = layer.training, layer.dropout.p

    def run(*args):  # type: ignore[no-untyped-def]
        old_training, old_rate = layer.training, layer.dropout.p
        layer.train(training)
        layer.dropout.p = rate
        try:
            return function(*args)
        finally:
            layer.train(old_training)
            layer.dropout.p = old_rate

    return run


def init_weights(module: nn.Module, std: float) -> None:
    """Initialise weights as BERT does: normal(0, std), zero biases, LayerNorm weights of 1."""
    for part in module.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            part.weight.data.normal_(0.0, std)
            if isinstance(part, nn.Linear) and part.bias is not None:
                part.bias.data.zero_()
            if isinstance(part, nn.Embedding) and part.padding_idx is not None:
                part.weight.data[part.padding_idx].zero_()
        elif isinstance(part, nn.LayerNorm):
            part.weight.data.fill_(1.0)
            part.bias.data.zero_()
