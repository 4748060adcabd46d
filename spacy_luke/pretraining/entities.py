"""Links to an entity vocabulary: counted over all articles, redirects followed.

The joins are DuckDB's, with bounded memory and a folder to spill to: a Python dictionary of all
titles does not scale.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import srsly

from ..corpora.lines import read_lines
from ..errors import ConfigError, CorpusError, StageError
from ..vocab.entity_vocab import SPECIALS
from .disk import fingerprint
from .engine import Engine
from .manifest import Manifest, by_input
from .stage import begin
from .tables import ANCHORS, FROM_PARQUET, NO_COLUMNS, TARGETS, literal, write_table

STAGE = "entities"
_DOUBLINGS = 6
"""Chains of redirects are shortened by half this often; what is still a redirect then is a loop."""
_CHOSEN = "(SELECT item FROM chosen)"


@dataclass(frozen=True)
class VocabSettings:
    """Which entities make the vocabulary.

    size: at most this many, without the special ones, the most linked first. min_count: links an
    entity needs. white_list: a file of titles or redirects (or ``lang:title``), one a line, that
    are in whatever their count, also where nothing links to them. sitelinks: of several languages,
    a table (Parquet, CSV or JSON lines) of item, language and title, which says what is the same
    entity. memory: DuckDB's limit.
    """

    size: int = 500_000
    min_count: int = 1
    white_list: Path | None = None
    sitelinks: Path | None = None
    memory: str = "4GB"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"--size is {self.size}; a vocabulary needs at least one entity.")
        if self.min_count < 0:
            raise ConfigError(f"--min-count is {self.min_count}; use 0 or more.")


def build_vocabulary(
    articles: Sequence[Manifest],
    folder: Path,
    settings: VocabSettings,
    show_progress: bool = True,
) -> Manifest:
    """Count the links of one or several sets of articles, and choose the entities.

    Writes ``entity_vocab.tsv`` (title and count, the line being the id) or, with sitelinks,
    ``entity_vocab.jsonl`` (names by language), ``targets.parquet`` (every title that
    leads to an entity) and ``anchors.parquet``. Raises ConfigError and CorpusError.
    """
    sources = by_input(articles)
    languages = list(dict.fromkeys(str(x.settings["language"]) for x in articles))
    if len(languages) > 1 and settings.sitelinks is None:
        raise ConfigError(
            "Articles of several languages need --sitelinks, to know what is the same."
        )
    files = {"white_list": settings.white_list, "sitelinks": settings.sitelinks}
    chosen = {k: v for k, v in asdict(settings).items() if k not in (*files, "memory")}
    inputs = {name: manifest.fingerprint for name, manifest in sources.items()}
    inputs.update({name: fingerprint(path) for name, path in files.items() if path})
    work = partial(_build_or_say_why, settings=settings)
    with begin(STAGE, folder, {**chosen, "languages": languages}, inputs) as stage:
        return stage.run([list(articles)], work, Engine(workers=1), show_progress)


def _build_or_say_why(
    sources: Sequence[Manifest], folder: Path, settings: VocabSettings
) -> dict[str, int]:
    for manifest in sources:
        manifest.verify()
    try:
        return _build(sources, folder, settings)
    except duckdb.Error as error:
        places = ", ".join(str(manifest.folder) for manifest in sources)
        reason = str(error).partition("\n")[0]  # what follows are settings of DuckDB
        raise StageError(
            f"The links of {places} cannot be counted: {reason}. Where memory or disk is short, "
            "give --memory or make room."
        ) from error


def _build(sources: Sequence[Manifest], folder: Path, settings: VocabSettings) -> dict[str, int]:
    spill = folder / "spill"
    with duckdb.connect() as db:
        db.execute(f"SET memory_limit = '{settings.memory}'")
        db.execute(f"SET temp_directory = '{_quote(str(spill))}'")
        db.execute("SET preserve_insertion_order = false")
        _read(db, sources)
        counts = _follow_redirects(db)
        counts.update(_resolve(db))
        counts.update(_read_white_list(db, settings.white_list))
        counts.update(_count(db, settings))
        counts.update(_choose(db, settings))
        _write(db, folder, several=settings.sitelinks is not None)
    for path in spill.glob("*"):
        path.unlink()
    if spill.exists():
        spill.rmdir()
    return counts


def _read(db: duckdb.DuckDBPyConnection, sources: Sequence[Manifest]) -> None:
    db.execute("CREATE TABLE pages (language VARCHAR, title VARCHAR, kind VARCHAR, target VARCHAR)")
    db.execute("CREATE TABLE links (language VARCHAR, title VARCHAR, anchor VARCHAR)")
    for manifest in sources:
        language = str(manifest.settings["language"])
        pages = [literal(x) for x in manifest.paths("pages.parquet")]
        articles = [literal(x) for x in manifest.paths("articles.parquet")]
        if pages:
            db.execute(
                f"INSERT INTO pages SELECT ?, title, kind, target {FROM_PARQUET}",
                [language, pages],
            )
        if articles:
            db.execute(
                "INSERT INTO links SELECT ?, unnest(link_targets), unnest(link_anchors) "
                f"{FROM_PARQUET}",
                [language, articles],
            )
    # Of several sets of a language: what is an article in one is nothing else in another.
    db.execute(
        "DELETE FROM pages WHERE kind <> 'article' AND (language, title) IN "
        "(SELECT (language, title) FROM pages WHERE kind = 'article')"
    )


def _follow_redirects(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """``redirects``: every redirect's last target. Those that lead to no article (loops, one that
    leads to itself, to a category or to such a one) are removed, and counted: ``loops``."""
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
    return {
        "redirects": _one(db, "FROM redirects"),
        "redirects to no article": _one(db, "FROM loops"),
    }


def _resolve(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """``resolved``: links with redirects followed, those to no entity left out and counted."""
    db.execute(
        "CREATE TABLE disambiguations AS SELECT DISTINCT language, title FROM pages "
        "WHERE kind = 'disambiguation'"
    )
    db.execute(
        "CREATE TABLE followed AS SELECT l.language, coalesce(r.target, l.title) AS title, "
        "l.anchor, r.target IS NOT NULL AS by_redirect, o.title IS NOT NULL AS in_loop FROM links "
        "l LEFT JOIN redirects r ON l.language = r.language AND l.title = r.title "
        "LEFT JOIN loops o ON l.language = o.language AND l.title = o.title"
    )
    ambiguous = "(language, title) IN (FROM disambiguations)"
    counts = {
        "links": _one(db, "FROM links"),
        "links by a redirect": _one(db, "FROM followed WHERE by_redirect"),
        "links by a redirect to no article": _one(db, "FROM followed WHERE in_loop"),
        "links to a disambiguation": _one(db, f"FROM followed WHERE NOT in_loop AND {ambiguous}"),
    }
    db.execute(
        "CREATE TABLE resolved AS SELECT language, title, anchor FROM followed "
        f"WHERE NOT in_loop AND NOT {ambiguous}"
    )
    return counts


def _count(db: duckdb.DuckDBPyConnection, settings: VocabSettings) -> dict[str, int]:
    """``counted``: links of every entity; ``named``: its names. An entity is a title, or with
    sitelinks an item; a title of no item stands for itself."""
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
    db.execute(
        "CREATE TABLE counted AS SELECT item, count(r.title) AS count FROM named n "
        "LEFT JOIN resolved r USING (language, title) GROUP BY item"
    )
    return counts


def _read_white_list(db: duckdb.DuckDBPyConnection, path: Path | None) -> dict[str, int]:
    """``listed``: the articles that the white list names, redirects followed."""
    db.execute("CREATE TABLE wanted (name VARCHAR)")
    lines = [line.strip() for _, line in read_lines(path)] if path else []
    names = [(line.replace("_", " "),) for line in lines if line]
    if names:
        db.executemany("INSERT INTO wanted VALUES (?)", names)
    db.execute(
        "CREATE TABLE known AS SELECT language, title FROM pages WHERE kind <> 'disambiguation' "
        "UNION SELECT language, title FROM resolved"
    )
    db.execute(
        "CREATE TABLE found AS SELECT name, language, title FROM wanted JOIN known ON name = title "
        "UNION SELECT name, language, title FROM wanted JOIN known "
        "ON name = language || ':' || title"
    )
    db.execute(
        "CREATE TABLE listed AS SELECT DISTINCT language, coalesce(r.target, f.title) AS title "
        "FROM found f LEFT JOIN redirects r USING (language, title) "
        "WHERE (language, f.title) NOT IN (FROM loops)"
    )
    return {"white list: not found": _one(db, "FROM wanted ANTI JOIN found USING (name)")}


def _read_sitelinks(db: duckdb.DuckDBPyConnection, path: Path) -> dict[str, int]:
    """``items``: item, language and title. A language may be called by its wiki (``dewiki``), and
    titles have underscores, as in the wikis' own tables. What an item calls by a redirect is the
    article there, and that article's own item goes before."""
    try:
        rows = db.execute(f"DESCRIBE FROM {_table(path)}").fetchall()
        missing = {"item", "language", "title"} - {name.lower() for name, *_ in rows}
        if missing:
            raise CorpusError(
                f"{path} has no column {', '.join(sorted(missing))}; it has "
                f"{', '.join(name for name, *_ in rows)}."
            )
        # As the wikis store text.
        blobs = {name.lower() for name, kind, *_ in rows if kind == "BLOB"}
        item, language, title = (
            f"decode({x})" if x in blobs else f"CAST({x} AS VARCHAR)"
            for x in ("item", "language", "title")
        )
        db.execute(
            f"CREATE TABLE items AS WITH s AS (SELECT {item} AS item, "
            f"replace({title}, '_', ' ') AS title, "
            f"replace(regexp_replace({language}, 'wiki$', ''), '_', '-') AS language "
            f"FROM {_table(path)} WHERE item IS NOT NULL AND title IS NOT NULL) "
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
    for name, linked, found in by_language.fetchall():
        if not found:
            raise CorpusError(
                f"{path} has none of the {linked} titles that articles in {name} link to. Its "
                f"languages have to be called as the articles are ({name}, or {name}wiki), and its "
                "titles as in the wiki."
            )
        counts[f"titles in sitelinks, {name}"] = found
        counts[f"titles not in sitelinks, {name}"] = linked - found
    return counts


def _table(path: Path) -> str:
    """A file as a table whose values are not guessed at: 007 and 2001-01-01 are titles."""
    quoted = _quote(literal(path))
    if {".csv", ".tsv"} & set(path.suffixes):
        return f"read_csv('{quoted}', all_varchar = true, {NO_COLUMNS})"
    if {".json", ".jsonl", ".ndjson"} & set(path.suffixes):
        columns = ", ".join(f"{x}: 'VARCHAR'" for x in ("item", "language", "title"))
        return f"read_json('{quoted}', columns = {{{columns}}}, {NO_COLUMNS})"
    return f"read_parquet('{quoted}', {NO_COLUMNS})"


def _choose(db: duckdb.DuckDBPyConnection, settings: VocabSettings) -> dict[str, int]:
    """``chosen``: the entities with their ids, by count and then by name."""
    listed = "SELECT DISTINCT item FROM named SEMI JOIN listed USING (language, title)"
    db.execute(
        f"CREATE TABLE chosen AS SELECT item, count, {len(SPECIALS)} - 1 + row_number() OVER "
        "(ORDER BY count DESC, item) AS id FROM (SELECT item, count FROM counted WHERE "
        f"count >= {settings.min_count} OR item IN ({listed}) "
        f"ORDER BY item IN ({listed}) DESC, count DESC, item LIMIT {settings.size})"
    )
    if not _one(db, "FROM chosen"):
        found = f"no entity is linked {settings.min_count} times (--min-count)"
        if not _one(db, "FROM resolved"):
            found = "none links to an article"
        raise CorpusError(f"Of these articles {found}: the vocabulary would be empty.")
    return {
        "white list: beyond --size": _one(db, f"FROM ({listed}) WHERE item NOT IN {_CHOSEN}"),
        "entities": _one(db, "FROM chosen"),
        "entities left out": _one(db, f"FROM counted WHERE item NOT IN {_CHOSEN}"),
        "links to an entity": int(_value(db, "SELECT sum(count) FROM chosen")),
    }


def _write(db: duckdb.DuckDBPyConnection, folder: Path, several: bool) -> None:
    if several:
        rows = _rows(
            db,
            "SELECT id, count, list([title, language] ORDER BY language, title) FROM chosen "
            "JOIN named USING (item) GROUP BY ALL ORDER BY id",
        )
        first = [
            {"id": i, "entities": [[name, "en"]], "count": 0} for i, name in enumerate(SPECIALS)
        ]
        rest = ({"id": i, "entities": names, "count": count} for i, count, names in rows)
        srsly.write_jsonl(folder / "entity_vocab.jsonl", chain(first, rest))
    else:
        with (folder / "entity_vocab.tsv").open("w", encoding="utf8", newline="\n") as file:
            file.writelines(f"{name}\t0\n" for name in SPECIALS)
            for item, count in _rows(db, "SELECT item, count FROM chosen ORDER BY id"):
                file.write(f"{item}\t{count}\n")
    direct = "SELECT language, title, CAST(id AS INTEGER) AS id FROM named JOIN chosen USING (item)"
    by_redirect = (
        f"SELECT r.language, r.title, d.id FROM redirects r JOIN ({direct}) d "
        "ON r.language = d.language AND r.target = d.title"
    )
    _copy(
        db,
        f"{direct} UNION {by_redirect} ORDER BY language, title",
        folder / "targets.parquet",
        TARGETS,
    )
    _copy(
        db,
        "SELECT language, anchor, title, count(*) AS count FROM resolved GROUP BY ALL "
        "ORDER BY language, anchor, count DESC, title",
        folder / "anchors.parquet",
        ANCHORS,
    )


def _copy(db: duckdb.DuckDBPyConnection, query: str, path: Path, schema: pa.Schema) -> None:
    write_table(path, schema, pa.RecordBatchReader.from_stream(db.sql(query)))


def _rows(db: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, some at a time."""
    result = db.execute(query)
    while rows := result.fetchmany(10_000):
        yield from rows


def _one(db: duckdb.DuckDBPyConnection, source: str) -> int:
    return int(_value(db, f"SELECT count(*) {source}"))


def _value(db: duckdb.DuckDBPyConnection, query: str) -> int:
    row = db.execute(query).fetchone()
    return int(row[0] or 0) if row else 0


def _quote(text: str) -> str:
    return text.replace("'", "''")
