"""Floating-point operations per batch, for a measure of speed relative to the hardware."""

import numpy as np
import torch

from .objective import MaskedBatch, PretrainingModel


def operations(model: PretrainingModel, batch: MaskedBatch) -> float:
    """Floating-point operations of one forward and backward pass, as usually counted for
    utilisation.

    Only matrix products count; a multiplication and an addition are two operations. Padding,
    recomputation by gradient checkpointing and unneeded gradients do not count.
    """
    n = np.diff(batch.inputs.words.offsets).astype(np.float64)
    m = np.diff(batch.inputs.entities.offsets).astype(np.float64)
    pair = 4.0 * model.luke.config.hidden_size  # query times key, weight times value
    probe = model.attention == "probe"
    grad_out = True  # whether word states after the layer need gradients
    total = 0.0
    for i, layer in enumerate(model.luke.layers):
        frozen = not layer.qkv.weight.requires_grad
        # Word states need gradients before trained weights, and if they depend on entities.
        grad_in = not frozen or (i > 0 and not probe)
        grad_out = not frozen or not probe
        for linear in (layer.attention_output, layer.intermediate, layer.output):
            total += _product(linear.weight, n.sum(), grad_out) + _product(linear.weight, m.sum())
        total += _product(layer.qkv.weight, n.sum(), grad_in)
        if layer.entity_queries is None:
            total += _product(layer.qkv.weight, m.sum())
        else:
            keys_and_values = 2.0 * m.sum() / 3.0
            total += _product(layer.qkv.weight, keys_and_values)
            total += _product(layer.entity_queries.weight, m.sum())
        if layer.word_to_entity is not None and not probe:
            total += _product(layer.word_to_entity.weight, n.sum(), grad_in)
        if probe:
            total += pair * (n**2).sum() * (3.0 if grad_out else 1.0)
            total += pair * (m * n).sum() * (2.0 if frozen else 3.0)
        else:
            total += pair * ((n + m) ** 2).sum() * 3.0
    if model.luke.entity_embeddings.dense is not None:
        total += _product(model.luke.entity_embeddings.dense.weight, m.sum())
    tables = model.luke.word_embeddings.words.weight, model.luke.entity_embeddings.table
    heads = (model.word_head, batch.words, grad_out), (model.entity_head, batch.entities, True)
    for (head, rows, below), table in zip(heads, tables):
        assert isinstance(table, torch.Tensor)  # pretraining trains it
        total += _product(head.dense.weight, len(rows), below)
        total += _product(table, len(rows), below or head.dense.weight.requires_grad)
    return float(total)


def _product(weight: torch.Tensor, rows: float, rows_need_grad: bool = True) -> float:
    """Rows times a matrix: forward, and for the gradients of the rows and of the matrix."""
    return 2.0 * weight.numel() * rows * (1.0 + rows_need_grad + weight.requires_grad)
