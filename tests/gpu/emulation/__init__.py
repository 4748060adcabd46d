"""A GPU that is none: real numbers in host memory, under the rules of a device.

:func:`install` pretends, before torch, Thinc and spaCy are imported, that there is one CUDA device
and that CuPy is installed. Then ``spacy.require_gpu()`` works and Thinc uses its own ``CupyOps``.
What would raise on a GPU raises here, at the line that is wrong: operands in two memories, implicit
conversions, NumPy's arrays in CuPy's functions. What would be slow on a GPU is counted, with the
line that asked for it (:data:`.ledger.LEDGER`): copies, waits and operations. torch and CuPy share
memory through DLPack, so optimizers write where they do on a GPU.

Not emulated: streams, the numerics of kernels, operations that CUDA lacks, memory, several devices,
kernels of CuPy itself (RawKernel, ElementwiseKernel) but Adam's, and reading of host memory that
was changed too early. A module that moves to the device gets new parameters, not new data.

It cannot be undone, so it belongs in a process of its own.
"""

import sys


def install() -> None:
    """Once per process, before torch is imported. Raises RuntimeError if that is too late."""
    from .cuda_library import load

    if "thinc" in sys.modules:
        raise RuntimeError("the emulated device has to be installed before thinc is imported")
    load()
    from .cupy import modules
    from .torch_patches import patch_torch

    sys.modules.update(modules())
    patch_torch()
