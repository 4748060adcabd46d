"""``spacy luke export``: write a component of a pipeline as a published checkpoint."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from . import app, exit_on_error
from .loading import Code, load_pipeline
from .options import ForceOption, PipelineArgument
from .saving import check_free


@app.command("export")
def export_cli(
    pipeline: PipelineArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the checkpoint.")],
    component: Annotated[
        str, typer.Option(help="The component. Required if several can be exported.")
    ] = "",
    source_names: Annotated[
        bool,
        typer.Option("--source-names", help="Keep the tensor names of the source file."),
    ] = False,
    code: Code = None,
    force: ForceOption = False,
) -> None:
    """Write a directory that transformers loads: weights, config.json, tokenizer, entities.

    \b
    Example:
    python -m spacy luke export pipelines/ner checkpoints/ner
    """
    from ..checkpoint.write import FILES
    from ..pipeline.published import export_component

    msg = Printer()
    with exit_on_error(msg):
        check_free(out, force, ("config.json", "entity_vocab.json"), FILES)
        nlp = load_pipeline(pipeline, code=code)
        architecture = export_component(nlp, out, component, source_names, overwrite=True)
    msg.good(f"Saved {out}, a {architecture}")
