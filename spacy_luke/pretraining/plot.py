"""Plot the log of a training (SVG)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

Records = Sequence[dict[str, Any]]

BASELINES = {
    "frequent_top_1": "most frequent entity",
    "anchor_top_1": "most frequent of the anchor",
}


def plot_log(records: Records, path: Path) -> None:
    """Plot losses, accuracy for entities (with baselines) and words, and speed."""
    steps = [x for x in records if x["kind"] == "step"]
    evaluations = [x for x in records if x["kind"] == "evaluation"]
    baselines = next((x for x in records if x["kind"] == "baselines"), {})
    figure = Figure(figsize=(11, 7))
    FigureCanvasAgg(figure)  # pyplot would set the backend of the whole process
    (losses, entities), (words, speed) = figure.subplots(2, 2)
    for name, color in (("word_loss", "tab:blue"), ("entity_loss", "tab:orange")):
        label = name.replace("_", " ")
        _line(losses, steps, name, label, color, alpha=0.5)
        _line(losses, evaluations, name, f"{label}, held out", color, marker="o")
    _line(entities, steps, "entity_accuracy", "top 1, training", "tab:orange", alpha=0.5)
    _line(entities, evaluations, "entity_top_1", "top 1, held out", "tab:orange", marker="o")
    _line(entities, evaluations, "entity_top_10", "top 10, held out", "tab:green", marker="o")
    for (name, label), style in zip(BASELINES.items(), (":", "--")):
        if name in baselines:
            entities.axhline(baselines[name], color="gray", linestyle=style, label=label)
    _line(words, steps, "word_accuracy", "training", "tab:blue", alpha=0.5)
    _line(words, evaluations, "word_accuracy", "held out", "tab:blue", marker="o")
    _line(speed, steps, "pieces_per_second", "pieces per second", "tab:gray")
    titles = ("loss", "masked entities found", "masked words found", "speed")
    for axes, title in zip((losses, entities, words, speed), titles):
        axes.set_title(title)
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
    for axes in (entities, words, speed):
        axes.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def _line(axes: Any, records: Records, name: str, label: str, color: str, **style: Any) -> None:
    points = [(x["step"], x[name]) for x in records if name in x]
    if points:
        axes.plot(*zip(*points), label=label, color=color, **style)
