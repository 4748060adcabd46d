"""Make ``nlp.pipe(n_process=2)`` safe if processes are forked.

A child inherits the state of torch's thread pool but not its threads, so its first parallel
operation would wait forever. With one thread per process there are no parallel operations. Nor
does it inherit the threads that hold locks.
"""

import os
from functools import cache

import torch

from ..forked_locks import renew_all

_PARALLELISM = "TOKENIZERS_PARALLELISM"
_set_here = False


def _before() -> None:
    """Without this variable tokenizers log a warning when they disable parallelism in a fork."""
    global _set_here
    _set_here = _PARALLELISM not in os.environ
    if _set_here:
        os.environ[_PARALLELISM] = "false"


def _in_parent() -> None:
    if _set_here:
        os.environ.pop(_PARALLELISM, None)


def _in_child() -> None:
    renew_all()
    torch.set_num_threads(1)


@cache
def make_forks_safe() -> None:
    """Register the hooks with the interpreter, at the first call only. It is called when weights
    are made or loaded, so that importing the package changes nothing in the process."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
