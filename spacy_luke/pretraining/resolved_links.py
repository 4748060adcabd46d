"""The links of articles as tables of a database, with redirects resolved."""

from collections.abc import Sequence

from .database import Database, count_rows, drop_tables, value_of
from .manifest import Manifest
from .tables import ARTICLES, FROM_PARQUET, PAGES, literal

_DOUBLINGS = 6
"""How often the lengths of redirect chains are halved. Redirects that remain are loops."""
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
    return {"titles of several articles": count_rows(db, f"FROM (SELECT title {twice})")}


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
        "redirects": count_rows(db, "FROM redirects"),
        "redirects to several articles": count_rows(
            db, f"FROM (SELECT title FROM pages WHERE kind = 'redirect' {several})"
        ),
        "redirects to no article": count_rows(db, "FROM loops"),
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
        name: value_of(db, f"SELECT sum(n) FROM followed{condition}")
        for name, condition in {
            "links": "",
            "links by a redirect": " WHERE by_redirect",
            "links by a redirect to no article": " WHERE in_loop",
            "links to a disambiguation": f" WHERE NOT in_loop AND {ambiguous}",
        }.items()
    }
    drop_tables(db, "links")
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
    drop_tables(db, "followed", "disambiguations", "shared", "repeated")
    return counts
