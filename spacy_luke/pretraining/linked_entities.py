"""Articles as entities of a knowledge base: redirects and anchors are their aliases, articles with
such links their counts, and first sentences their descriptions."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ..kb.entity import NIL, Entity, Findings
from .articles import STAGE
from .database import Database, database, rows_of
from .manifest import Manifest, read_manifest
from .resolved_links import follow_redirects, read_links, resolve_links
from .sentences import sentence_starts
from .tables import ARTICLES, NO_COLUMNS, literal

_LEAD = 600
"""Characters of an article in which its first sentence is searched for."""

_PHRASES = 200
"""Characters of a description in languages without marks at the ends of sentences."""

# An article that repeats a link says it once: so a new article is better predicted, and a linker
# that learns from these articles can leave each of them out of the counts (pipeline/leave_one_out).
# An article about "Mercury (planet)" is also called "Mercury"; Chinese and Japanese write no space.
_ALIASES = """
CREATE TABLE aliases AS SELECT title, alias, sum(n) AS n FROM (
    SELECT title, trim(anchor) AS alias, sum(n_articles) AS n FROM resolved GROUP BY ALL
    UNION ALL SELECT coalesce(r.target, n.target), n.title, 0 FROM names n
        LEFT JOIN redirects r ON n.target = r.title
    UNION ALL SELECT title, title, 0 FROM counted
    UNION ALL SELECT title,
        regexp_replace(title, '( \\([^()]+\\)| ?（[^（）]+）)$', ''), 0 FROM counted
    UNION ALL SELECT title,
        regexp_replace(title, '([\\p{Han}\\p{Hiragana}\\p{Katakana}ー])\\([^()]+\\)$', '\\1'), 0
        FROM counted
) WHERE title IN (SELECT title FROM counted) AND alias <> '' GROUP BY title, alias
"""
_ENTITIES = """
SELECT c.title, c.n, a.aliases, a.counts, l.lead FROM counted c
LEFT JOIN (
    SELECT title, list(alias ORDER BY n DESC, alias) AS aliases,
        list(n ORDER BY n DESC, alias) AS counts FROM aliases GROUP BY title
) a USING (title)
LEFT JOIN leads l USING (title)
ORDER BY c.n DESC, c.title
"""


def language_of(folder: Path) -> str:
    """The language of a folder of articles. Raises StageError if it is not one."""
    return str(read_manifest(folder, STAGE).settings["language"])


def read_articles(folder: Path, findings: Findings) -> Iterator[Entity]:
    """The articles of a folder of ``spacy luke articles``, and titles that they link to, the most
    linked first. The title is the id and the name.

    Raises StageError if the folder is incomplete or damaged.
    """
    manifest = read_manifest(folder, STAGE)
    manifest.verify()
    failure = f"The articles of {folder} cannot be read"
    with TemporaryDirectory() as spill, database(Path(spill), failure) as db:
        _join(db, manifest, findings)
        yield from _entities(db, str(manifest.settings["language"]), findings)


def _join(db: Database, manifest: Manifest, findings: Findings) -> None:
    read = read_links(db, [manifest], with_names=True)
    for counts in (read, follow_redirects(db), resolve_links(db)):
        for reason, n in counts.items():
            findings.add(reason, n=n)
    # Annotated documents have no titles of their own.
    is_dump = manifest.settings.get("source") != "docs"
    pages = f"SELECT title FROM pages WHERE kind = 'article' AND {is_dump}"
    db.execute(
        "CREATE TABLE counted AS SELECT title, coalesce(sum(r.n_articles), 0)::BIGINT AS n FROM "
        f"(({pages}) UNION SELECT title FROM resolved) t LEFT JOIN resolved r USING (title) "
        "GROUP BY title"
    )
    db.execute("DELETE FROM redirects WHERE target NOT IN (SELECT title FROM counted)")
    db.execute(_ALIASES)
    db.execute("DROP TABLE names")
    db.execute("CREATE TABLE leads (title VARCHAR, lead VARCHAR)")
    articles = [literal(x) for x in manifest.paths(ARTICLES.file)]
    if articles and is_dump:
        db.execute(
            # Of several records with one title the first.
            f"INSERT INTO leads SELECT title, arg_min(substr(text, 1, {_LEAD}), "
            "{file: filename, row: file_row_number}) FROM read_parquet(?, filename = true, "
            f"file_row_number = true, {NO_COLUMNS}) GROUP BY title",
            [articles],
        )


def _entities(db: Database, language: str, findings: Findings) -> Iterator[Entity]:
    for title, n, aliases, counts, lead in rows_of(db, _ENTITIES):
        if title == NIL:
            findings.add(f"articles left out because their title is {NIL}", title)
            continue
        paragraph = (lead or "").strip().partition("\n")[0]
        weights = dict(zip(aliases, map(float, counts)))
        yield Entity(title, title, weights, _description(paragraph, language), count=float(n))


def _description(paragraph: str, language: str) -> str:
    """The first sentence of a paragraph. In Thai and Lao, where phrases count as sentences, so many
    of them as have ``_PHRASES`` characters, and at least one."""
    _, *others = [*sentence_starts(paragraph, language), len(paragraph)]
    is_phrases = language.partition("-")[0] in ("th", "lo")
    end = max([x for x in others if x <= _PHRASES], default=others[0]) if is_phrases else others[0]
    return paragraph[:end].strip()
