"""``spacy luke tune-nil``: choose the bias against "no entity" on development data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from wasabi import Printer

from ..pipeline.nil_bias import Score, bias_values, choose, find_pipe, save_bias, score_biases
from . import app, exit_on_error
from .loading import load_examples, load_pipeline, use_device
from .saving import update_pipeline


@app.command("tune-nil")
def tune_nil_cli(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="A trained pipeline.")],
    dev: Annotated[Path, typer.Argument(metavar="DEV", help="Development data, a .spacy file.")],
    component: Annotated[str, typer.Option(help="Name of the luke_ner component.")] = "luke_ner",
    out: Annotated[
        Path | None, typer.Option(help="Save the pipeline here. Default: in place.")
    ] = None,
    low: Annotated[float, typer.Option(help="Smallest bias tried.")] = -3.0,
    high: Annotated[float, typer.Option(help="Largest bias tried.")] = 3.0,
    step: Annotated[float, typer.Option(help="Distance between biases.")] = 0.25,
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU, or -1 for the CPU.")] = -1,
) -> None:
    """Choose the NIL bias of luke_ner by F on development data, and save it in the pipeline.

    The bias is subtracted from the logit of "no entity": a positive one yields more entities, a
    negative one fewer. The network runs once, then each bias is decoded. If several consecutive
    biases are equally good, the middle one is chosen.
    """
    msg = Printer()
    with exit_on_error(msg):
        values = bias_values(low, high, step)
        use_device(gpu_id)
        nlp = load_pipeline(pipeline)
        find_pipe(nlp, component)
        scores = score_biases(nlp, component, load_examples(dev, nlp), values)
        best = choose(scores)
        print_scores(scores, best, msg)
        save_bias(nlp, component, best)
        update_pipeline(nlp, out or pipeline)
    msg.good(f"Saved {out or pipeline} with {component}.nil_bias = {best.bias:g}")


def print_scores(scores: Sequence[Score], best: Score, msg: Printer) -> None:
    """Print one row per bias and mark the chosen one."""
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
