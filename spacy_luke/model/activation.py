"""The activation of the network and its heads."""

import torch
import torch.nn.functional as F


def gelu(rows: torch.Tensor) -> torch.Tensor:
    """erf GELU, (n, size) -> (n, size).

    On a CPU, torch computes the GELU of a contiguous tensor with oneDNN, which compiles and keeps
    a primitive for every number of rows; nearly every batch of packed rows has a new one. A
    transposed view is computed by torch's own kernel: the same formula, nothing is kept.
    """
    return F.gelu(rows.T).T
