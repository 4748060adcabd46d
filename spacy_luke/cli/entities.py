"""``spacy luke entities``: the links of articles to an entity vocabulary."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import LukeError
from . import app
from .stages import Progress, pretraining_extra, print_counts


@app.command("entities")
def entities_cli(
    articles: Annotated[
        list[Path], typer.Argument(metavar="ARTICLES...", help="Folders of articles.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the stage.")],
    size: Annotated[int, typer.Option(help="Entities at most, the most linked first.")] = 500_000,
    min_count: Annotated[int, typer.Option(help="Links that an entity needs.")] = 1,
    white_list: Annotated[
        Path | None, typer.Option(help="Titles, one a line, that are in whatever their count.")
    ] = None,
    sitelinks: Annotated[
        Path | None,
        typer.Option(
            help="Of several languages: a table (.parquet, .csv, .jsonl) of item, language, title."
        ),
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory that the joins may use.")] = "4GB",
    progress: Progress = True,
) -> None:
    """Count links, redirects followed, and choose the entities: the second stage of pretraining.

    Also writes how often each text was linked to each article (anchors.parquet).
    """
    with pretraining_extra():
        from ..pretraining.articles import STAGE
        from ..pretraining.entities import VocabSettings, build_vocabulary
        from ..pretraining.manifest import read_manifest

    msg = Printer()
    try:
        settings = VocabSettings(size, min_count, white_list, sitelinks, memory)
        found = [read_manifest(path, STAGE) for path in articles]
        manifest = build_vocabulary(found, out, settings, progress)
    except (LukeError, OSError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    print_counts(manifest, msg)
