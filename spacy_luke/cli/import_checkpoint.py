"""``spacy luke import``: a published checkpoint becomes a pipeline."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import LukeError
from ..pipeline.presets import PRESETS
from . import app
from .saving import check_free, save_pipeline


@app.command("import")
def import_cli(
    name: Annotated[
        str, typer.Argument(metavar="NAME_OR_DIR", help="A directory, or a name on the hub.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the pipeline.")],
    language: Annotated[
        str, typer.Option("--lang", "-l", help="Language of the pipeline; xx: any.")
    ] = "xx",
    preset: Annotated[
        str | None,
        typer.Option(help=f"Settings of a published result: {', '.join(PRESETS)}."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", "-F", help="Write over a pipeline that is there.")
    ] = False,
) -> None:
    """Make a pipeline of a published LUKE that works at once.

    A span, pair or entity classifier becomes luke_ner, luke_relation or luke_entity_typing with its
    labels; any other checkpoint becomes a luke component, which keeps its heads.

    A preset makes a fine-tuned checkpoint read its corpus as it was published; for other text leave
    it out.
    """
    from ..pipeline.published import import_checkpoint

    msg = Printer()
    try:
        check_free(out, force)
        nlp = import_checkpoint(name, language, preset=preset)
        save_pipeline(nlp, out, force)
    except (LukeError, OSError, ImportError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    msg.good(f"Saved {out} with {', '.join(nlp.pipe_names)}")
