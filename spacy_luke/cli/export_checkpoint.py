"""``spacy luke export``: a component of a pipeline becomes a published checkpoint."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import LukeError
from . import app
from .loading import load_pipeline


@app.command("export")
def export_cli(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="A trained pipeline.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the checkpoint.")],
    component: Annotated[
        str, typer.Option(help="The component, where several have a published form.")
    ] = "",
    source_names: Annotated[
        bool,
        typer.Option("--source-names", help="Tensors keep the names of the file they came from."),
    ] = False,
) -> None:
    """Write a directory that transformers loads: weights, config.json, tokenizer, entities."""
    from ..pipeline.published import export_component

    msg = Printer()
    try:
        architecture = export_component(load_pipeline(pipeline), out, component, source_names)
    except (LukeError, OSError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    msg.good(f"Saved {out}, a {architecture}")
