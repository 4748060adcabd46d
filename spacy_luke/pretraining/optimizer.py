"""AdamW as LUKE was trained with: without bias correction."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

NO_DECAY = ("bias", "norm.weight")


class UncorrectedAdamW(torch.optim.AdamW):
    """``torch.optim.AdamW`` always corrects the bias of its moments. With the rate, epsilon and
    decay that undo it at every step, the result is m / (sqrt(v) + eps), times the rate (Yamada et
    al. 2020, appendix A)."""

    def __init__(self, params: Iterable[Any], lr: float, **settings: Any):
        super().__init__(params, lr=lr, **settings)
        for group in self.param_groups:
            group["n_steps"] = 0

    def step(self, closure: Callable | None = None) -> Any:  # type: ignore[override]
        wanted = [(g["lr"], g["eps"], g["weight_decay"]) for g in self.param_groups]
        for group, (rate, eps, decay) in zip(self.param_groups, wanted):
            group["n_steps"] += 1
            first, second = (1.0 - beta ** group["n_steps"] for beta in group["betas"])
            group["lr"] = rate * first / second**0.5
            group["eps"] = eps / second**0.5
            group["weight_decay"] = decay * rate / group["lr"] if group["lr"] else 0.0
        try:
            return super().step(closure)
        finally:
            for group, (rate, eps, decay) in zip(self.param_groups, wanted):
                group["lr"], group["eps"], group["weight_decay"] = rate, eps, decay


def parameter_groups(
    parameters: Iterable[tuple[str, torch.nn.Parameter]], decay: float
) -> list[dict[str, Any]]:
    """Two groups: weights, and biases and LayerNorms, which do not decay."""
    named = list(parameters)
    plain = [p for name, p in named if not name.endswith(NO_DECAY)]
    rest = [p for name, p in named if name.endswith(NO_DECAY)]
    return [{"params": plain, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]


def linear_schedule(step: int, n_steps: int, n_warmup: int) -> float:
    """The share of the peak rate at a step counted from 0: up over the warm-up, then down to 0."""
    if step < n_warmup:
        return (step + 1) / max(1, n_warmup)
    return max(0.0, (n_steps - step) / max(1, n_steps - n_warmup))
