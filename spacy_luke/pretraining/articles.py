"""Wiki dumps, or annotated documents, to articles: text with links."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from ..annotations.mentions import UNLINKED
from ..errors import ConfigError, CorpusError
from ..files import remove_folder
from ..report import LOGGER
from ..vocab.entity_vocab import SPECIALS
from .article_checks import tell_several_wikis, tell_unknown_prefixes
from .dump_pages import PageTable, hidden_folders, read_page_tables
from .dump_settings import markup_settings, site_of
from .engine import Engine
from .manifest import Manifest, files_of_input, read_manifest
from .settings import DumpSettings, language_code
from .stage import begin
from .tables import ARTICLES, CATEGORIES, EXCLUDED, FACTS, LEFT_OUT, PAGES
from .wiki.export import Page, Partition, partitions
from .wiki.links import resolve
from .wiki.markup import MarkupSettings, Parsed, parse
from .wiki.pages import disambiguation_mark
from .wiki.sites import MAIN, Site
from .wiki.templates import template_key

STAGE = "articles"


def read_dump(
    paths: Sequence[Path],
    folder: Path,
    engine: Engine,
    settings: DumpSettings | None = None,
    show_progress: bool = True,
) -> Manifest:
    """Read the articles of a MediaWiki export of one or several files.

    Pages of other namespaces, repeated ones, and pages that are not wikitext are left out, counted
    and listed in ``excluded.parquet``. Raises CorpusError if a file is truncated or not an export.
    """
    settings = DumpSettings() if settings is None else settings
    paths = without_twins([path.absolute() for path in paths])  # workers may run in another folder
    parts = partitions(paths, settings.partition_size, settings.incomplete)
    if not parts:
        raise CorpusError(
            f"None of these files is an export: {', '.join(map(str, paths)) or 'no files given'}."
        )
    language = language_code(settings.language or _language(parts))
    tell_several_wikis(parts)
    parts = [replace(part, site=site_of(part.site, language, settings)) for part in parts]
    recorded = {**asdict(settings), "language": language, "source": "dump"}
    read = {part.path for part in parts}
    inputs = files_of_input([path for path in paths if path in read])  # index files are not read
    markup = markup_settings(settings, [part.site for part in parts])
    with begin(STAGE, folder, recorded, inputs, len(parts)) as stage:
        if not stage.finished:
            tables, skipped = read_page_tables(stage, parts, engine, show_progress)
            work = partial(_read_partition, settings=markup)
            stage.run(tables, work, engine, show_progress, more=skipped)
        for hidden in hidden_folders(stage):
            remove_folder(hidden)
    manifest = read_manifest(folder, STAGE)
    unused = [name for name in markup.templates if not manifest.counts.get(_with_template(name))]
    if unused:
        LOGGER.warning("--templates: no article has text of %s.", ", ".join(unused))
    if not any(part.site.is_wikimedia for part in parts):  # their prefixes are known
        tell_unknown_prefixes(manifest, {x for part in parts for x in part.site.prefixes})
    return manifest


def without_twins(paths: Sequence[Path]) -> list[Path]:
    """Dumps are published twice, plain and multistream: leave out the plain one of two."""
    names = {path: path.with_name(path.name.replace("-multistream", "", 1)) for path in paths}
    twins = {names[path] for path in paths if names[path] != path} & set(paths)
    for path in sorted(twins):
        LOGGER.warning("%s is not read: its multistream file has the same pages.", path)
    return [path for path in paths if path not in twins]


def _language(parts: Sequence[Partition]) -> str:
    languages = sorted({part.site.language for part in parts})
    if len(languages) > 1:
        names = ", ".join(name or "unknown" for name in languages)
        raise CorpusError(
            f"The exports are in several languages ({names}): read each into its own folder, or "
            "set --lang."
        )
    if not languages[0]:
        raise ConfigError(f"{parts[0].path} does not contain its language; set --lang.")
    return languages[0]


def read_docs(
    paths: Sequence[Path],
    folder: Path,
    engine: Engine,
    language: str,
    show_progress: bool = True,
) -> Manifest:
    """Read annotated documents (``.spacy`` files) as articles. Entities with a ``kb_id_`` are links
    to that id. Ids that are invalid in vocabularies are dropped and counted."""
    if not language:
        raise ConfigError("Annotated documents do not contain their language; set --lang.")
    language = language_code(language)
    paths = [path.absolute() for path in paths]
    settings = {"language": language, "source": "docs"}
    with begin(STAGE, folder, settings, files_of_input(paths), len(paths)) as stage:
        return stage.run(paths, _read_docbin, engine, show_progress)


def _read_partition(partition: PageTable, folder: Path, settings: MarkupSettings) -> dict[str, int]:
    counts: Counter[str] = Counter()
    left_out: dict[str, list[int]] = {}
    site = partition.site
    with (
        PAGES.writer(folder) as pages,
        ARTICLES.writer(folder) as articles,
        FACTS.writer(folder) as facts,
        CATEGORIES.writer(folder) as categories,
        EXCLUDED.writer(folder) as excluded,
    ):
        for page, is_repeated in partition.pages():
            counts["pages"] += 1
            kind, reason = ("repeated page", "") if is_repeated else _kind(page, site)
            counts[kind] += 1
            if kind in ("article", "redirect", "disambiguation"):
                pages.add((page.title, kind, _redirect_target(page, site)))
            if kind not in ("article", "redirect"):
                excluded.add((page.title, f"{kind}: {reason}" if reason else kind))
            if kind != "article":
                continue
            if page.namespace != MAIN:
                counts[f"article of {_namespace(page, site)}"] += 1
            parsed = parse(page.text, site, page.title, settings)
            counts.update(_counts(parsed, page))
            for name, *numbers in parsed.left_out:
                sums = left_out.setdefault(template_key(name, site.template_prefixes), [0, 0, 0])
                sums[:] = (x + y for x, y in zip(sums, (1, *numbers)))
            for fact in parsed.facts:
                facts.add((page.page_id, page.title, *fact))
            for category in parsed.categories:
                categories.add((page.page_id, page.title, category))
            if parsed.text:
                articles.add(_row(page.page_id, page.title, parsed))
            else:
                counts["article without text"] += 1
                excluded.add((page.title, "article without text"))
    with LEFT_OUT.writer(folder) as table:
        for name in sorted(left_out, key=lambda x: (-left_out[x][1], -left_out[x][0], x)):
            table.add((name, *left_out[name]))
    return dict(counts)


def _kind(page: Page, site: Site) -> tuple[str, str]:
    """The kind of a page, and what makes it one."""
    if page.namespace not in site.content:
        return f"page of {_namespace(page, site)}", ""
    if page.model != "wikitext":
        return "page that is no wikitext", page.model
    if page.redirect is not None:
        return "redirect", ""
    mark = disambiguation_mark(page, site)
    return ("disambiguation", mark) if mark else ("article", "")


def _namespace(page: Page, site: Site) -> str:
    return f"namespace {site.namespace_name(page.namespace) or page.namespace}"


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
        **{_with_template(name): 1 for name in parsed.own},
        **{f"dropped: {reason}": n for reason, n in parsed.dropped.items()},
    }


def _with_template(name: str) -> str:
    return f"article with text of template {name}"


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
        PAGES.writer(folder) as pages,
        ARTICLES.writer(folder) as articles,
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
                    [ent.kb_id_ for ent in linked],
                    [ent.text for ent in linked],
                )
            )
    return dict(+counts)


def _unusable(ent: Span) -> str:
    """Why an entity cannot be a link; empty if it can."""
    if ent.kb_id_.strip() in UNLINKED:
        return "entity without kb_id"
    if any(character in ent.kb_id_ for character in "\t\n\r\0"):
        return "kb_id with a tab, a line break or NUL"
    return "kb_id of a special entity" if ent.kb_id_ in SPECIALS else ""


def _docs(path: Path) -> Iterator[Doc]:
    try:
        yield from DocBin().from_disk(path).get_docs(Vocab())
    except (OSError, ValueError, TypeError, KeyError) as error:  # the last two: not a DocBin
        raise CorpusError(f"{path} cannot be read as annotated documents: {error}") from error
