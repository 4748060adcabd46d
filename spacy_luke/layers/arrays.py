"""Arrays of Thinc (NumPy or CuPy)."""

from typing import Any

import numpy as np
import torch


def to_torch(array: Any) -> torch.Tensor:
    """A NumPy or CuPy array as a tensor on the array's device, in the same memory.

    Thinc's ``xp2torch`` passes a DLPack capsule, whose version torch before 2.9 cannot read if a
    newer CuPy made it, and moves the result to the default device of the thread. torch and CuPy
    agree on a version if torch gets the array itself.
    """
    # torch.from_dlpack ends the process at negative strides, from_numpy raises ValueError.
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else torch.from_dlpack(array)


def to_numpy(array: Any) -> np.ndarray:
    """An array of NumPy or CuPy in NumPy."""
    return array.get() if hasattr(array, "get") else np.asarray(array)
