"""CuPy's arrays, by NumPy: NumPy cannot convert them, and they take no array of NumPy."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from .ledger import LEDGER
from .tensors import DeviceTensor

_VIEWS = ("reshape", "ravel", "view", "transpose", "squeeze")


def unwrap(x: Any) -> Any:
    return x.inner if isinstance(x, DeviceArray) else x


def wrap(x: Any) -> Any:
    return DeviceArray(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x


def on_device(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function of NumPy with arrays on the device. Raises TypeError for arrays and tensors
    that are in host memory or of torch."""
    for x in pytree.tree_leaves((args, kwargs)):
        if isinstance(x, (np.ndarray, torch.Tensor)):
            raise TypeError(f"Unsupported type {type(x)}")
    args, kwargs = pytree.tree_map_only(DeviceArray, unwrap, (args, kwargs))
    name = getattr(function, "__name__", str(function))
    if name not in _VIEWS:
        LEDGER.operation(f"array {name}")
    return pytree.tree_map(wrap, function(*args, **kwargs))


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """CuPy's ``ndarray``; ``inner`` has the numbers."""

    __array_priority__ = 100

    def __init__(self, inner: np.ndarray) -> None:
        self.inner = inner

    # The border: explicit copies only

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()`.")

    def get(self, *args: Any, **kwargs: Any) -> np.ndarray:
        LEDGER.note("array get")
        return self.inner.copy()

    def tolist(self) -> Any:
        return self.get().tolist()

    def item(self, *args: Any) -> Any:
        LEDGER.note("array item")
        return self.inner.item(*args)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self.item())

    # What NumPy computes

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        found = on_device(getattr(ufunc, method), *inputs, **kwargs)
        return found if kwargs.get("out") is None else kwargs["out"][0]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return on_device(func, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self.inner, name)
        if not callable(value):
            return wrap(value) if isinstance(value, np.ndarray) else value
        return lambda *args, **kwargs: on_device(value, *args, **kwargs)

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def _index(self, key: Any) -> Any:
        for x in key if isinstance(key, tuple) else (key,):
            if isinstance(x, (np.ndarray, list)):
                LEDGER.note("h2d index")
        return pytree.tree_map_only(DeviceArray, unwrap, key)

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.inner[self._index(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        LEDGER.operation("array setitem")
        self.inner[self._index(key)] = unwrap(value)

    def __repr__(self) -> str:
        return f"DeviceArray({self.inner!r})"

    def __deepcopy__(self, memo: dict) -> "DeviceArray":
        return DeviceArray(self.inner.copy())

    # Memory that torch shares

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.inner.ctypes.data, device_id=0)

    def toDlpack(self) -> None:
        raise BufferError("a versioned capsule, which torch before 2.9 cannot read")

    def tensor(self) -> DeviceTensor:
        """The same memory for torch."""
        return DeviceTensor(torch.from_numpy(self.inner))


class Capsule:
    """torch's DLPack capsule of a tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def from_dlpack(exported: Any) -> DeviceArray:
    """CuPy's array in the memory of a tensor on the device."""
    tensor = exported.tensor if isinstance(exported, Capsule) else exported
    if not isinstance(tensor, DeviceTensor):
        raise RuntimeError("CuPy is built against CUDA; this DLPack tensor is in host memory")
    return DeviceArray(tensor.inner.detach().numpy())
