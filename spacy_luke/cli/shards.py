"""``spacy luke shards``: articles to training sequences."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import LukeError
from . import app
from .stages import (
    EngineOption,
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
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the stage.")],
    max_pieces: Annotated[int, typer.Option(help="Of a sequence, with special ones.")] = 512,
    max_entities: Annotated[int, typer.Option(help="Of a sequence.")] = 128,
    max_mention: Annotated[int, typer.Option(help="Pieces of a mention.")] = 30,
    sentences: Annotated[
        str, typer.Option(help="sentencizer, or a spaCy pipeline that sets sentence starts.")
    ] = "sentencizer",
    held_out: Annotated[float, typer.Option(help="Share of the articles set aside.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Of the articles set aside.")] = 0,
    engine: EngineOption = "local",
    workers: WorkersOption = 0,
    scheduler: SchedulerOption = None,
    progress: Progress = True,
) -> None:
    """Cut articles into training sequences: the third stage of pretraining.

    Sentences stay whole where they fit; a run that was interrupted goes on when started again.
    """
    with pretraining_extra():
        from ..checkpoint.hub import resolve
        from ..checkpoint.read_tokenizer import read_tokenizer
        from ..pretraining.articles import STAGE
        from ..pretraining.engine import Engine
        from ..pretraining.entities import STAGE as ENTITIES
        from ..pretraining.manifest import read_manifest
        from ..pretraining.shards import ShardSettings, build_shards, covers_nothing

    msg = Printer()
    try:
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
    except (LukeError, OSError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    print_counts(manifest, msg)
    if covers_nothing(manifest):
        msg.warn("No link leads to an entity of the vocabulary: no entity can be learned.")
