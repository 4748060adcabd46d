"""``spacy luke tune-nil``: the bias against "no entity", chosen on development data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..errors import LukeError
from ..pipeline.nil_bias import (
    Score,
    bias_values,
    choose,
    component_with_bias,
    save_bias,
    score_biases,
)
from . import app
from .loading import load_examples, load_pipeline, use_device
from .saving import update_pipeline


@app.command("tune-nil")
def tune_nil_cli(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="A trained pipeline.")],
    dev: Annotated[Path, typer.Argument(metavar="DEV", help="Development data, a .spacy file.")],
    component: Annotated[str, typer.Option(help="Name of the luke_ner component.")] = "luke_ner",
    out: Annotated[
        Path | None, typer.Option(help="Save the pipeline here instead of in place.")
    ] = None,
    low: Annotated[float, typer.Option(help="Smallest bias tried.")] = -3.0,
    high: Annotated[float, typer.Option(help="Largest bias tried.")] = 3.0,
    step: Annotated[float, typer.Option(help="Distance of the biases tried.")] = 0.25,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU.")] = -1,
) -> None:
    """Choose the NIL bias of luke_ner by F on development data, and save it in the pipeline.

    The bias is taken off the logit of "no entity": a positive one finds more entities, a
    negative one fewer. The network runs once; each bias is then only decoded. Where several
    biases in a row are equally good, the middle one is taken.
    """
    msg = Printer()
    try:
        values = bias_values(low, high, step)
        use_device(gpu_id)
        nlp = load_pipeline(pipeline)
        component_with_bias(nlp, component)
        scores = score_biases(nlp, component, load_examples(dev, nlp), values)
        best = choose(scores)
        print_scores(scores, best, msg)
        save_bias(nlp, component, best)
        update_pipeline(nlp, out or pipeline)
    except (LukeError, OSError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    msg.good(f"Saved {out or pipeline} with {component}.nil_bias = {best.bias:g}")


def print_scores(scores: Sequence[Score], best: Score, msg: Printer) -> None:
    """A row for each bias, the chosen one marked."""
    rows = [
        (
            f"{score.bias:g}",
            *(f"{100 * value:.2f}" for value in (score.p, score.r, score.f)),
            "<- chosen" if score is best else "",
        )
        for score in scores
    ]
    msg.table(rows, header=("NIL bias", "P", "R", "F", ""), aligns=("r", "r", "r", "r", "l"))
    if best.bias != 0 and (best is scores[0] or best is scores[-1]):
        msg.warn("The best bias is at the end of the range; --low and --high widen it.")
