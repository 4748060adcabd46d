"""Build an entity vocabulary from the links of all articles, with redirects resolved.

The joins run in DuckDB, with limited memory and a folder for temporary files: a Python dictionary
of all titles does not scale.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path

import srsly

from ..corpora.lines import read_lines
from ..errors import ConfigError, CorpusError
from ..vocab.entity_vocab import SPECIALS
from .database import (
    Database,
    count_rows,
    database,
    drop_tables,
    quoted,
    rows_of,
    value_of,
    write_query,
)
from .disk import fingerprint
from .engine import Engine
from .manifest import Manifest, by_input
from .resolved_links import follow_redirects, read_links, resolve_links
from .settings import VocabSettings
from .stage import begin
from .tables import ANCHORS, NO_COLUMNS, TARGETS, literal

STAGE = "entities"
_SPACED = "replace({}, '_', ' ')"
"""Titles of wikis may be written with underscores. Ids of annotated documents may have them."""
_CHOSEN = "(SELECT item FROM chosen)"


def build_vocabulary(
    articles: Sequence[Manifest],
    folder: Path,
    settings: VocabSettings,
    show_progress: bool = True,
) -> Manifest:
    """Count the links of one or several sets of articles, and choose the entities.

    Writes ``entity_vocab.tsv`` (title and count; the line number is the id) or, with sitelinks,
    ``entity_vocab.jsonl`` (names by language), and ``targets.parquet`` (titles and redirects of
    entities) and ``anchors.parquet``. Raises ConfigError and CorpusError.
    """
    sources = by_input(articles)
    languages = list(dict.fromkeys(str(x.settings["language"]) for x in articles))
    if len(languages) > 1 and settings.sitelinks is None:
        raise ConfigError(
            "Articles of several languages need --sitelinks, which tells the titles of one entity."
        )
    files = {"white_list": settings.white_list, "sitelinks": settings.sitelinks}
    recorded = {k: v for k, v in asdict(settings).items() if k not in (*files, "memory")}
    inputs = {name: manifest.fingerprint for name, manifest in sources.items()}
    inputs.update({name: fingerprint(path) for name, path in files.items() if path})
    work = partial(_build, settings=settings)
    with begin(STAGE, folder, {**recorded, "languages": languages}, inputs) as stage:
        return stage.run([list(articles)], work, Engine(workers=1), show_progress)


def _build(sources: Sequence[Manifest], folder: Path, settings: VocabSettings) -> dict[str, int]:
    for manifest in sources:
        manifest.verify()
    places = ", ".join(str(manifest.folder) for manifest in sources)
    with database(folder, f"The links of {places} cannot be counted", settings.memory) as db:
        counts = read_links(db, sources)
        counts.update(follow_redirects(db))
        counts.update(resolve_links(db))
        counts.update(_read_white_list(db, settings.white_list))
        counts.update(_count(db, settings))
        counts.update(_choose(db, settings))
        _write(db, folder, several=settings.sitelinks is not None)
    return counts


def _count(db: Database, settings: VocabSettings) -> dict[str, int]:
    """Create ``counted`` (links per entity) and ``named`` (names per entity). An entity is a title
    or, with sitelinks, an item. A title without an item is an entity, too."""
    db.execute(
        "CREATE TABLE titles AS SELECT language, title FROM resolved UNION "
        "SELECT language, title FROM listed"
    )
    counts: dict[str, int] = {}
    if settings.sitelinks is None:
        db.execute("CREATE TABLE named AS SELECT title AS item, language, title FROM titles")
    else:
        counts = _read_sitelinks(db, settings.sitelinks)
        db.execute(
            "CREATE TABLE named AS SELECT item, language, title FROM items UNION SELECT "
            "language || ':' || title, language, title FROM titles ANTI JOIN items "
            "USING (language, title)"
        )
    drop_tables(db, "titles")
    db.execute(
        "CREATE TABLE counted AS SELECT item, coalesce(sum(r.n), 0)::BIGINT AS count FROM named n "
        "LEFT JOIN resolved r USING (language, title) GROUP BY item"
    )
    return counts


def _read_white_list(db: Database, path: Path | None) -> dict[str, int]:
    """Create ``listed``: the articles of the white list, with redirects resolved. Names that lead
    to a disambiguation page or to no article are not found."""
    db.execute("CREATE TABLE white_list (name VARCHAR)")
    lines = [line.strip() for _, line in read_lines(path)] if path else []
    names = [(line,) for line in lines if line]
    if names:
        db.executemany("INSERT INTO white_list VALUES (?)", names)
    db.execute(
        "CREATE TABLE all_titles AS SELECT language, title FROM pages "
        "WHERE kind <> 'disambiguation' UNION SELECT language, title FROM resolved"
    )
    db.execute(
        "CREATE TABLE forms AS SELECT name, name AS form FROM white_list UNION "
        f"SELECT name, {_SPACED.format('name')} FROM white_list"
    )
    db.execute(
        "CREATE TABLE matched AS SELECT name, language, title FROM forms JOIN all_titles "
        "ON form = title UNION SELECT name, language, title FROM forms JOIN all_titles "
        "ON form = language || ':' || title"
    )
    db.execute(
        "CREATE TABLE listed AS SELECT name, language, coalesce(r.target, m.title) AS title "
        "FROM matched m LEFT JOIN redirects r USING (language, title) "
        "WHERE (language, m.title) NOT IN (FROM loops)"
    )
    db.execute(
        "DELETE FROM listed WHERE (language, title) IN "
        "(SELECT (language, title) FROM pages WHERE kind = 'disambiguation')"
    )
    n_unmatched = count_rows(db, "FROM white_list ANTI JOIN listed USING (name)")
    drop_tables(db, "pages", "all_titles", "forms", "matched", "white_list")
    return {"white list: not found": n_unmatched}


def _read_sitelinks(db: Database, path: Path) -> dict[str, int]:
    """Create ``items``: item, language and title. Languages may be given as wikis (``dewiki``), and
    titles may have underscores, as in the wikis' tables. If a title is a redirect, its target is
    used, unless the target has its own item."""
    import duckdb  # see ``database``

    try:
        rows = db.execute(f"DESCRIBE FROM {_table(path)}").fetchall()
        missing = {"item", "language", "title"} - {name.lower() for name, *_ in rows}
        if missing:
            raise CorpusError(
                f"{path} has no column {', '.join(sorted(missing))}; it has "
                f"{', '.join(name for name, *_ in rows)}."
            )
        # The wikis store text as blobs.
        blobs = {name.lower() for name, kind, *_ in rows if kind == "BLOB"}
        item, language, title = (
            f"decode({x})" if x in blobs else f"CAST({x} AS VARCHAR)"
            for x in ("item", "language", "title")
        )
        db.execute(
            f"CREATE TABLE items AS WITH f AS (SELECT {item} AS item, {title} AS title, "
            f"replace(regexp_replace(lower({language}), 'wiki$', ''), '_', '-') AS language "
            f"FROM {_table(path)} WHERE item IS NOT NULL AND title IS NOT NULL), "
            f"s AS (SELECT item, language, coalesce(t.title, {_SPACED.format('f.title')}) AS title "
            "FROM f LEFT JOIN titles t USING (language, title)) "
            "SELECT first(item ORDER BY by_redirect, item) "
            "AS item, language, title FROM (SELECT s.item, s.language, "
            "coalesce(r.target, s.title) AS title, r.target IS NOT NULL AS by_redirect "
            "FROM s LEFT JOIN redirects r ON r.language = s.language AND r.title = s.title "
            "WHERE s.language IN (SELECT DISTINCT language FROM resolved)) GROUP BY language, title"
        )
    except duckdb.Error as error:
        raise CorpusError(
            f"{path} cannot be read as a table of item, language and title: {error}"
        ) from error
    counts = {}
    by_language = db.execute(
        "SELECT language, count(*), count(i.item) FROM titles LEFT JOIN items i "
        "USING (language, title) GROUP BY language ORDER BY language"
    )
    for name, n_linked, n_matched in by_language.fetchall():
        if not n_matched:
            raise CorpusError(
                f"{path} has none of the {n_linked} titles that articles in {name} link to. Its "
                f"languages must be codes or wikis ({name} or {name}wiki), and its titles those of "
                "the wiki."
            )
        counts[f"titles in sitelinks, {name}"] = n_matched
        counts[f"titles not in sitelinks, {name}"] = n_linked - n_matched
    return counts


def _table(path: Path) -> str:
    """SQL of a file as a table without type detection: 007 and 2001-01-01 are titles."""
    name = quoted(literal(path))
    if {".csv", ".tsv"} & set(path.suffixes):
        return f"read_csv('{name}', all_varchar = true, {NO_COLUMNS})"
    if {".json", ".jsonl", ".ndjson"} & set(path.suffixes):
        columns = ", ".join(f"{x}: 'VARCHAR'" for x in ("item", "language", "title"))
        return f"read_json('{name}', columns = {{{columns}}}, {NO_COLUMNS})"
    return f"read_parquet('{name}', {NO_COLUMNS})"


def _choose(db: Database, settings: VocabSettings) -> dict[str, int]:
    """Create ``chosen``: the entities with their ids, by descending count, then name."""
    listed = "SELECT DISTINCT item FROM named SEMI JOIN listed USING (language, title)"
    db.execute(
        f"CREATE TABLE chosen AS SELECT item, count, {len(SPECIALS)} - 1 + row_number() OVER "
        "(ORDER BY count DESC, item) AS id FROM (SELECT item, count FROM counted WHERE "
        f"count >= {settings.min_count} OR item IN ({listed}) "
        f"ORDER BY item IN ({listed}) DESC, count DESC, item LIMIT {settings.size})"
    )
    if not count_rows(db, "FROM chosen"):
        reason = f"no entity has {settings.min_count} links (--min-count)"
        if not count_rows(db, "FROM resolved"):
            reason = "no link leads to an article"
        raise CorpusError(f"The vocabulary would be empty: {reason}.")
    return {
        "white list: beyond --size": count_rows(db, f"FROM ({listed}) WHERE item NOT IN {_CHOSEN}"),
        "entities": count_rows(db, "FROM chosen"),
        "entities left out": count_rows(db, f"FROM counted WHERE item NOT IN {_CHOSEN}"),
        "links to an entity": int(value_of(db, "SELECT sum(count) FROM chosen")),
    }


def _write(db: Database, folder: Path, several: bool) -> None:
    if several:
        rows = rows_of(
            db,
            "SELECT id, count, list([title, language] ORDER BY language, title) FROM chosen "
            "JOIN named USING (item) GROUP BY ALL ORDER BY id",
        )
        special = [
            {"id": i, "entities": [[name, "en"]], "count": 0} for i, name in enumerate(SPECIALS)
        ]
        ordinary = ({"id": i, "entities": names, "count": count} for i, count, names in rows)
        srsly.write_jsonl(folder / "entity_vocab.jsonl", chain(special, ordinary))
    else:
        with (folder / "entity_vocab.tsv").open("w", encoding="utf8", newline="\n") as file:
            file.writelines(f"{name}\t0\n" for name in SPECIALS)
            for item, count in rows_of(db, "SELECT item, count FROM chosen ORDER BY id"):
                file.write(f"{item}\t{count}\n")
    direct = "SELECT language, title, CAST(id AS INTEGER) AS id FROM named JOIN chosen USING (item)"
    by_redirect = (
        f"SELECT r.language, r.title, d.id FROM redirects r JOIN ({direct}) d "
        "ON r.language = d.language AND r.target = d.title"
    )
    write_query(
        db,
        f"{direct} UNION {by_redirect} ORDER BY language, title",
        folder,
        TARGETS,
    )
    write_query(
        db,
        "SELECT language, anchor, title, n AS count FROM resolved "
        "ORDER BY language, anchor, count DESC, title",
        folder,
        ANCHORS,
    )
