"""``spacy luke tune``: choose the settings of trained components on development data."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import Printer

from . import app, exit_on_error
from .figures import percent
from .loading import (
    Code,
    get_pipeline_directory,
    load_examples,
    load_pipeline,
    predicts_entities,
    preset_gold,
    use_device,
)
from .options import ForceOption, GpuOption, PipelineArgument
from .predicted import warn_of_predictions
from .saving import (
    check_apart,
    check_file,
    check_free,
    save_json,
    save_pipeline,
    state_of,
    update_pipeline,
)

if TYPE_CHECKING:
    from ..pipeline.tuning import Tuned


@app.command("tune")
def tune_cli(
    pipeline: PipelineArgument,
    dev: Annotated[Path, typer.Argument(metavar="DEV", help="Development data, a .spacy file.")],
    component: Annotated[
        list[str] | None, typer.Option(help="Tune only this component; may be repeated.")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(help="Wanted precision, e.g. 0.95: the most recall with it.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(help="Wanted recall, e.g. 0.9: the most precision with it.")
    ] = None,
    each_label: Annotated[
        bool, typer.Option("--each-label", help="Reach it for every label, not for all together.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Save the pipeline here. Default: PIPELINE is changed."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write what was chosen, .json.")] = None,
    code: Code = None,
    gpu_id: GpuOption = -1,
    force: ForceOption = False,
) -> None:
    """Choose settings of luke_ner, luke_relation, luke_entity_typing, luke_linker, luke_qa and
    luke_cloze on development data, and save them in the pipeline. No weight is changed.

    Chosen are the biases of "no entity" and of known names and, in two-stage mode, the number of
    candidates; a calibration, after
    which an answer with score 0.8 is right in about 8 of 10 cases; and the least score of an
    answer: by F, or for a wanted precision or recall. Components that read entities are tuned with
    those that the pipeline predicts, or with gold entities if it predicts none.

    \b
    Example:
    python -m spacy luke tune model-best dev.spacy --precision 0.95 --output model-precise
    """
    from ..pipeline.model_card import record_scores, refresh
    from ..pipeline.thresholds import Goal
    from ..pipeline.tuning import tune

    msg = Printer()
    with exit_on_error(msg):
        goal = Goal(precision, recall, each_label)
        if out is None:
            target = get_pipeline_directory(pipeline, in_place=True)
        else:
            target = out
            check_free(target, force)
        if report is not None:
            check_file(report, force)
            report = report.absolute()  # the current directory may be replaced
        use_device(gpu_id)
        before = state_of(target)
        nlp = load_pipeline(pipeline, code=code)
        if report is not None:
            check_apart(report, target, nlp)
        examples = load_examples(dev, nlp)
        warn_of_predictions(nlp, examples, dev)
        if not predicts_entities(nlp):
            preset_gold(examples, nlp)
        results = []
        for tuned in tune(nlp, examples, goal, component):
            print_tuned(tuned, msg)
            results.append(tuned)
        record_scores(nlp, examples)
        refresh(nlp)
        if out is None:
            update_pipeline(nlp, target, before)
        else:
            save_pipeline(nlp, target, force)
        # Last: it may be in the folder of the pipeline, which is replaced.
        if report is not None:
            save_json(report, [asdict(x) for x in results])
    msg.good(f"Saved {target}")


def print_tuned(tuned: "Tuned", msg: Printer) -> None:
    """Print figures before and after, and the settings that were chosen."""
    msg.divider(tuned.component)
    msg.table(figure_rows(tuned), header=("", "before", "after"), aligns=("l", "r", "r"))
    if tuned.held_out_error is not None:
        msg.text(
            f"Calibration error to expect on other documents of this kind: "
            f"{100 * tuned.held_out_error:.1f}, of answers that are written, by a fit on others "
            f"(so many exact scores would have {100 * (tuned.error_by_chance or 0.0):.1f})"
        )
    elif tuned.settings.get("calibration") is not None:
        msg.text(
            "Calibration error to expect on other documents: unknown. There are too few answers, "
            "or none of those that the fit did not use would be written."
        )
    if tuned.filter is not None:
        msg.text(
            f"candidates_per_word {tuned.filter.candidates_per_word:g}, filter_threshold "
            f"{tuned.filter.filter_threshold:g}: {tuned.filter.asked:.2f} candidates per word"
        )
    if tuned.thresholds is not None and tuned.thresholds.by_label:
        msg.table(
            label_rows(tuned),
            header=("label", "annotated", "precision", "recall", "F"),
            aligns=("l", *"rrrr"),
        )
    for name, value in tuned.settings.items():
        if name == "calibration":
            continue
        if isinstance(value, dict):
            shown = {x: "never" if y is None else f"{y:.3f}" for x, y in value.items()}
            value = ", ".join(f"{label} {x}" for label, x in shown.items()) or "none"
        is_number = isinstance(value, int | float)
        msg.text(
            f"{name} {'by default' if value is None else f'{value:.4g}' if is_number else value}"
        )


def label_rows(tuned: "Tuned") -> Sequence[tuple[str, ...]]:
    """Of each label: the number of its annotations, and percentages after tuning."""
    return [
        (label, f"{x.n_gold:,}", percent(x.p), percent(x.r), percent(x.f))
        for label, x in tuned.after.by_label.items()
    ]


def figure_rows(tuned: "Tuned") -> Sequence[tuple[str, str, str]]:
    """Names and percentages before and after."""
    names = {"p": "precision", "r": "recall", "f": "F", "calibration_error": "calibration error"}
    return [
        (shown, percent(getattr(tuned.before, name)), percent(getattr(tuned.after, name)))
        for name, shown in names.items()
    ]
