"""Wiki dumps, or annotated documents, to articles: text with links."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import srsly
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from ..annotations.mentions import UNLINKED
from ..errors import ConfigError, CorpusError
from ..vocab.entity_vocab import SPECIALS
from .disk import write_json
from .engine import Engine
from .manifest import Manifest, files_of_input
from .stage import Stage, begin
from .tables import ARTICLES, CATEGORIES, FACTS, PAGES, TableWriter
from .wiki.export import PARTITION_SIZE, Page, Partition, partitions, read_pages
from .wiki.languages import DISAMBIGUATION_TEMPLATES
from .wiki.links import resolve
from .wiki.markup import Parsed, parse
from .wiki.pages import disambiguation_templates, is_disambiguation
from .wiki.sites import Site

STAGE, TEMPLATES = "articles", "templates"
_NAMES = "templates.json"


def read_dump(
    paths: Sequence[Path],
    folder: Path,
    engine: Engine,
    language: str = "",
    partition_size: int = PARTITION_SIZE,
    show_progress: bool = True,
) -> Manifest:
    """Read the articles of a MediaWiki export of one or several files.

    language: defaults to that of the export. Pages of other namespaces, and pages that are not
    wikitext, are only counted. Raises CorpusError if a file is truncated or not an export.
    """
    if partition_size < 1:
        raise ConfigError(f"--partition-size is {partition_size}; use 1 byte or more.")
    paths = [path.absolute() for path in paths]  # workers may run in another folder
    parts = partitions(paths, partition_size)
    if not parts:
        raise CorpusError(
            f"None of these files is an export: {', '.join(map(str, paths)) or 'no files given'}."
        )
    languages = sorted({part.site.language for part in parts})
    if not language and len(languages) > 1:
        names = ", ".join(name or "unknown" for name in languages)
        raise CorpusError(
            f"The exports are in several languages ({names}): read each into its own folder, or "
            "set --language."
        )
    language = language or languages[0]
    if not language:
        raise ConfigError(f"{parts[0].path} does not contain its language; set --language.")
    _check_language(language)
    settings = {"language": language, "source": "dump", "partition_size": partition_size}
    read = {part.path for part in parts}
    inputs = files_of_input([path for path in paths if path in read])  # index files are not read
    with begin(STAGE, folder, settings, inputs, len(parts)) as stage:
        templates = _templates(stage, parts, engine, show_progress)
        work = partial(_read_partition, templates=templates)
        return stage.run(parts, work, engine, show_progress)


def _templates(
    articles: Stage, parts: Sequence[Partition], engine: Engine, show_progress: bool
) -> frozenset[str]:
    """Names of the templates of disambiguation pages: a fixed list, and those found in the dump."""
    folder = articles.folder / f".{TEMPLATES}"
    with begin(TEMPLATES, folder, articles.settings, articles.inputs, len(parts)) as stage:
        manifest = stage.run(parts, _read_templates, engine, show_progress)
    names = (srsly.read_json(path) for path in manifest.paths(_NAMES))
    return DISAMBIGUATION_TEMPLATES.union(*names)


def _read_templates(partition: Partition, folder: Path) -> dict[str, int]:
    names = sorted(disambiguation_templates(read_pages(partition)))
    write_json(folder / _NAMES, names)
    return {"disambiguation templates": len(names)}


def read_docs(
    paths: Sequence[Path],
    folder: Path,
    engine: Engine,
    language: str,
    show_progress: bool = True,
) -> Manifest:
    """Read annotated documents (``.spacy`` files) as articles. Entities with a ``kb_id_`` are links
    to that id; underscores become spaces, as in titles. Ids that are invalid in vocabularies are
    dropped and counted."""
    if not language:
        raise ConfigError("Annotated documents do not contain their language; set --language.")
    _check_language(language)
    paths = [path.absolute() for path in paths]
    settings = {"language": language, "source": "docs"}
    with begin(STAGE, folder, settings, files_of_input(paths), len(paths)) as stage:
        return stage.run(paths, _read_docbin, engine, show_progress)


def _check_language(language: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+([-_][a-z0-9]+)*", language, re.IGNORECASE):
        raise ConfigError(f"The language is {language!r}; use a code such as en or zh-yue.")


def _read_partition(
    partition: Partition, folder: Path, templates: frozenset[str]
) -> dict[str, int]:
    counts: Counter[str] = Counter()
    with (
        TableWriter(folder / "pages.parquet", PAGES) as pages,
        TableWriter(folder / "articles.parquet", ARTICLES) as articles,
        TableWriter(folder / "facts.parquet", FACTS) as facts,
        TableWriter(folder / "categories.parquet", CATEGORIES) as categories,
    ):
        for page in read_pages(partition, counts):
            counts["pages"] += 1
            kind = _kind(page, templates)
            counts[kind] += 1
            if kind in ("article", "redirect", "disambiguation"):
                pages.add((page.title, kind, _redirect_target(page, partition.site)))
            if kind == "article":
                parsed = parse(page.text, partition.site)
                counts.update(_counts(parsed, page))
                for fact in parsed.facts:
                    facts.add((page.page_id, page.title, *fact))
                for category in parsed.categories:
                    categories.add((page.page_id, page.title, category))
                if parsed.text:
                    articles.add(_row(page.page_id, page.title, parsed))
                else:
                    counts["article without text"] += 1
    return dict(counts)


def _kind(page: Page, templates: set[str] | frozenset[str]) -> str:
    if page.namespace != 0:
        return "page of another namespace"
    if page.model != "wikitext":
        return "page that is no wikitext"
    if page.redirect is not None:
        return "redirect"
    return "disambiguation" if is_disambiguation(page, templates) else "article"


def _redirect_target(page: Page, site: Site) -> str | None:
    """The article that a redirect points to; None if it points to another kind of page."""
    return resolve(page.redirect, site).title or None if page.redirect is not None else None


def _counts(parsed: Parsed, page: Page) -> Mapping[str, int]:
    return {
        "links": len(parsed.links),
        "facts": len(parsed.facts),
        "categories": len(parsed.categories),
        "characters": len(parsed.text),
        "characters of markup": len(page.text),
        **{f"dropped: {reason}": n for reason, n in parsed.dropped.items()},
    }


def _row(page_id: int, title: str, parsed: Parsed) -> tuple[Any, ...]:
    links = parsed.links
    anchors = [parsed.text[link.start : link.end] for link in links]
    return (
        page_id,
        title,
        parsed.text,
        [link.start for link in links],
        [link.end for link in links],
        [link.target for link in links],
        anchors,
    )


def _read_docbin(path: Path, folder: Path) -> dict[str, int]:
    counts: Counter[str] = Counter()
    with (
        TableWriter(folder / "pages.parquet", PAGES) as pages,
        TableWriter(folder / "articles.parquet", ARTICLES) as articles,
    ):
        for i, doc in enumerate(_docs(path)):
            title = f"{path.stem} {i}"
            linked = []
            for ent in doc.ents:
                if reason := _unusable(ent):
                    counts[f"dropped: {reason}"] += 1
                else:
                    linked.append(ent)
            counts.update({"pages": 1, "article": 1, "links": len(linked)})
            counts["characters"] += len(doc.text)
            pages.add((title, "article", None))
            articles.add(
                (
                    i,
                    title,
                    doc.text,
                    [ent.start_char for ent in linked],
                    [ent.end_char for ent in linked],
                    [ent.kb_id_.replace("_", " ") for ent in linked],
                    [ent.text for ent in linked],
                )
            )
    return dict(+counts)


def _unusable(ent: Span) -> str:
    """Why an entity cannot be a link; empty if it can."""
    if ent.kb_id_.replace("_", " ").strip() in UNLINKED:
        return "entity without kb_id"
    if any(character in ent.kb_id_ for character in "\t\n\r"):
        return "kb_id with a tab or a line break"
    return "kb_id of a special entity" if ent.kb_id_ in SPECIALS else ""


def _docs(path: Path) -> Iterator[Doc]:
    try:
        yield from DocBin().from_disk(path).get_docs(Vocab())
    except (OSError, ValueError, TypeError, KeyError) as error:  # the last two: not a DocBin
        raise CorpusError(f"{path} cannot be read as annotated documents: {error}") from error
