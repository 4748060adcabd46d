"""``spacy luke shards``: articles to training sequences."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..pretraining.engine import Engine
from ..pretraining.settings import ShardSettings
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


@app.command("shards")
def shards_cli(
    articles: Annotated[
        list[Path], typer.Argument(metavar="ARTICLES...", help="Folders of articles.")
    ],
    entities: Annotated[Path, typer.Option(help="Folder of the vocabulary.")],
    encoder: Annotated[str, typer.Option(help="Directory or hub name, for its tokenizer.")],
    out: OutputOption,
    max_pieces: Annotated[
        int, typer.Option(help="Maximum pieces per sequence, special ones included.")
    ] = ShardSettings.max_pieces,
    max_entities: Annotated[
        int, typer.Option(help="Maximum entities per sequence.")
    ] = ShardSettings.max_entities,
    max_mention: Annotated[
        int, typer.Option(help="Maximum pieces per mention.")
    ] = ShardSettings.max_mention,
    sentences: Annotated[
        str,
        typer.Option(help="rules, sentencizer, or a spaCy pipeline that sets sentence starts."),
    ] = ShardSettings.sentences,
    held_out: Annotated[
        float, typer.Option(help="Share of held-out articles.")
    ] = ShardSettings.held_out,
    seed: Annotated[int, typer.Option(help="Seed of held-out articles.")] = ShardSettings.seed,
    engine: EngineOption = Engine.name,
    workers: WorkersOption = Engine.workers,
    scheduler: SchedulerOption = Engine.scheduler,
    progress: Progress = True,
) -> None:
    """Cut articles into training sequences: the third stage of pretraining.

    Sentences are kept whole if they fit. An interrupted run is resumed when it is started again.

    \b
    Example:
    python -m spacy luke shards work/articles --entities work/entities --encoder DIR -o work/shards
    """
    with pretraining_extra():
        from ..checkpoint.hub import resolve
        from ..checkpoint.read_tokenizer import read_tokenizer
        from ..pretraining.articles import STAGE
        from ..pretraining.entities import STAGE as ENTITIES
        from ..pretraining.manifest import read_manifest
        from ..pretraining.shards import build_shards, covers_nothing

    msg = Printer()
    with exit_on_error(msg):
        settings = ShardSettings(max_pieces, max_entities, max_mention, sentences, held_out, seed)
        manifest = build_shards(
            [read_manifest(path, STAGE) for path in articles],
            read_manifest(entities, ENTITIES),
            read_tokenizer(resolve(encoder)),
            out,
            settings,
            Engine(engine, workers, scheduler),
            progress,
        )
    print_counts(manifest, msg)
    if covers_nothing(manifest):
        msg.warn("No link leads to an entity of the vocabulary: no entity can be trained.")
