"""``spacy luke articles``: a wiki dump, linked text, or annotated documents, to articles."""

import re
from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import ConfigError, CorpusError
from ..pretraining.engine import Engine
from ..pretraining.settings import DumpSettings
from . import app, exit_on_error
from .options import lang_option
from .stages import (
    EngineOption,
    OutputOption,
    Progress,
    SchedulerOption,
    WorkersOption,
    pretraining_extra,
    print_counts,
)

# Files that are not hidden, for example pages1.xml-p1p41242.bz2.
_NAME = re.compile(r"[^.].*(\.xml(-[^.]*)?(\.bz2|\.gz)?|\.spacy|\.jsonl)$", re.IGNORECASE)
_KINDS = (".spacy", ".jsonl")
_UNSUPPORTED = re.compile(
    r"[^.](?!.*(-index|titles-in|\.(sql|txt|json|md5|sha1)\b|~$)).*"
    r"(\.xml\b.*|\.(7z|xz|zip|zst|bz2|gz))$",
    re.IGNORECASE,
)
"""Names of what may be an export, if they are not those of one that can be read."""


@app.command("articles")
def articles_cli(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN...",
            help="MediaWiki exports (.xml, .bz2, .gz; multistream dumps are read in parts), or "
            ".jsonl files of linked text, or .spacy files whose entities have a kb_id; or folders "
            "of one kind.",
        ),
    ],
    out: OutputOption,
    lang: Annotated[str, lang_option("that of the export")] = "",
    partition_size: Annotated[
        int, typer.Option(help="Minimum compressed bytes per part of a multistream dump.")
    ] = DumpSettings.partition_size,
    namespaces: Annotated[
        str,
        typer.Option(
            help="Further namespaces whose pages are articles: names or numbers with commas, for "
            "example Handbook,3002."
        ),
    ] = "",
    interwiki: Annotated[
        str,
        typer.Option(help="Prefixes of other wikis, with commas, for example jira,fr."),
    ] = "",
    templates: Annotated[
        str,
        typer.Option(
            help="Templates whose text is kept, with commas: names, or NAME=ARGUMENT (default: "
            "the first argument)."
        ),
    ] = "",
    not_disambiguation: Annotated[
        str,
        typer.Option(
            help="Templates that do not mark disambiguation pages, with commas, although their "
            "page or their name says so."
        ),
    ] = "",
    tables: Annotated[bool, typer.Option("--tables", help="Keep the text of tables.")] = False,
    incomplete: Annotated[
        bool,
        typer.Option("--incomplete", help="Use the complete pages of a file that ends too early."),
    ] = False,
    engine: EngineOption = Engine.name,
    workers: WorkersOption = Engine.workers,
    scheduler: SchedulerOption = Engine.scheduler,
    progress: Progress = True,
) -> None:
    """Read articles with their links: the first stage of pretraining.

    An interrupted run is resumed when it is started again. Dropped links and pages are counted in
    manifest.json, by reason.

    \b
    Examples:
    python -m spacy luke articles enwiki-pages-articles.xml.bz2 --output work/articles
    python -m spacy luke articles notes.jsonl --lang en --output work/articles
    """
    with pretraining_extra():
        from ..pretraining.articles import read_docs, read_dump
        from ..pretraining.linked_text import read_linked_text

    msg = Printer()
    with exit_on_error(msg):
        workers_engine = Engine(engine, workers, scheduler)
        sources = [file for path in sources for file in _files(path, msg)]
        kinds = {x if (x := path.suffix.lower()) in _KINDS else "export": path for path in sources}
        if len(kinds) > 1:
            raise ConfigError(
                f"{' and '.join(map(str, kinds.values()))} are of different kinds: read them into "
                "folders of their own."
            )
        settings = DumpSettings(
            lang,
            partition_size,
            _names(namespaces),
            _names(interwiki),
            _names(templates),
            tables,
            incomplete,
            _names(not_disambiguation),
        )
        if "export" not in kinds and settings != DumpSettings(lang):
            raise ConfigError(
                f"{next(iter(kinds.values()))} is no export of a wiki, for which the options "
                "--partition-size, --namespaces, --interwiki, --templates, --not-disambiguation, "
                "--tables and --incomplete are."
            )
        if ".spacy" in kinds:
            manifest = read_docs(sources, out, workers_engine, lang, progress)
        elif ".jsonl" in kinds:
            manifest = read_linked_text(sources, out, workers_engine, lang, progress)
        else:
            manifest = read_dump(sources, out, workers_engine, settings, progress)
    print_counts(manifest, msg)
    if not manifest.counts.get("links"):
        msg.warn(
            "No link was found: without links there is no vocabulary and no entity can be trained."
        )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for x in text.split(",") if (name := x.strip()))


def _files(path: Path, msg: Printer) -> list[Path]:
    """A file, or the supported files of a folder. Raises CorpusError if there are none."""
    if not path.is_dir():
        return [path]
    files = sorted(x for x in path.iterdir() if x.is_file())
    supported = [x for x in files if _NAME.match(x.name)]
    others = [x.name for x in files if x not in supported]
    unsupported = [name for name in others if _UNSUPPORTED.match(name)]
    if unsupported:
        msg.warn(
            f"{len(unsupported)} exports in {path} cannot be read: {', '.join(unsupported)}. "
            "Provide them as bz2, gzip or plain XML, with names in .xml.bz2, .xml.gz or .xml."
        )
    if not supported:
        raise CorpusError(
            f"{path} contains no export (.xml, .xml.bz2, .xml.gz), .jsonl or .spacy file."
        )
    return supported
