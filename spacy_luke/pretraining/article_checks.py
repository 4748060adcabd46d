"""What all articles together show to be doubtful. It is logged, for the user to decide."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..report import LOGGER
from .database import database
from .manifest import Manifest
from .tables import ARTICLES, FROM_PARQUET, PAGES, Table, literal
from .wiki.export import Partition

SHOWN = 10
_NO_SPACE = r"^[^\s:/]+:[^\s:]"
"""How links to other wikis are written, while titles have a space after their colon."""


def tell_repeated_titles(manifest: Manifest) -> None:
    """Tell titles of several records of linked text, and names that lead to several titles."""
    twice = f"{FROM_PARQUET} WHERE kind = 'article' GROUP BY title HAVING count(*) > 1"
    for n, title in _rows(manifest, f"SELECT count(*), min(title) FROM (SELECT title {twice})"):
        if n:
            LOGGER.warning(
                "%d titles are those of several records, for example %s: all of these are used, as "
                "parts of one article.",
                n,
                title,
            )
    several = "GROUP BY title HAVING count(DISTINCT coalesce(target, title)) > 1"
    names = f"SELECT title {FROM_PARQUET} {several}"
    for n, name in _rows(manifest, f"SELECT count(*), min(title) FROM ({names})"):
        if n:
            LOGGER.warning(
                "%d names (ids, aliases, titles) are those of several titles, for example %s: "
                "links to them lead to the title of that name, or else to the first title by name.",
                n,
                name,
            )


def tell_unknown_prefixes(manifest: Manifest, known: Iterable[str]) -> None:
    """Tell prefixes of links which no page has, such as ``jira``: they may be other wikis, which an
    export does not name. known: casefolded prefixes that are not told."""
    query = (
        "WITH linked AS (SELECT title, split_part(title, ':', 1) AS prefix FROM (SELECT "
        f"unnest(link_targets) AS title {FROM_PARQUET}) WHERE regexp_matches(title, '{_NO_SPACE}'))"
        f", used AS (SELECT lower(split_part(title, ':', 1)) AS prefix {FROM_PARQUET} "
        "WHERE contains(title, ':')) "
        "SELECT lower(prefix) AS name, count(*), count(DISTINCT title), min(title) FROM linked "
        "WHERE lower(prefix) NOT IN (SELECT prefix FROM used) GROUP BY name "
        "HAVING count(DISTINCT title) > 1 ORDER BY 2 DESC, 1"
    )
    rows, names = _rows(manifest, query, ARTICLES, PAGES), frozenset(known)
    found = [row for row in rows if row[0].casefold() not in names]
    for prefix, n, n_titles, title in found[:SHOWN]:
        LOGGER.warning(
            "%d links lead to %d titles such as %s, but no page starts with this prefix. They are "
            "entities. If these are pages of another wiki, set --interwiki %s.",
            n,
            n_titles,
            title,
            prefix,
        )
    if len(found) > SHOWN:
        others = ", ".join(prefix for prefix, *_ in found[SHOWN:])
        LOGGER.warning("There are %d more such prefixes: %s", len(found) - SHOWN, others)


def tell_several_wikis(parts: Sequence[Partition]) -> None:
    """Tell if exports name different wikis: their pages of one title count once."""
    sites = {(x.site.name, x.site.dbname, x.site.base): x.path for x in parts if x.site.name}
    if len(sites) > 1:
        LOGGER.warning(
            "The exports are of several wikis (%s). They are read as one: of pages with one title "
            "only the newest is used. Read different wikis into folders of their own.",
            "; ".join(f"{name}, {base}: {path}" for (name, _, base), path in sites.items()),
        )


def _rows(manifest: Manifest, query: str, *tables: Table) -> list[tuple[Any, ...]]:
    """The rows of a query with the files of these tables as its parameters."""
    paths = [[literal(x) for x in manifest.paths(table.file)] for table in tables or (PAGES,)]
    failure = f"The titles of {manifest.folder} cannot be counted"
    with TemporaryDirectory() as spill, database(Path(spill), failure) as db:
        return db.execute(query, paths).fetchall()
