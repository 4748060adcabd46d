"""What a device was asked for: copies, waits and operations, with the lines that asked."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

WATCHED = "/spacy_luke/"
"""Lines of files below a folder of this name are told apart; all others are ``ELSEWHERE``."""
ELSEWHERE = "elsewhere"


class Ledger:
    """Counts since :meth:`clear`.

    events: (kind, line of the watched package) -> how often. Kinds: ``h2d`` and ``d2h`` (tensors
    copied to and from the device), ``h2d index`` (an index in host memory), ``item`` (one number
    read), ``wait`` (an operation whose result has a size that depends on numbers), and the same of
    arrays (``array h2d``, ``array get``, ``array item``). Each waits for the device.
    operations: name -> how often; about a kernel launch each.
    """

    def __init__(self) -> None:
        self.events: Counter[tuple[str, str]] = Counter()
        self.operations: Counter[str] = Counter()
        self._paused = False

    def note(self, kind: str) -> None:
        if not self._paused:
            self.events[kind, _caller()] += 1

    def operation(self, name: str) -> None:
        if not self._paused:
            self.operations[name] += 1

    def clear(self) -> None:
        self.events.clear()
        self.operations.clear()

    def totals(self) -> dict[str, int]:
        """``to device`` and ``to host``: copies of either direction by the watched package, not by
        stock components; ``operations``: of all."""
        ours = {event: n for event, n in self.events.items() if event[1] != ELSEWHERE}
        to_device = sum(n for (kind, _), n in ours.items() if "h2d" in kind)
        return {
            "to device": to_device,
            "to host": sum(ours.values()) - to_device,
            "operations": sum(self.operations.values()),
        }

    def lines(self) -> list[str]:
        """Kinds and lines, most frequent first: to find where a copy comes from."""
        return [f"{n:4d} {kind:10s} {line}" for (kind, line), n in self.events.most_common()]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing in the block counts."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before


LEDGER = Ledger()


def _caller() -> str:
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if WATCHED in name:
            return f"{name.split(WATCHED)[-1]}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return ELSEWHERE
