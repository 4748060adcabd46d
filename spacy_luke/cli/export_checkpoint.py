"""``spacy luke export``: write a component of a pipeline as a published checkpoint."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from . import app, exit_on_error
from .loading import load_pipeline


@app.command("export")
def export_cli(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="A trained pipeline.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the checkpoint.")],
    component: Annotated[
        str, typer.Option(help="The component. Required if several can be exported.")
    ] = "",
    source_names: Annotated[
        bool,
        typer.Option("--source-names", help="Keep the tensor names of the source file."),
    ] = False,
) -> None:
    """Write a directory that transformers loads: weights, config.json, tokenizer, entities."""
    from ..pipeline.published import export_component

    msg = Printer()
    with exit_on_error(msg):
        architecture = export_component(load_pipeline(pipeline), out, component, source_names)
    msg.good(f"Saved {out}, a {architecture}")
