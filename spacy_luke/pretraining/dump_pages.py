"""The pages of a dump as tables, and what only all pages together tell.

A dump is decompressed once, because that takes a large share of the time. So pages are first
written to a hidden folder, about as large as a compressed dump, which is removed when the articles
are finished.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import srsly

from .database import database, quoted, write_query
from .disk import write_json
from .engine import Engine
from .manifest import Counts
from .stage import Stage, begin
from .tables import NO_COLUMNS, RAW_PAGES, REPEATED, literal
from .wiki.export import Page, Partition, read_pages
from .wiki.names import DumpNames
from .wiki.sites import Site

PAGES, REPETITIONS = "pages", "repetitions"
_NAMES = "names.json"
_PAGES_AT_ONCE = 50


class PageTable(NamedTuple):
    """The pages of a partition. number: of the partition. repeated: rows of all partitions that are
    not used, because there is a newer page of that title."""

    source: Partition
    number: int
    path: Path
    site: Site
    repeated: Path

    def __str__(self) -> str:
        return str(self.source)

    def pages(self) -> Iterator[tuple[Page, bool]]:
        """Each page, and whether another one of this title is used instead. Blank ones, which may
        be used instead of others, have been counted."""
        table = pq.read_table(self.repeated, filters=[("part", "=", self.number)])
        repeated = set(table["row"].to_pylist())
        row = 0
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(_PAGES_AT_ONCE):
                for values in batch.to_pylist():
                    page = Page(**values)
                    if page.text or page.namespace not in self.site.content:
                        yield page, row in repeated
                    row += 1


def read_page_tables(
    articles: Stage, parts: Sequence[Partition], engine: Engine, show_progress: bool
) -> tuple[list[PageTable], Counts]:
    """Write the pages of a dump into hidden folders of a stage. Returns the tables, with what the
    whole dump tells about names, and the counts of unusable pages."""
    settings, inputs = articles.settings, articles.inputs
    with begin(PAGES, _hidden(articles, PAGES), settings, inputs, len(parts)) as stage:
        pages = stage.run(parts, _write_pages, engine, show_progress)
    names = DumpNames()
    for path in pages.paths(_NAMES):
        names.update(DumpNames.from_dict(srsly.read_json(path)))
    paths = pages.paths(RAW_PAGES.file)
    with begin(REPETITIONS, _hidden(articles, REPETITIONS), settings, inputs) as stage:
        found = stage.run([paths], _write_repetitions, Engine(workers=1), show_progress=False)
    (repeated,) = found.paths(REPEATED.file)
    sites = {x.path: replace(x.site, names=names.names(x.site)) for x in parts}
    tables = [
        PageTable(part, i, path, sites[part.path], repeated)
        for i, (part, path) in enumerate(zip(parts, paths))
    ]
    return tables, pages.counts


def hidden_folders(articles: Stage) -> list[Path]:
    """What ``read_page_tables`` has written, which is not needed when the articles are finished."""
    folders = [_hidden(articles, name) for name in (PAGES, REPETITIONS)]
    return [folder for folder in folders if folder.exists()]


def _hidden(articles: Stage, name: str) -> Path:
    return articles.folder / f".{name}"


def _write_pages(partition: Partition, folder: Path) -> dict[str, int]:
    counts: Counter[str] = Counter()
    names = DumpNames()
    site = partition.site
    with RAW_PAGES.writer(folder) as table:
        for page in read_pages(partition, counts, blank=True):
            is_content = page.namespace in site.content
            if page.text:
                names.add(page, site)
            elif not is_content:
                continue
            text = page.text if is_content else ""
            table.add(tuple(vars(replace(page, text=text)).values()))
    write_json(folder / _NAMES, names.to_dict())
    return dict(counts)


def _write_repetitions(paths: Sequence[Path], folder: Path) -> dict[str, int]:
    """Of pages with one title, the newest one is used; of equally old ones, the first one that is
    not blank."""
    files = ", ".join(f"('{quoted(str(path))}', {i})" for i, path in enumerate(paths))
    names = ", ".join(f"'{quoted(literal(path))}'" for path in paths)
    query = (
        "WITH p AS (SELECT f.part, file_row_number AS row, title, timestamp, "
        "text = '' AS blank FROM "
        f"read_parquet([{names}], filename = true, file_row_number = true, {NO_COLUMNS}) "
        f"JOIN (VALUES {files}) f(filename, part) USING (filename)), "
        "twice AS (SELECT title FROM p GROUP BY title HAVING count(*) > 1) "
        "SELECT part, row FROM (SELECT part, row, row_number() OVER (PARTITION BY title ORDER BY "
        "timestamp DESC, blank, part, row) AS place FROM p SEMI JOIN twice USING (title)) "
        "WHERE place > 1 ORDER BY part, row"
    )
    with database(folder, "The titles of the dump cannot be compared") as db:
        n_rows = write_query(db, query, folder, REPEATED)
    return {"repeated": n_rows}
