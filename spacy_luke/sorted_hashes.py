"""Search in ascending arrays of 64-bit hashes, which may be memory-mapped."""

import math

import numpy as np


def search(hashes: np.ndarray, target: np.uint64) -> int:
    """``np.searchsorted`` that first searches around the expected position.

    Hashes are uniformly distributed, so the deviation from it is about sqrt(n). This reads a few
    pages of a file instead of about twenty.
    """
    n = len(hashes)
    expected, width = int(target) * n >> 64, 4 * math.isqrt(n) + 1
    low, high = max(0, expected - width), min(n, expected + width)
    i = low + int(np.searchsorted(hashes[low:high], target))
    if (i == low and low > 0) or (i == high and high < n):
        return int(np.searchsorted(hashes, target))
    return i
