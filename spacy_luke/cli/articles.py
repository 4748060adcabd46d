"""``spacy luke articles``: a wiki dump, or annotated documents, to text with links."""

import re
from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import ConfigError, CorpusError, LukeError
from . import app
from .stages import (
    EngineOption,
    Progress,
    SchedulerOption,
    WorkersOption,
    pretraining_extra,
    print_counts,
)

# Not hidden; pages1.xml-p1p41242.bz2 too.
_NAME = re.compile(r"[^.].*(\.xml(-[^.]*)?(\.bz2|\.gz)?|\.spacy)$")
_OTHERS = re.compile(r"[^.].*\.xml(-[^.]*)?\.(7z|xz|zip|zst)$")


@app.command("articles")
def articles_cli(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN...",
            help="MediaWiki exports (.xml, .bz2, .gz; with its index beside it a multistream dump "
            "is read in parts), or .spacy files whose entities have a kb_id; or folders of them.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the stage.")],
    language: Annotated[
        str, typer.Option("--language", "-l", help="By default what the export says.")
    ] = "",
    partition_size: Annotated[
        int, typer.Option(help="Compressed bytes of a part of a multistream dump, at least.")
    ] = 32 << 20,
    engine: EngineOption = "local",
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = None,
    progress: Progress = True,
) -> None:
    """Read articles with their links: the first stage of pretraining.

    A run that was interrupted goes on when it is started again. What is dropped, and why, is
    counted in manifest.json.
    """
    with pretraining_extra():
        from ..pretraining.articles import read_docs, read_dump
        from ..pretraining.engine import Engine

    msg = Printer()
    try:
        where = Engine(engine, workers, scheduler)
        sources = [file for path in sources for file in _files(path, msg)]
        docs = [path for path in sources if path.suffix == ".spacy"]
        if docs and len(docs) < len(sources):
            raise ConfigError(f"{docs[0]} is no export: read .spacy files into their own folder.")
        if docs:
            manifest = read_docs(sources, out, where, language, progress)
        else:
            manifest = read_dump(sources, out, where, language, partition_size, progress)
    except (LukeError, OSError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    print_counts(manifest, msg)
    if not manifest.counts.get("links"):
        msg.warn("No link was found: neither a vocabulary nor entities can be learned from these.")


def _files(path: Path, msg: Printer) -> list[Path]:
    """A file, or what a folder has to read. Raises CorpusError where that is nothing."""
    if not path.is_dir():
        return [path]
    files = sorted(x for x in path.iterdir() if x.is_file())
    found = [x for x in files if _NAME.match(x.name)]
    others = [x.name for x in files if _OTHERS.match(x.name)]
    if others:
        msg.warn(
            f"Of the exports in {path} there are {len(others)} that cannot be read: "
            f"{', '.join(others)}. Give them as bz2, gzip or plain XML."
        )
    if not found:
        raise CorpusError(f"{path} holds no export (.xml, .xml.bz2, .xml.gz) and no .spacy file.")
    return found
