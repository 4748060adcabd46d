"""Locks that are free in a forked process (``layers/forking.py``): the thread that held them in the
parent does not exist there, so that nothing would ever free them."""

from threading import Lock
from typing import Protocol
from weakref import WeakSet


class Renewed(Protocol):
    def renew(self) -> None:
        """Become free."""


_LOCKS: "WeakSet[Renewed]" = WeakSet()


def renew_in_child(lock: Renewed) -> None:
    """Call ``lock.renew()`` in every process that is forked as long as the lock exists."""
    _LOCKS.add(lock)


def renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


class ForkedLock:
    """A lock for a ``with`` block."""

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
