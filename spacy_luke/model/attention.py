"""Entity-aware self-attention (Yamada et al. 2020, section 3.2), on blocks of sequences.

A row (word or entity) has one query for word keys and one for entity keys; one softmax runs
over both. Shapes: a *block* is (n_sequences, heads, rows, head_size).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

Mask = torch.Tensor | None


@dataclass
class Rows:
    """Projections of one kind of row (words or entities) in a block.

    to_words, to_entities: the queries for the two kinds of key; the same tensor where
        attention is not entity-aware.
    keep: (n_sequences, rows), True for real rows; None where nothing is padded.
    """

    to_words: torch.Tensor
    to_entities: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    keep: Mask


def attend_words(words: Rows, dropout: float) -> torch.Tensor:
    """Words attend to words only."""
    mask = None if words.keep is None else words.keep[:, None, None, :]
    return F.scaled_dot_product_attention(
        words.to_words, words.keys, words.values, attn_mask=mask, dropout_p=dropout
    )


def attend_full(words: Rows, entities: Rows, dropout: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Words and entities attend to words and entities, as published.

    Returns the context of the words and of the entities.
    """
    n_words = words.keys.shape[2]
    keys = torch.cat([words.keys, entities.keys], 2)
    values = torch.cat([words.values, entities.values], 2)
    to_words = torch.cat([words.to_words, entities.to_words], 2)
    keep = _join(words, entities)
    if words.to_words is words.to_entities:  # plain attention: one query, one fused call
        mask = None if keep is None else keep[:, None, None, :]
        context = F.scaled_dot_product_attention(
            to_words, keys, values, attn_mask=mask, dropout_p=dropout
        )
    else:
        to_entities = torch.cat([words.to_entities, entities.to_entities], 2)
        context = _two_key_sets(to_words, to_entities, keys, values, n_words, keep, dropout)
    return context[:, :, :n_words], context[:, :, n_words:]


def _two_key_sets(
    to_words: torch.Tensor,
    to_entities: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    n_words: int,
    keep: Mask,
    dropout: float,
) -> torch.Tensor:
    """Softmax over word keys (query ``to_words``) and entity keys (``to_entities``)."""
    scale = keys.shape[-1] ** -0.5
    scaled = (keys * scale).transpose(-1, -2)
    scores = torch.cat([to_words @ scaled[..., :n_words], to_entities @ scaled[..., n_words:]], -1)
    if keep is not None:
        scores = scores.masked_fill(~keep[:, None, None, :], torch.finfo(scores.dtype).min)
    weights = F.dropout(scores.softmax(-1).to(values.dtype), dropout, training=dropout > 0)
    return weights @ values


def attend_probe(
    entities: Rows, word_keys: torch.Tensor, word_values: torch.Tensor, keep: Mask, dropout: float
) -> torch.Tensor:
    """Entities attend to the words of their sequence and each to itself.

    word_keys, word_values: (n_sequences, heads, n_words, head_size); keep: (n_sequences,
    n_words). Returns the context of the entities.
    """
    scale = word_keys.shape[-1] ** -0.5
    to_words = (entities.to_words * scale) @ word_keys.transpose(-1, -2)
    if keep is not None:
        to_words = to_words.masked_fill(~keep[:, None, None, :], torch.finfo(to_words.dtype).min)
    to_self = (entities.to_entities * entities.keys).sum(-1, keepdim=True) * scale
    weights = torch.cat([to_words, to_self.to(to_words.dtype)], -1).softmax(-1)
    weights = F.dropout(weights.to(word_values.dtype), dropout, training=dropout > 0)
    return weights[..., :-1] @ word_values + weights[..., -1:] * entities.values


def _join(words: Rows, entities: Rows) -> Mask:
    if words.keep is None and entities.keep is None:
        return None

    def real(rows: Rows) -> torch.Tensor:
        if rows.keep is not None:
            return rows.keep
        shape = (rows.keys.shape[0], rows.keys.shape[2])
        return torch.ones(shape, dtype=torch.bool, device=rows.keys.device)

    return torch.cat([real(words), real(entities)], 1)
