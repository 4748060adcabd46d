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
from .database import Database, database, quoted, rows_of, write_query
from .disk import fingerprint
from .engine import Engine
from .manifest import Manifest, by_input
from .settings import VocabSettings
from .stage import begin
from .tables import ANCHORS, ARTICLES, FROM_PARQUET, NO_COLUMNS, PAGES, TARGETS, literal

STAGE = "entities"
_DOUBLINGS = 6
"""How often the lengths of redirect chains are halved. Redirects that remain are loops."""
_SPACED = "replace({}, '_', ' ')"
"""Titles of wikis may be written with underscores. Ids of annotated documents may have them."""
_CHOSEN = "(SELECT item FROM chosen)"
_SHARED = f"""
SELECT ?, anchor, titles, count(*) FROM (
    SELECT pair[2] AS anchor, list_sort(list(pair[1])) AS titles FROM (
        SELECT article, unnest(pairs) AS pair FROM (
            SELECT row_number() OVER () AS article,
                list_distinct(list_zip(link_targets, link_anchors)) AS pairs {FROM_PARQUET}
            WHERE len(list_distinct(list_zip(link_targets, link_anchors)))
                > len(list_distinct(link_anchors))
        )
    ) GROUP BY article, pair[2] HAVING count(*) > 1
) GROUP BY anchor, titles
"""


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
    with database(settings.memory, folder, f"The links of {places} cannot be counted") as db:
        counts = read_links(db, sources)
        counts.update(follow_redirects(db))
        counts.update(resolve_links(db))
        counts.update(_read_white_list(db, settings.white_list))
        counts.update(_count(db, settings))
        counts.update(_choose(db, settings))
        _write(db, folder, several=settings.sitelinks is not None)
    return counts


def read_links(
    db: Database, sources: Sequence[Manifest], with_names: bool = False
) -> dict[str, int]:
    """Create ``pages``, ``names`` (if wanted; redirects and aliases: several articles may have one,
    and it may be the title of another), ``disambiguations``, ``links`` (n: how often a text links
    to a title; n_articles: in how many articles) and ``shared`` (titles to which one text links in
    the same article; n: in how many articles) of one or several sets of articles. Returns the
    number of titles that are articles in several sets: all their links count."""
    db.execute("CREATE TABLE pages (language VARCHAR, title VARCHAR, kind VARCHAR, target VARCHAR)")
    db.execute(
        "CREATE TABLE links (language VARCHAR, title VARCHAR, anchor VARCHAR, n BIGINT, "
        "n_articles BIGINT)"
    )
    db.execute("CREATE TABLE shared (language VARCHAR, anchor VARCHAR, titles VARCHAR[], n BIGINT)")
    for manifest in sources:
        language = str(manifest.settings["language"])
        pages = [literal(x) for x in manifest.paths(PAGES.file)]
        articles = [literal(x) for x in manifest.paths(ARTICLES.file)]
        if pages:
            db.execute(
                f"INSERT INTO pages SELECT ?, title, kind, target {FROM_PARQUET}",
                [language, pages],
            )
        if articles:
            db.execute(
                "INSERT INTO links SELECT ?, link.key[1] AS title, link.key[2] AS anchor, "
                "sum(link.value), count(*) FROM (SELECT unnest(map_entries(list_histogram("
                f"list_zip(link_targets, link_anchors)))) AS link {FROM_PARQUET}) "
                "GROUP BY title, anchor",
                [language, articles],
            )
            db.execute(f"INSERT INTO shared {_SHARED}", [language, articles])
    if with_names:
        db.execute(
            "CREATE TABLE names AS SELECT DISTINCT language, title, target FROM pages "
            "WHERE kind = 'redirect'"
        )
    # With several sets of one language, a title that is an article in one is an article in all.
    db.execute(
        "DELETE FROM pages WHERE kind <> 'article' AND (language, title) IN "
        "(SELECT (language, title) FROM pages WHERE kind = 'article')"
    )
    db.execute(
        "CREATE TABLE disambiguations AS SELECT DISTINCT language, title FROM pages "
        "WHERE kind = 'disambiguation'"
    )
    twice = "FROM pages WHERE kind = 'article' GROUP BY language, title HAVING count(*) > 1"
    return {"titles of several articles": _count_rows(db, f"FROM (SELECT title {twice})")}


def follow_redirects(db: Database) -> dict[str, int]:
    """Create ``redirects`` (redirect -> final target) and ``loops``, redirects without an article
    at their end: loops, and redirects to a category. Of several targets (an alias of several
    records of linked text) the first one by name is used.

    With redirects a -> b -> c -> d, a points to b, then c (1st pass), then d (2nd pass).
    """
    db.execute(
        "CREATE TABLE redirects AS SELECT language, title, coalesce(min(target), title) AS target "
        "FROM pages WHERE kind = 'redirect' GROUP BY language, title"
    )
    for _ in range(_DOUBLINGS):
        db.execute(
            "CREATE OR REPLACE TABLE redirects AS SELECT a.language, a.title, "
            "coalesce(b.target, a.target) AS target FROM redirects a LEFT JOIN redirects b "
            "ON a.language = b.language AND a.target = b.title"
        )
    loops = "SELECT a.language, a.title FROM redirects a JOIN redirects b "
    loops += "ON a.language = b.language AND a.target = b.title"
    db.execute(f"CREATE TABLE loops AS {loops}")
    db.execute("DELETE FROM redirects WHERE (language, title) IN (FROM loops)")
    several = "GROUP BY language, title HAVING count(DISTINCT target) > 1"
    return {
        "redirects": _count_rows(db, "FROM redirects"),
        "redirects to several articles": _count_rows(
            db, f"FROM (SELECT title FROM pages WHERE kind = 'redirect' {several})"
        ),
        "redirects to no article": _count_rows(db, "FROM loops"),
    }


def resolve_links(db: Database) -> dict[str, int]:
    """Replace ``links`` and ``shared`` by ``resolved``: links to articles, with redirects resolved.
    Others are counted."""
    db.execute(
        "CREATE TABLE followed AS SELECT l.language, coalesce(r.target, l.title) AS title, "
        "l.anchor, l.n, l.n_articles, r.target IS NOT NULL AS by_redirect, "
        "o.title IS NOT NULL AS in_loop "
        "FROM links l LEFT JOIN redirects r ON l.language = r.language AND l.title = r.title "
        "LEFT JOIN loops o ON l.language = o.language AND l.title = o.title"
    )
    ambiguous = "(language, title) IN (FROM disambiguations)"
    counts = {
        name: _value(db, f"SELECT sum(n) FROM followed{condition}")
        for name, condition in {
            "links": "",
            "links by a redirect": " WHERE by_redirect",
            "links by a redirect to no article": " WHERE in_loop",
            "links to a disambiguation": f" WHERE NOT in_loop AND {ambiguous}",
        }.items()
    }
    _drop(db, "links")
    # An article that links to a title by a text directly and by redirects was counted for each.
    db.execute(
        "CREATE TABLE repeated AS SELECT language, title, anchor, sum(surplus) AS surplus FROM ("
        "SELECT s.language, coalesce(r.target, s.title) AS title, s.anchor, "
        "(count(*) - 1) * any_value(s.n) AS surplus FROM (SELECT language, anchor, n, "
        "row_number() OVER () AS number, unnest(titles) AS title FROM shared) s "
        "LEFT JOIN redirects r ON s.language = r.language AND s.title = r.title "
        "GROUP BY s.number, s.language, coalesce(r.target, s.title), s.anchor"
        ") WHERE surplus > 0 GROUP BY language, title, anchor"
    )
    db.execute(
        "CREATE TABLE resolved AS SELECT f.language, f.title, f.anchor, f.n, "
        "(f.n_articles - coalesce(r.surplus, 0))::BIGINT AS n_articles FROM ("
        "SELECT language, title, anchor, sum(n)::BIGINT AS n, sum(n_articles) AS n_articles "
        f"FROM followed WHERE NOT in_loop AND NOT {ambiguous} GROUP BY ALL"
        ") f LEFT JOIN repeated r USING (language, title, anchor)"
    )
    _drop(db, "followed", "disambiguations", "shared", "repeated")
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
    _drop(db, "titles")
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
    n_unmatched = _count_rows(db, "FROM white_list ANTI JOIN listed USING (name)")
    _drop(db, "pages", "all_titles", "forms", "matched", "white_list")
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
    if not _count_rows(db, "FROM chosen"):
        reason = f"no entity has {settings.min_count} links (--min-count)"
        if not _count_rows(db, "FROM resolved"):
            reason = "no link leads to an article"
        raise CorpusError(f"The vocabulary would be empty: {reason}.")
    return {
        "white list: beyond --size": _count_rows(
            db, f"FROM ({listed}) WHERE item NOT IN {_CHOSEN}"
        ),
        "entities": _count_rows(db, "FROM chosen"),
        "entities left out": _count_rows(db, f"FROM counted WHERE item NOT IN {_CHOSEN}"),
        "links to an entity": int(_value(db, "SELECT sum(count) FROM chosen")),
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


def _drop(db: Database, *tables: str) -> None:
    """Drop tables that are not needed any longer, because they take memory and disk."""
    for table in tables:
        db.execute(f"DROP TABLE {table}")


def _count_rows(db: Database, source: str) -> int:
    return int(_value(db, f"SELECT count(*) {source}"))


def _value(db: Database, query: str) -> int:
    row = db.execute(query).fetchone()
    return int(row[0] or 0) if row else 0
