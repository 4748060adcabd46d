"""``spacy luke import``: make a pipeline from a published checkpoint."""

from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..pipeline.presets import PRESETS
from . import app, exit_on_error
from .options import ForceOption, lang_option
from .saving import check_free, save_pipeline


@app.command("import")
def import_cli(
    name: Annotated[
        str, typer.Argument(metavar="NAME_OR_DIR", help="A directory, or a name on the hub.")
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Directory of the pipeline.")],
    lang: Annotated[str, lang_option("xx")] = "xx",
    preset: Annotated[
        str | None,
        typer.Option(help=f"Settings of a published result: {', '.join(PRESETS)}."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Make a pipeline from a published LUKE.

    A span, pair or entity classifier becomes luke_ner, luke_relation or luke_entity_typing with its
    labels; a model that answers questions luke_qa, a cloze model luke_cloze, and a disambiguation
    model luke_linker with a knowledge base of its entities. All other checkpoints become luke,
    which keeps their heads.

    A preset reproduces the published result of a fine-tuned checkpoint on its corpus. Omit it for
    other text.

    \b
    Example:
    python -m spacy luke import studio-ousia/luke-large-finetuned-conll-2003 pipelines/ner --lang en
    """
    from ..pipeline.published import import_checkpoint

    msg = Printer()
    with exit_on_error(msg, ImportError):
        check_free(out, force)
        nlp = import_checkpoint(name, lang, preset=preset)
        save_pipeline(nlp, out, force)
    msg.good(f"Saved {out} with {', '.join(nlp.pipe_names)}")
