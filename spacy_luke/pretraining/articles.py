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

from ..errors import ConfigError, CorpusError
from ..vocab.entity_vocab import SPECIALS
from .disk import write_json
from .engine import Engine
from .manifest import Manifest, files_of_input
from .stage import Stage, begin
from .tables import ARTICLES, PAGES, TableWriter
from .wiki.export import PARTITION_SIZE, Page, Partition, partitions, read_pages
from .wiki.languages import DISAMBIGUATION_TEMPLATES
from .wiki.links import resolve
from .wiki.markup import Parsed, parse
from .wiki.pages import disambiguation_templates, is_disambiguation
from .wiki.sites import Site

STAGE, TEMPLATES = "articles", "templates"
_NAMES = "templates.json"
_NO_ENTITY = ("", "NIL")
"""``kb_id_`` of an entity that is linked to nothing; the second is that of ``entity_linker``."""


def read_dump(
    paths: Sequence[Path],
    folder: Path,
    engine: Engine,
    language: str = "",
    partition_size: int = PARTITION_SIZE,
    show_progress: bool = True,
) -> Manifest:
    """Articles of a MediaWiki export, one file or several.

    language: by default what the export says. Pages of other namespaces, and pages that are no
    wikitext, are counted. Raises CorpusError for a file that is no export, or breaks off.
    """
    if partition_size < 1:
        raise ConfigError(f"--partition-size is {partition_size}; use 1 byte or more.")
    paths = [path.absolute() for path in paths]  # workers may be elsewhere
    parts = partitions(paths, partition_size)
    if not parts:
        raise CorpusError(f"There is no export among {', '.join(map(str, paths)) or 'no files'}.")
    found = sorted({part.site.language for part in parts})
    if not language and len(found) > 1:
        names = ", ".join(name or "one unsaid" for name in found)
        raise CorpusError(
            f"The exports are in several languages ({names}): read each into a folder of its own, "
            "or name one with --language."
        )
    language = language or found[0]
    if not language:
        raise ConfigError(f"{parts[0].path} does not say its language; name it with --language.")
    _check_language(language)
    settings = {"language": language, "source": "dump", "partition_size": partition_size}
    read = {part.path for part in parts}
    inputs = files_of_input([path for path in paths if path in read])  # an index is none
    with begin(STAGE, folder, settings, inputs, len(parts)) as stage:
        templates = _templates(stage, parts, engine, show_progress)
        work = partial(_read_partition, templates=templates)
        return stage.run(parts, work, engine, show_progress)


def _templates(
    articles: Stage, parts: Sequence[Partition], engine: Engine, show_progress: bool
) -> frozenset[str]:
    """Names of the templates that mark disambiguation pages: those of all wikis, and what the dump
    says of its own, wherever in it they stand."""
    folder = articles.folder / f".{TEMPLATES}"
    with begin(TEMPLATES, folder, articles.settings, articles.inputs, len(parts)) as stage:
        found = stage.run(parts, _read_templates, engine, show_progress)
    listed = (srsly.read_json(path) for path in found.paths(_NAMES))
    return DISAMBIGUATION_TEMPLATES.union(*listed)


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
    """Articles of annotated documents (``.spacy`` files): entities with a ``kb_id_`` are the links,
    and what they link to is that id, underscores being spaces, as in titles. Ids that no vocabulary
    can hold are dropped and counted."""
    if not language:
        raise ConfigError("Annotated documents do not say their language; name it with --language.")
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
    """The article that a redirect leads to; None where it leads to something else."""
    return resolve(page.redirect, site).title or None if page.redirect is not None else None


def _counts(parsed: Parsed, page: Page) -> Mapping[str, int]:
    return {
        "links": len(parsed.links),
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
    """Why an entity is no link, or nothing."""
    if ent.kb_id_.replace("_", " ").strip() in _NO_ENTITY:
        return "entity without kb_id"
    if any(character in ent.kb_id_ for character in "\t\n\r"):
        return "kb_id with a tab or a line break"
    return "kb_id of a special entity" if ent.kb_id_ in SPECIALS else ""


def _docs(path: Path) -> Iterator[Doc]:
    try:
        yield from DocBin().from_disk(path).get_docs(Vocab())
    except (OSError, ValueError, TypeError, KeyError) as error:  # the last two: of something else
        raise CorpusError(f"{path} cannot be read as annotated documents: {error}") from error
