"""Weights, gradients and optimizer spread over the processes of a training, by PyTorch's
``fully_shard`` (FSDP2); and the state of a training as a whole, however it is spread.

accelerate shards on accelerators only; PyTorch does on whatever the processes share.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

from ..checkpoint.names import Weights
from ..errors import ConfigError
from .objective import PretrainingModel

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)
# Parameters that no loss has reached yet have no state.
_LOADED = StateDictOptions(full_state_dict=True, strict=False)


def shard(model: PretrainingModel, device: torch.device) -> None:
    """Spread the parameters of a model over all processes, in place: each layer by itself, gathered
    when it is needed, and what is left (tables and heads) together. Optimizers made before know
    the old parameters. Raises ConfigError without processes."""
    try:
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
    except ImportError:
        raise ConfigError(
            f"sharded needs torch 2.6 or newer; this is {torch.__version__}."
        ) from None
    if not torch.distributed.is_initialized():
        raise ConfigError("sharded needs several processes: start it with torchrun.")
    mesh = torch.distributed.init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    for layer in model.luke.layers:
        fully_shard(layer, mesh=mesh)
        for name in ("full", "words", "probe"):  # what the encoder calls
            register_fsdp_forward_method(layer, name)
    fully_shard(model, mesh=mesh)


@contextmanager
def unreduced(model: Any) -> Iterator[None]:
    """Gradients of a sharded model are kept by each process until a backward pass outside."""
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


def whole_weights(model: PretrainingModel) -> Weights:
    """All weights, on the CPU, in the main process; every process has to ask."""
    found = get_model_state_dict(model, options=_WHOLE)
    return {name: x for name, x in found.items() if isinstance(x, torch.Tensor)}


def whole_optimizer(model: PretrainingModel, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The optimizer's state by names of parameters, as ``whole_weights``."""
    return get_optimizer_state_dict(model, optimizer, options=_WHOLE)


def load_optimizer(
    model: PretrainingModel, optimizer: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    """Go on with what ``whole_optimizer`` gave; every process has to have it."""
    set_optimizer_state_dict(model, optimizer, state, options=_LOADED)
