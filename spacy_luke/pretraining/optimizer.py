"""AdamW without bias correction, the optimizer with which LUKE was trained."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

NO_DECAY = ("bias", "norm.weight")


class UncorrectedAdamW(torch.optim.AdamW):
    """AdamW with updates of rate * m / (sqrt(v) + eps) (Yamada et al. 2020, appendix A).

    ``torch.optim.AdamW`` always corrects the bias of its moments. For each step, rate, epsilon and
    decay are set to values that undo the correction, and restored.
    """

    def __init__(self, params: Iterable[Any], lr: float, **settings: Any):
        super().__init__(params, lr=lr, **settings)
        for group in self.param_groups:
            group["n_steps"] = 0

    def step(self, closure: Callable | None = None) -> Any:  # type: ignore[override]
        configured = [(g["lr"], g["eps"], g["weight_decay"]) for g in self.param_groups]
        for group, (rate, eps, decay) in zip(self.param_groups, configured):
            group["n_steps"] += 1
            first, second = (1.0 - beta ** group["n_steps"] for beta in group["betas"])
            group["lr"] = rate * first / second**0.5
            group["eps"] = eps / second**0.5
            group["weight_decay"] = decay * rate / group["lr"] if group["lr"] else 0.0
        try:
            return super().step(closure)
        finally:
            for group, (rate, eps, decay) in zip(self.param_groups, configured):
                group["lr"], group["eps"], group["weight_decay"] = rate, eps, decay


def parameter_groups(
    parameters: Iterable[tuple[str, torch.nn.Parameter]], decay: float
) -> list[dict[str, Any]]:
    """Two groups: weights, and biases and LayerNorms, which have no weight decay."""
    named = list(parameters)
    decayed = [p for name, p in named if not name.endswith(NO_DECAY)]
    others = [p for name, p in named if name.endswith(NO_DECAY)]
    return [{"params": decayed, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]


def linear_schedule(step: int, n_steps: int, n_warmup: int) -> float:
    """Share of the peak rate at a step (from 0): linear warm-up, then linear decay to 0."""
    if step < n_warmup:
        return (step + 1) / max(1, n_warmup)
    return max(0.0, (n_steps - step) / max(1, n_steps - n_warmup))
