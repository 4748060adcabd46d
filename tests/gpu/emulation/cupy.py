"""The modules ``cupy``, ``cupy.cublas`` and ``cupyx``, as far as Thinc and spaCy use them."""

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from torch.utils import _pytree as pytree

from .arrays import DeviceArray, from_dlpack, on_device, unwrap, wrap
from .ledger import LEDGER
from .tensors import DeviceTensor

_CREATE = ("array", "asarray", "asanyarray", "ascontiguousarray")
_SPLIT = ("split", "array_split")


class Cupy(ModuleType):
    """CuPy by NumPy: creation takes what is in host memory, no other function does."""

    ndarray = DeviceArray
    __version__ = "14.2.0"
    from_dlpack = staticmethod(from_dlpack)

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if isinstance(value, (type, np.dtype)) or not callable(value):
            return value
        if name in _SPLIT:  # the host says where to cut
            return lambda data, at, *args: on_device(value, data, _as_list(at), *args)
        if name in _CREATE:
            return lambda data, *args, **kwargs: _create(value, data, *args, **kwargs)
        return lambda *args, **kwargs: on_device(value, *args, **kwargs)


def _as_list(at: Any) -> Any:
    return at.tolist() if isinstance(at, np.ndarray) else at


def _create(function: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(data, DeviceTensor):
        data = from_dlpack(data)
    elif not isinstance(data, DeviceArray):
        LEDGER.note("array h2d")
    return wrap(function(pytree.tree_map_only(DeviceArray, unwrap, data), *args, **kwargs))


def _elementwise_kernel(inputs: str, outputs: str, body: str, name: str) -> Any:
    """Thinc's Adam; another kernel raises NotImplementedError when it is called."""

    def adam(grad: Any, rate: Any, beta1: Any, beta2: Any, eps: Any, *state: DeviceArray) -> None:
        """beta1, beta2: one minus Adam's."""
        g, (weights, m, v) = grad.inner, (x.inner for x in state)
        m += np.float32(beta1) * (g - m)
        v += np.float32(beta2) * (g * g - v)
        weights -= np.float32(rate) * m / (np.sqrt(v) + np.float32(eps))
        LEDGER.operation("array adam")

    def missing(*args: Any) -> None:
        raise NotImplementedError(f"the kernel {name} is not emulated")

    return adam if name == "adam" else missing


def _as_numpy(array: Any, *args: Any, **kwargs: Any) -> np.ndarray:
    return array.get() if isinstance(array, DeviceArray) else np.asarray(array)


def modules() -> dict[str, ModuleType]:
    """By their names, for ``sys.modules``."""
    cupy: Any = Cupy("cupy")
    cublas: Any = ModuleType("cupy.cublas")
    cupyx: Any = ModuleType("cupyx")
    cublas.nrm2 = lambda x: on_device(np.linalg.norm, x)
    cupyx.scatter_add = lambda a, i, b: np.add.at(unwrap(a), unwrap(i), unwrap(b))
    cupy.cublas = cublas
    cupy.ElementwiseKernel = _elementwise_kernel
    cupy.RawModule = cupy.RawKernel = cupy.ReductionKernel = lambda *args, **kwargs: None
    cupy.asnumpy = _as_numpy
    cupy.save = lambda file, x, **options: np.save(file, _as_numpy(x), **options)
    cupy.load = lambda *args, **options: wrap(np.load(*args, **options))
    cupy.get_array_module = lambda *xs: cupy if any(isinstance(x, DeviceArray) for x in xs) else np
    cupy.random = SimpleNamespace(seed=lambda seed: None)
    pool = SimpleNamespace(free_all_blocks=lambda: None, used_bytes=lambda: 0)
    cupy.get_default_memory_pool = lambda: pool
    cupy.cuda = cuda = _cuda(pool)
    found = {"cupy": cupy, "cupy.cublas": cublas, "cupyx": cupyx, "cupy.cuda": cuda}
    return {**found, "cupy.cuda.device": cuda.device}


class _Device:
    id = 0

    def __init__(self, number: int = 0) -> None:
        """There is one, whatever the number."""

    def __enter__(self) -> "_Device":
        return self

    def __exit__(self, *error: object) -> None: ...

    def use(self) -> None: ...

    def synchronize(self) -> None: ...


def _cuda(pool: SimpleNamespace) -> Any:
    cuda: Any = ModuleType("cupy.cuda")
    cuda.device = ModuleType("cupy.cuda.device")
    cuda.Device = cuda.device.Device = _Device
    error = type("CUDARuntimeError", (RuntimeError,), {})
    cuda.runtime = SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=error)
    cuda.set_allocator = lambda allocator: None
    cuda.get_allocator = lambda: None
    cuda.memory = SimpleNamespace(MemoryPool=lambda *args: pool)
    cuda.MemoryPool = lambda allocator=None: SimpleNamespace(malloc=None)
    return cuda
