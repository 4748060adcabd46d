"""What torch and Thinc are changed in, so that they find the device."""

import threading
from typing import Any

import torch

from .arrays import Capsule, DeviceArray
from .ledger import LEDGER
from .tensors import DeviceMode, DeviceTensor

_SEEDS = torch.default_generator
_CUDA: dict[str, Any] = {
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "_lazy_init": lambda: None,
    "_lazy_call": lambda *args, **kwargs: None,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "set_device": lambda device: None,
    "get_device_name": lambda *args: "emulated",
    "is_bf16_supported": lambda *args, **kwargs: True,
    "get_device_capability": lambda *args: (8, 0),
    "synchronize": lambda *args: None,
    "empty_cache": lambda: None,
    "max_memory_allocated": lambda *args: 0,
    "manual_seed_all": lambda seed: None,
    "get_rng_state": lambda *args: _SEEDS.get_state(),
    "set_rng_state": lambda state, *args: _SEEDS.set_state(state),
}


def patch_torch() -> None:
    for name, value in _CUDA.items():
        setattr(torch.cuda, name, value)
    _patch_dlpack()
    _patch_attention()
    torch._C._set_only_lift_cpu_tensors(True)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    _use_no_kernels()
    _enter_mode_in_threads()
    DeviceMode().__enter__()


def _patch_dlpack() -> None:
    real = torch.utils.dlpack.from_dlpack

    def from_dlpack(exported: Any, **options: Any) -> torch.Tensor:
        if isinstance(exported, DeviceArray):
            return exported.tensor()
        return real(exported, **options)

    torch.from_dlpack = torch.utils.dlpack.from_dlpack = from_dlpack
    torch.utils.dlpack.to_dlpack = Capsule


def _patch_attention() -> None:
    """Attention is one kernel on a GPU, whatever it consists of here."""
    real = torch.nn.functional.scaled_dot_product_attention

    def attention(query: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if isinstance(query, DeviceTensor):
            masked = kwargs.get("attn_mask") is not None
            LEDGER.operation("attention, masked" if masked else "attention")
        with LEDGER.paused():
            return real(query, *args, **kwargs)

    torch.nn.functional.scaled_dot_product_attention = attention


def _use_no_kernels() -> None:
    """What Thinc computes by CUDA kernels of its own is computed as for any other array."""
    from thinc.backends.cupy_ops import CupyOps
    from thinc.backends.ops import Ops

    for name, method in list(vars(CupyOps).items()):
        code = getattr(method, "__code__", None)
        if code and "_custom_kernels" in code.co_names and hasattr(Ops, name):
            delattr(CupyOps, name)


def _enter_mode_in_threads() -> None:
    """A mode of torch belongs to a thread; a device does not."""
    real = threading.Thread.run

    def run(thread: threading.Thread) -> None:
        with DeviceMode():
            real(thread)

    threading.Thread.run = run  # type: ignore[method-assign]
