"""``spacy luke entities``: the links of articles to an entity vocabulary."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..pretraining.settings import VocabSettings
from . import app, exit_on_error
from .stages import OutputOption, Progress, pretraining_extra, print_counts


@app.command("entities")
def entities_cli(
    articles: Annotated[
        list[Path], typer.Argument(metavar="ARTICLES...", help="Folders of articles.")
    ],
    out: OutputOption,
    size: Annotated[
        int, typer.Option(help="Maximum number of entities: the most linked.")
    ] = VocabSettings.size,
    min_count: Annotated[
        int, typer.Option(help="Minimum links per entity.")
    ] = VocabSettings.min_count,
    white_list: Annotated[
        Path | None, typer.Option(help="Titles, one per line, included with any number of links.")
    ] = VocabSettings.white_list,
    sitelinks: Annotated[
        Path | None,
        typer.Option(
            help="For several languages: a table (.parquet, .csv, .jsonl) of item, language, title."
        ),
    ] = VocabSettings.sitelinks,
    memory: Annotated[str, typer.Option(help="Memory limit of joins.")] = VocabSettings.memory,
    progress: Progress = True,
) -> None:
    """Count links, resolve redirects and choose the entities: the second stage of pretraining.

    Also writes how often each anchor text links to each article (anchors.parquet).

    \b
    Example:
    python -m spacy luke entities work/articles --output work/entities --size 500000
    """
    with pretraining_extra():
        from ..pretraining.articles import STAGE
        from ..pretraining.entities import build_vocabulary
        from ..pretraining.manifest import read_manifest

    msg = Printer()
    with exit_on_error(msg):
        settings = VocabSettings(size, min_count, white_list, sitelinks, memory)
        manifests = [read_manifest(path, STAGE) for path in articles]
        manifest = build_vocabulary(manifests, out, settings, progress)
    print_counts(manifest, msg)
