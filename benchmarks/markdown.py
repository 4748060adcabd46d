"""Numbers and cells as Markdown."""

import statistics
from collections.abc import Iterable, Sequence


def spread(values: Sequence[float], digits: int = 1) -> str:
    """``mean ± standard deviation`` of a sample; the mean alone of a single value."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {statistics.stdev(values):.{digits}f}"


def median_range(values: Sequence[float], digits: int = 2) -> str:
    """``median [least, most]``."""
    numbers = (statistics.median(values), min(values), max(values))
    middle, low, high = (f"{number:.{digits}f}" for number in numbers)
    return f"{middle} [{low}, {high}]"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
