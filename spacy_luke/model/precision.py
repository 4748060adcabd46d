"""Mixed precision, on devices that are made for it."""

import platform
from functools import cache

import torch

from ..report import LOGGER


@cache
def uses_bf16(device: torch.device) -> bool:
    """Whether mixed precision computes in bf16. Else it is float32, which is logged once."""
    if has_bf16(device):
        return True
    LOGGER.warning(
        "Mixed precision is off, and all is computed in float32: this %s has no instructions for "
        "bf16, and emulating them is slow.",
        "CPU" if device.type == "cpu" else "GPU",
    )
    return False


def has_bf16(device: torch.device) -> bool:
    """Whether a device has instructions for bf16. Others emulate them."""
    if device.type == "cpu":
        # oneDNN says yes to AVX-512 alone, too, with which it emulates bf16. Older
        # versions of torch do not tell more.
        native = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
        is_x86 = platform.machine().lower() in ("x86_64", "amd64")
        return (
            torch.backends.mkldnn.is_available()
            and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
            and (not is_x86 or native is None or bool(native()))
        )
    if device.type == "cuda" and not torch.version.hip:
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return True
