"""Entity-aware self-attention (Yamada et al. 2020, section 3.2), on blocks of sequences.

A row (word or entity) has one query for word keys and another for entity keys. There is one softmax
over all keys. All tensors here are of one block: (n_sequences, heads, rows, head_size).
"""

import torch
import torch.nn.functional as F

Mask = torch.Tensor | None
"""(n_sequences, rows) True for real rows, False for padding; None if nothing is padded."""

Projections = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""Queries for word keys, queries for entity keys, keys, and values, of words or of entities.
Without entity-aware attention both queries are the same tensor."""


def attend_words(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, keep: Mask, dropout: float
) -> torch.Tensor:
    """Words attend to words only. Returns the context of the words."""
    mask = None if keep is None else keep[:, None, None, :]
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=dropout)


def attend_full(
    words: Projections,
    entities: Projections,
    keep_words: Mask,
    keep_entities: Mask,
    dropout: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Words and entities attend to words and entities, as published.

    Returns the context of the words and of the entities.
    """
    n_words = words[2].shape[2]
    to_words, keys, values = (torch.cat([words[i], entities[i]], 2) for i in (0, 2, 3))
    keep = _join(words[2], entities[2], keep_words, keep_entities)
    if words[0] is words[1]:  # not entity-aware: one query, so one fused call
        context = attend_words(to_words, keys, values, keep, dropout)
    else:
        to_entities = torch.cat([words[1], entities[1]], 2)
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
    """One softmax over word keys (for ``to_words``) and entity keys (for ``to_entities``)."""
    scale = keys.shape[-1] ** -0.5
    scaled = (keys * scale).transpose(-1, -2)
    # (n_sequences, heads, rows, n_words + n_entities)
    scores = torch.cat([to_words @ scaled[..., :n_words], to_entities @ scaled[..., n_words:]], -1)
    if keep is not None:
        scores = scores.masked_fill(~keep[:, None, None, :], torch.finfo(scores.dtype).min)
    weights = F.dropout(scores.softmax(-1).to(values.dtype), dropout, training=dropout > 0)
    return weights @ values


def attend_probe(
    entities: Projections,
    word_keys: torch.Tensor,
    word_values: torch.Tensor,
    keep: Mask,
    dropout: float,
) -> torch.Tensor:
    """Entities attend to the words of their sequence, and each to itself.

    word_keys, word_values: (n_sequences, heads, n_words, head_size); keep: of the words. Returns
    the context of the entities.
    """
    to_words, to_entities, keys, values = entities
    scale = word_keys.shape[-1] ** -0.5
    word_scores = (to_words * scale) @ word_keys.transpose(-1, -2)
    if keep is not None:
        lowest = torch.finfo(word_scores.dtype).min
        word_scores = word_scores.masked_fill(~keep[:, None, None, :], lowest)
    self_scores = (to_entities * keys).sum(-1, keepdim=True) * scale
    weights = torch.cat([word_scores, self_scores.to(word_scores.dtype)], -1).softmax(-1)
    weights = F.dropout(weights.to(word_values.dtype), dropout, training=dropout > 0)
    return weights[..., :-1] @ word_values + weights[..., -1:] * values


def _join(
    word_keys: torch.Tensor, entity_keys: torch.Tensor, keep_words: Mask, keep_entities: Mask
) -> Mask:
    """The mask of words and entities together."""
    if keep_words is None and keep_entities is None:
        return None

    def full_mask(keys: torch.Tensor, keep: Mask) -> torch.Tensor:
        if keep is not None:
            return keep
        return torch.ones((keys.shape[0], keys.shape[2]), dtype=torch.bool, device=keys.device)

    masks = full_mask(word_keys, keep_words), full_mask(entity_keys, keep_entities)
    return torch.cat(masks, 1)
