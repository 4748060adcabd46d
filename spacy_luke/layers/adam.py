"""The step of Thinc's Adam for all parameters of a module at once, for a GPU.

Thinc takes it parameter by parameter: some ten kernels for each, and a wait for the norm that may
be clipped. A base encoder has 200 parameters, so that is a third of the time of a small batch.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from thinc.api import Optimizer
from thinc.util import torch2xp

from .arrays import to_torch

_MOST_NUMBERS = 1 << 26
"""Of parameters that are computed together, unless one has more: the step needs as much memory."""


class Change(NamedTuple):
    """A parameter with a gradient, and how it changes. key: by which the optimizer has its moments.
    rate: the factor of the learning rate. decay: the L2 of this parameter."""

    key: tuple[int, str]
    parameter: torch.Tensor
    rate: float
    decay: float


def applies(optimizer: Optimizer, changes: Sequence[Change]) -> bool:
    """Whether :func:`step` does what the optimizer would: it is Thinc's Adam, not a subclass or a
    function of others, and everything is on one GPU."""
    adam = not optimizer.use_radam and min(optimizer.b1, optimizer.b2) > 0
    return type(optimizer) is Optimizer and adam and all(x.parameter.is_cuda for x in changes)


def step(optimizer: Optimizer, changes: Sequence[Change]) -> None:
    """Change parameters, moments and averages as ``optimizer(...)`` does for each, within rounding.
    Gradients are used up."""
    groups: dict[tuple[float, float, int], list[Change]] = {}
    for change in changes:
        optimizer.nr_update[change.key] += 1
        same = change.rate, change.decay, optimizer.nr_update[change.key]
        groups.setdefault(same, []).append(change)
    with torch.no_grad():
        for (rate, decay, count), group in groups.items():
            for part in _parts(group):
                _step(optimizer, part, rate, decay, count)


def _parts(changes: Sequence[Change]) -> Iterator[list[Change]]:
    part: list[Change] = []
    size = 0
    for change in changes:
        size += change.parameter.numel()
        if part and size > _MOST_NUMBERS:
            yield part
            part, size = [], change.parameter.numel()
        part.append(change)
    yield part


def _step(
    optimizer: Optimizer, changes: Sequence[Change], rate: float, decay: float, count: int
) -> None:
    weights = [change.parameter.data for change in changes]
    gradients: Any = [change.parameter.grad for change in changes]
    first, second = (
        [_kept(moments, change, (-1,)) for change in changes]
        for moments in (optimizer.mom1, optimizer.mom2)
    )
    if decay and not optimizer.L2_is_weight_decay:
        torch._foreach_add_(gradients, weights, alpha=decay)
    if optimizer.grad_clip:
        _clip(gradients, optimizer.grad_clip)
    b1, b2 = optimizer.b1, optimizer.b2
    torch._foreach_lerp_(first, gradients, 1.0 - b1)
    torch._foreach_mul_(second, b2)
    torch._foreach_addcmul_(second, gradients, gradients, 1.0 - b2)
    divisors = torch._foreach_sqrt(second)
    torch._foreach_add_(divisors, optimizer.eps)
    learn_rate = rate * optimizer.learn_rate
    corrected = learn_rate * (1.0 - b2**count) ** 0.5 / (1.0 - b1**count)
    torch._foreach_addcdiv_(weights, first, divisors, -corrected)
    if decay and optimizer.L2_is_weight_decay:
        torch._foreach_mul_(weights, 1.0 - learn_rate * decay)
    if optimizer.averages is not None:
        averages = [_kept(optimizer.averages, x, x.parameter.shape) for x in changes]
        kept = min((1.0 + count) / (10.0 + count), 0.9999)
        torch._foreach_lerp_(averages, weights, 1.0 - kept)


def _clip(gradients: list[torch.Tensor], most: float) -> None:
    """Each gradient to a norm of ``most``, if it has a larger one, without a wait for the norm."""
    norms = torch.stack(torch._foreach_norm(gradients))
    factors = torch.where(norms >= most, most / norms, 1.0)
    torch._foreach_mul_(gradients, list(factors.unbind()))


def _kept(arrays: dict, change: Change, shape: Sequence[int]) -> torch.Tensor:
    """What an optimizer keeps for a parameter, in the parameter's shape; at first zeros, which the
    optimizer has in ``shape``."""
    if change.key not in arrays:
        zeros = torch.zeros(change.parameter.shape, device=change.parameter.device)
        arrays[change.key] = torch2xp(zeros.view(shape))
    return to_torch(arrays[change.key]).view(change.parameter.shape)
