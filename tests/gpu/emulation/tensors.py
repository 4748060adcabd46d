"""Tensors on "cuda:0" that are none: wrappers of tensors in host memory, under a device's rules.

A tensor on the device takes part in no operation together with a tensor in host memory (tensors
without dimensions and indices aside, as in torch), and has no ``numpy()``.
"""

from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

from .ledger import LEDGER

aten = torch.ops.aten
DEVICE = torch.device("cuda:0")

_MOVES = {aten._to_copy.default, aten.copy_.default}
_ITEMS = {aten._local_scalar_dense.default, aten.equal.default, aten.is_nonzero.default}
_SIZED_BY_NUMBERS = {
    aten.nonzero.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.bincount.default,
}
_INDEXED = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
    aten._unsafe_index.Tensor,
    aten._unsafe_index_put.default,
}


class DeviceTensor(torch.Tensor):
    """A tensor on the device; ``inner`` has the numbers."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "DeviceTensor":
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device=DEVICE,
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    def __repr__(self) -> str:  # type: ignore[override]
        return f"DeviceTensor({self.inner!r})"

    def numpy(self, *, force: bool = False) -> np.ndarray:
        if not force:
            raise TypeError("can't convert cuda:0 device type tensor to numpy; use Tensor.cpu()")
        return self.detach().cpu().numpy()

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = _rebuild(*self.__reduce_ex__(2)[1])
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        inner = self.inner.detach().clone()
        return _rebuild, (inner, self.requires_grad, hasattr(self, "_is_param"))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(func, args, kwargs or {})


def _rebuild(inner: torch.Tensor, requires_grad: bool, is_parameter: bool) -> torch.Tensor:
    if is_parameter:
        return torch.nn.Parameter(DeviceTensor(inner), requires_grad)
    return DeviceTensor(inner).requires_grad_(requires_grad)


class DeviceMode(TorchDispatchMode):
    """Within it, torch's operations know the device. A mode belongs to a thread."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(func, args, kwargs or {})


def dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run one operation of torch by the device's rules."""
    tensors = [x for x in pytree.arg_tree_leaves(*args, **kwargs) if isinstance(x, torch.Tensor)]
    from_device = any(isinstance(x, DeviceTensor) for x in tensors)
    target = kwargs.get("device")
    to_device = from_device if target is None else torch.device(target).type == "cuda"
    if not from_device and not to_device:
        return func(*args, **kwargs)
    if func in _MOVES:
        to_device = _note_move(func, args, to_device)
    elif func in _ITEMS:
        LEDGER.note("item")
        to_device = False
    elif from_device:
        _refuse_mixed(func, args, tensors)
        if func in _SIZED_BY_NUMBERS:
            LEDGER.note("wait")
    if to_device and not func.is_view:
        LEDGER.operation(str(func))
    inner_args, inner_kwargs = pytree.tree_map_only(DeviceTensor, lambda x: x.inner, (args, kwargs))
    if target is not None:
        inner_kwargs["device"] = torch.device("cpu")
    if inner_kwargs.get("pin_memory"):
        inner_kwargs["pin_memory"] = False
    found = func(*inner_args, **inner_kwargs)
    if func is aten._to_copy.default and found is inner_args[0]:
        found = found.clone()
    if not to_device:
        return args[0] if func is aten.copy_.default else found
    result = pytree.tree_map_only(torch.Tensor, _on_device, found)
    if func._schema.is_mutable or func.is_view:
        return return_and_correct_aliasing(func, args, kwargs, result)
    return result


def _on_device(tensor: torch.Tensor) -> DeviceTensor:
    return tensor if isinstance(tensor, DeviceTensor) else DeviceTensor(tensor)


def _note_move(func: Any, args: tuple, to_device: bool) -> bool:
    """Whether a copy ends on the device."""
    in_place = func is aten.copy_.default
    if in_place:
        to_device = isinstance(args[0], DeviceTensor)
    if to_device != isinstance(args[1 if in_place else 0], DeviceTensor):
        LEDGER.note("h2d" if to_device else "d2h")
    return to_device


def _refuse_mixed(func: Any, args: tuple, tensors: list[torch.Tensor]) -> None:
    """Raise RuntimeError if operands are in both memories, but for single numbers, and for indices,
    which torch copies."""
    on_host = [x for x in tensors if not isinstance(x, DeviceTensor)]
    if func in _INDEXED:
        indices = [x for x in args[1] if isinstance(x, torch.Tensor)]
        if any(x.dtype in (torch.bool, torch.uint8) for x in indices):
            LEDGER.note("wait")
        if isinstance(args[0], DeviceTensor):
            for x in indices:
                if not isinstance(x, DeviceTensor):
                    LEDGER.note("h2d index")
            on_host = [x for x in on_host if not any(x is index for index in indices)]
    shapes = [tuple(x.shape) for x in on_host if x.dim()]
    if shapes:
        raise RuntimeError(
            f"{func}: expected all tensors to be on the same device, but found cuda:0 and cpu "
            f"({shapes})"
        )
