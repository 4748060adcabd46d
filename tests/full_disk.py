"""A disk that becomes full while something is written."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def no_more_space(n_bytes: int) -> Iterator[None]:
    """Files cannot be longer than so many bytes, which is as if the disk were full."""
    if sys.platform == "win32":
        pytest.skip("limits of files are those of POSIX")
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error, and not the end
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
