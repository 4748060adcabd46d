"""Numbers, and pandas tables, as Markdown."""

from collections.abc import Iterable, Sequence

import pandas as pd


def spread(values: Iterable[float], digits: int = 1) -> str:
    """``mean ± standard deviation``; the mean alone of a single value; ``-`` of none."""
    found = pd.Series(list(values), dtype=float).dropna()
    if found.empty:
        return "-"
    mean = f"{found.mean():.{digits}f}"
    return mean if len(found) < 2 else f"{mean} ± {found.std():.{digits}f}"


def median_range(values: Iterable[float], digits: int = 2) -> str:
    """``median [least, most]``."""
    found = pd.Series(list(values))
    middle, low, high = (f"{x:.{digits}f}" for x in (found.median(), found.min(), found.max()))
    return f"{middle} [{low}, {high}]"


def markdown(frame: pd.DataFrame) -> str:
    """The columns of a table; columns without a value are left out."""
    shown = frame.dropna(axis=1, how="all").fillna("-").astype(str)
    return table(list(shown.columns), shown.to_numpy().tolist())


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
