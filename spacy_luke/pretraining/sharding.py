"""Distribute weights, gradients and optimizer over processes with PyTorch's ``fully_shard``
(FSDP2), and gather the full state of a training.

PyTorch is used directly, because accelerate shards only on accelerators.
"""

import atexit
import gc
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
# Parameters without a gradient so far have no state.
_LOADED = StateDictOptions(full_state_dict=True, strict=False)


def shard(model: PretrainingModel, device: torch.device) -> None:
    """Distribute the parameters of a model over all processes, in place: one shard group per layer,
    and one for the rest (tables and heads). Optimizers must be made afterwards. Raises ConfigError
    if there is only one process."""
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
        for name in ("full", "words", "probe"):  # the methods that the encoder calls
            register_fsdp_forward_method(layer, name)
    fully_shard(model, mesh=mesh)
    atexit.register(_forget_groups, mesh)


def _forget_groups(mesh: torch.distributed.DeviceMesh) -> None:
    """Let the threads of a destroyed process group end while there still is an interpreter. PyTorch
    keeps meshes in caches, and these keep their groups; threads that meet an interpreter that is
    going down can abort the process, or wait for ever."""
    getattr(mesh, "_pg_registry", {}).clear()  # in older versions, meshes know names of groups only
    gc.collect()


@contextmanager
def unreduced(model: Any) -> Iterator[None]:
    """Accumulate gradients of a sharded model without communication."""
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


def whole_weights(model: PretrainingModel) -> Weights:
    """All weights, on the CPU, in the main process. All processes must call this."""
    state = get_model_state_dict(model, options=_WHOLE)
    return {name: x for name, x in state.items() if isinstance(x, torch.Tensor)}


def whole_optimizer(model: PretrainingModel, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The optimizer's full state by parameter names; see ``whole_weights``."""
    return get_optimizer_state_dict(model, optimizer, options=_WHOLE)


def load_optimizer(
    model: PretrainingModel, optimizer: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    """Load a state of ``whole_optimizer``. All processes must pass it."""
    set_optimizer_state_dict(model, optimizer, state, options=_LOADED)
