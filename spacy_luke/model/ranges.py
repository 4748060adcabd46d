"""Means of the pieces of spans."""

import torch


def range_means(states: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """The means of ranges of rows. states: (n, D) -> (m, D) float32.

    starts, ends: (m,) the ranges [start, end), which are not empty.
    """
    # In float64, so that rounding of a difference does not depend on the rows before it.
    sums = torch.cat([states.new_zeros((1, states.shape[1])), states]).double().cumsum(0)
    totals = sums.index_select(0, ends) - sums.index_select(0, starts)
    return (totals / (ends - starts)[:, None]).float()
