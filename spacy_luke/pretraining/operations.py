"""How much arithmetic a pass of pretraining takes, so that its speed has a measure of its own."""

import numpy as np
import torch

from .objective import MaskedBatch, PretrainingModel


def operations(model: PretrainingModel, batch: MaskedBatch) -> float:
    """Floating-point operations of a pass forward and backward, as utilisation is usually counted.

    Matrix products alone, a multiplication and an addition being two. Padding is not counted, nor
    what gradient checkpointing computes again, nor gradients that nothing trained needs.
    """
    n = np.diff(batch.inputs.words.offsets).astype(np.float64)
    m = np.diff(batch.inputs.entities.offsets).astype(np.float64)
    pair = 4.0 * model.luke.config.hidden_size  # a query with a key, and a weight with a value
    probe = model.attention == "probe"
    out_of = True
    total = 0.0
    for i, layer in enumerate(model.luke.layers):
        frozen = not layer.qkv.weight.requires_grad
        # Words below trained weights, or that have seen entities, pass gradients down.
        into = not frozen or (i > 0 and not probe)
        out_of = not frozen or not probe
        for linear in (layer.attention_output, layer.intermediate, layer.output):
            total += _product(linear.weight, n.sum(), out_of) + _product(linear.weight, m.sum())
        total += _product(layer.qkv.weight, n.sum(), into)
        if layer.entity_queries is None:
            total += _product(layer.qkv.weight, m.sum())
        else:
            keys_and_values = 2.0 * m.sum() / 3.0
            total += _product(layer.qkv.weight, keys_and_values)
            total += _product(layer.entity_queries.weight, m.sum())
        if layer.word_to_entity is not None and not probe:
            total += _product(layer.word_to_entity.weight, n.sum(), into)
        if probe:
            total += pair * (n**2).sum() * (3.0 if out_of else 1.0)
            total += pair * (m * n).sum() * (2.0 if frozen else 3.0)
        else:
            total += pair * ((n + m) ** 2).sum() * 3.0
    if model.luke.entity_embeddings.dense is not None:
        total += _product(model.luke.entity_embeddings.dense.weight, m.sum())
    tables = model.luke.word_embeddings.words.weight, model.luke.entity_embeddings.table
    heads = (model.word_head, batch.words, out_of), (model.entity_head, batch.entities, True)
    for (head, rows, below), table in zip(heads, tables):
        assert isinstance(table, torch.Tensor)  # pretraining trains it
        total += _product(head.dense.weight, len(rows), below)
        total += _product(table, len(rows), below or head.dense.weight.requires_grad)
    return float(total)


def _product(weight: torch.Tensor, rows: float, passed_down: bool = True) -> float:
    """Of rows with a matrix: forward, for the gradient of the rows, for that of the matrix."""
    return 2.0 * weight.numel() * rows * (1.0 + passed_down + weight.requires_grad)
