"""Finished sets of articles, made from rows."""

from collections.abc import Sequence
from pathlib import Path

from spacy_luke.pretraining.engine import Engine
from spacy_luke.pretraining.manifest import Manifest
from spacy_luke.pretraining.stage import begin
from spacy_luke.pretraining.tables import ARTICLES, PAGES

Links = Sequence[tuple[str, str]]
"""(anchor, target) in text order; an anchor is searched for from where the last one ended."""


def article(page_id: int, title: str, text: str, links: Links) -> tuple:
    starts, ends, at = [], [], 0
    for anchor, _ in links:
        start = text.index(anchor, at)
        at = start + len(anchor)
        starts.append(start)
        ends.append(at)
    return page_id, title, text, starts, ends, [x for _, x in links], [x for x, _ in links]


def _write(rows: tuple[list, list], folder: Path) -> dict[str, int]:
    articles, others = rows
    pages = [*((row[1], "article", None) for row in articles), *others]
    for table, found in ((PAGES, pages), (ARTICLES, articles)):
        with table.writer(folder) as writer:
            for row in found:
                writer.add(row)
    return {"articles": len(articles)}


def make_articles(
    folder: Path, *parts: tuple[list, list], language: str = "en", name: str = "articles"
) -> Manifest:
    """A finished stage. Each part: rows of ``article``, and (title, kind, target) of others."""
    with begin(name, folder, {"language": language}, {}, len(parts)) as stage:
        return stage.run(parts, _write, Engine(workers=1), show_progress=False)
