"""A link table, made from the counts of linked texts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow.parquet as pq

from ..errors import ConfigError
from ..kb.entity import NIL
from ..kb.link_table import LinkedText, write_link_table
from .manifest import Manifest
from .settings import LinkTableSettings
from .tables import OCCURRENCES

KEPT = "texts kept"


def build_link_table(
    occurrences: Manifest, folder: Path, settings: LinkTableSettings, language: str = ""
) -> dict[str, int]:
    """Write the texts that are mentions to a folder; see ``LinkTableSettings``.

    language: required if ``occurrences`` has several. Returns the number of texts kept and, by
    reason, of texts left out.
    """
    occurrences.verify()
    languages = occurrences.settings["languages"]
    if not language and len(languages) > 1:
        raise ConfigError(
            f"A link table has one language: set --lang to one of {', '.join(languages)}."
        )
    language = language or languages[0]
    if language not in languages:
        raise ConfigError(f"--lang is {language!r}; use one of {', '.join(languages)}.")
    (path,) = occurrences.paths(OCCURRENCES.file)
    counts = Counter({KEPT: 0, "texts": 0})
    for _ in _entries(path, language, settings, counts):
        pass
    entries = partial(_entries, path, language, settings, Counter())
    recorded = {**asdict(settings), "counts": dict(sorted(counts.items()))}
    write_link_table(folder, language, entries, **recorded)
    return dict(sorted(counts.items()))


def _entries(
    path: Path, language: str, settings: LinkTableSettings, counts: Counter[str]
) -> Iterator[LinkedText]:
    for text, group in groupby(_rows(path, language), itemgetter(0)):
        rows = list(group)
        n_links, probability = sum(x[2] for x in rows), sum(x[2] for x in rows) / rows[0][3]
        titles = [(title, n) for _, title, n, _ in rows if n >= settings.min_count]
        counts["texts"] += 1
        counts["links"] += n_links
        if not titles:
            counts["left out: linked to no title often enough"] += 1
        elif probability < settings.min_probability:
            counts["left out: low link probability"] += 1
        elif titles[0][1] < settings.min_share * sum(n for _, n in titles):
            counts["left out: linked to several titles"] += 1
        elif titles[0][0] == NIL:
            counts[f"left out: linked to an article called {NIL}"] += 1
        else:
            counts[KEPT] += 1
            counts["links of texts kept"] += n_links
            yield LinkedText(text, titles[0][0], probability)


def _rows(path: Path, language: str) -> Iterator[tuple[str, str, int, int]]:
    """Text, title, links, occurrences; the most linked title of a text first."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            rows = zip(*(column.to_pylist() for column in batch.columns))
            yield from (row[1:] for row in rows if row[0] == language)
