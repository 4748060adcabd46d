"""Articles as annotated documents: their links become entities with ids."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
from spacy.language import Language
from spacy.tokens import Doc

from ..corpora.annotation_writer import MENTION, AnnotationWriter, ParsedDoc
from ..corpora.characters import CharSpan, align_spans, make_text_doc
from ..corpora.checks import errors_at
from ..corpora.conversion_report import Report
from ..corpora.lines import Advance, ignore_progress
from ..corpora.options import ConvertOptions
from ..errors import StageError
from ..kb.entity import NIL
from .article_files import read_articles
from .articles import STAGE
from .database import database
from .manifest import Manifest, read_manifest
from .resolved_links import follow_redirects, read_links
from .tables import ARTICLES

# Pages that the export lacks are entities, too, as in an entity vocabulary.
_TARGETS = """
SELECT l.title, coalesce(r.target, l.title), CASE
    WHEN o.title IS NOT NULL THEN 'by redirects to no article'
    WHEN d.title IS NOT NULL THEN 'to a disambiguation page'
    ELSE '' END
FROM (SELECT DISTINCT language, title FROM links) l
LEFT JOIN redirects r ON l.language = r.language AND l.title = r.title
LEFT JOIN loops o ON l.language = o.language AND l.title = o.title
LEFT JOIN disambiguations d
    ON l.language = d.language AND d.title = coalesce(r.target, l.title)
"""


class Target(NamedTuple):
    """Where links to a title lead: the title of an article, or else the problem."""

    title: str
    problem: str


def read_article_docs(
    path: Path,
    nlp: Language,
    options: ConvertOptions,
    report: Report,
    advance: Advance = ignore_progress,
) -> Iterator[Doc]:
    """Yield one document per article of a folder of ``spacy luke articles`` that has links.

    A link becomes an entity ``MENTION`` whose ``kb_id_`` is the title of the article that it leads
    to, with redirects resolved as for an entity vocabulary. Links to disambiguation pages, and by
    redirects to no article, are left out. All other tokens have missing entity annotation, because
    articles link only some of their mentions. ``Doc.user_data["title"]`` is the title.
    ``alignment`` defaults to ``split``.

    Raises StageError if the folder is incomplete or damaged.
    """
    manifest = read_manifest(path, STAGE)
    manifest.verify()
    try:
        targets = _resolve(manifest)
        writer = AnnotationWriter(options.spans_key, report)
        for file in manifest.paths(ARTICLES.file):
            for row in read_articles(file):
                location = f"article {row['title']!r}"
                spans = _spans(row, targets, location, report)
                if not spans:
                    report.count("articles without links, left out", location)
                elif len(row["text"]) > nlp.max_length:
                    report.count("articles longer than nlp.max_length, left out", location)
                else:
                    with errors_at(f"{path}, {location}"):
                        parsed = _parse(nlp, row, spans, options, report)
                    yield writer.write(parsed, location)
            advance(file.stat().st_size)
        writer.finish()
    except pa.ArrowException as error:
        reason = str(error).partition("\n")[0]
        raise StageError(f"The articles of {path} cannot be read: {reason}.") from error


def _resolve(manifest: Manifest) -> dict[str, Target]:
    """Linked title -> where its redirects lead."""
    failure = f"The articles of {manifest.folder} cannot be read"
    with TemporaryDirectory() as spill, database(Path(spill), failure) as db:
        read_links(db, [manifest])
        follow_redirects(db)
        rows = db.execute(_TARGETS).fetchall()
    targets = {linked: Target(title, problem) for linked, title, problem in rows}
    for linked, target in targets.items():
        if target.title == NIL and not target.problem:
            targets[linked] = Target(NIL, f"to an article called {NIL}")
    return targets


def _spans(
    row: dict[str, Any], targets: dict[str, Target], location: str, report: Report
) -> list[CharSpan]:
    """The links of an article that lead to one; others are counted."""
    spans = []
    for start, end, linked in zip(row["link_starts"], row["link_ends"], row["link_targets"]):
        target = targets[linked]
        if target.problem:
            report.count(f"links left out: {target.problem}", location)
        else:
            spans.append(CharSpan(start, end, MENTION, target.title))
    return spans


def _parse(
    nlp: Language,
    row: dict[str, Any],
    spans: list[CharSpan],
    options: ConvertOptions,
    report: Report,
) -> ParsedDoc:
    location = f"article {row['title']!r}"
    doc = make_text_doc(nlp, row["text"])
    placed = align_spans(doc, spans, options.alignment_or("split"), report, location)
    placed.doc.user_data["title"] = row["title"]
    return ParsedDoc(placed.doc, list(placed.spans.values()), set(range(len(placed.doc))))
