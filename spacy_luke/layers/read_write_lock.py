"""A lock for an encoder: many threads may predict with it, or one may train it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, get_ident
from typing import Any

from ..forked_locks import renew_in_child


class ReadWriteLock:
    """Held by any number of readers, or by one writer. A thread that holds it may acquire it again,
    for reading or writing. The standard library has no such lock.

    A writer waits for the present readers. Later readers wait for the writer, so that continuous
    predictions do not delay training.
    """

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Become free, as in a forked process."""
        self._free = Condition()
        self._readers: Counter[int] = Counter()
        self._writer: int | None = None
        self._depth = 0
        self._n_waiting = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        me = get_ident()
        with self._free:
            inside = self._writer == me or self._readers[me]
            self._free.wait_for(lambda: inside or not (self._writer or self._n_waiting))
            self._readers[me] += 1
        try:
            yield
        finally:
            with self._free:
                self._readers -= Counter([me])
                self._free.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        me = get_ident()
        with self._free:
            self._n_waiting += 1
            try:
                self._free.wait_for(
                    lambda: self._writer in (None, me) and not set(self._readers) - {me}
                )
            finally:
                self._n_waiting -= 1
            self._writer = me
            self._depth += 1
        try:
            yield
        finally:
            with self._free:
                self._depth -= 1
                if not self._depth:
                    self._writer = None
                self._free.notify_all()

    def __deepcopy__(self, memo: Any) -> "ReadWriteLock":
        return ReadWriteLock()

    def __reduce__(self) -> Any:
        return ReadWriteLock, ()
