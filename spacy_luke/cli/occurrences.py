"""``spacy luke occurrences``: how often the texts of links occur in articles."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..pretraining.engine import Engine
from ..pretraining.settings import VocabSettings
from . import app, exit_on_error
from .stages import (
    EngineOption,
    OutputOption,
    Progress,
    SchedulerOption,
    WorkersOption,
    pretraining_extra,
    print_counts,
)


@app.command("occurrences")
def occurrences_cli(
    articles: Annotated[
        list[Path], typer.Argument(metavar="ARTICLES...", help="Folders of articles.")
    ],
    entities: Annotated[
        Path, typer.Option(help="Folder of the vocabulary that was made from these articles.")
    ],
    out: OutputOption,
    memory: Annotated[str, typer.Option(help="Memory limit of joins.")] = VocabSettings.memory,
    engine: EngineOption = Engine.name,
    workers: WorkersOption = Engine.workers,
    scheduler: SchedulerOption = Engine.scheduler,
    progress: Progress = True,
) -> None:
    """Count how often each linked text occurs in articles, linked or not (occurrences.parquet).

    'spacy luke link-table' makes a table of link probabilities from it. An interrupted run is
    resumed when it is started again.

    \b
    Example:
    python -m spacy luke occurrences work/articles --entities work/entities -o work/occurrences
    """
    with pretraining_extra():
        from ..pretraining.articles import STAGE
        from ..pretraining.entities import STAGE as ENTITIES
        from ..pretraining.manifest import read_manifest
        from ..pretraining.occurrences import count_occurrences

    msg = Printer()
    with exit_on_error(msg):
        manifest = count_occurrences(
            [read_manifest(path, STAGE) for path in articles],
            read_manifest(entities, ENTITIES),
            out,
            Engine(engine, workers, scheduler),
            memory,
            progress,
        )
    print_counts(manifest, msg)
