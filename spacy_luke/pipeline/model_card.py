"""Encoders, settings and data counts of components, in the pipeline's ``meta.json``.

``spacy package`` shows the notes that are written here.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from spacy.language import Language
from spacy.scorer import Scorer
from spacy.training import Example
from spacy.util import registry
from thinc.api import Model

from ..layers.encoder import ENCODER, module_of, shim_of

KEY = "luke"
_HEADING = "### Encoders and training data"


def record(nlp: Language | None, name: str, training_data: dict[str, int]) -> None:
    """Describe a component that was just initialised in ``nlp.meta``, and update all others.

    ``meta["luke"][name]`` gets the encoder's source (name, SHA-256 of its weight files, published
    class), the settings of its layers, and the counts of the training data. ``sources`` names the
    source. ``notes`` show all of it as a table, below the existing text.

    training_data: name of a count -> count; empty if nothing was counted.
    """
    if nlp is None or name not in nlp.pipe_names:
        return
    entry = nlp.meta.setdefault(KEY, {})[name] = {}
    if any(training_data.values()):
        entry["training_data"] = dict(training_data)
    refresh(nlp)


def record_preset(nlp: Language, name: str, preset: str) -> None:
    """Add the preset that a component's settings were taken from to the entry of :func:`record`."""
    nlp.meta[KEY][name]["preset"] = preset
    _show(nlp)


@registry.callbacks("spacy-luke.fill_card.v1")
def make_fill_card() -> Callable[[Language], Language]:
    """For ``[training.before_to_disk]``: describe also components that were sourced from another
    pipeline, and not initialised by this training."""

    def fill(nlp: Language) -> Language:
        refresh(nlp)
        return nlp

    return fill


def record_scores(
    nlp: Language, examples: Iterable[Example], *, are_annotated: bool = False
) -> None:
    """Replace the scores in ``nlp.meta["performance"]``, after settings were changed, by those on
    these documents: the metrics that training reports. are_annotated: the pipeline has run."""
    scores = Scorer(nlp=nlp).score(examples) if are_annotated else nlp.evaluate(examples)
    weights = nlp.config.interpolate()["training"]["score_weights"]
    nlp.meta["performance"] = {x: scores[x] for x in weights if scores.get(x) is not None}


def refresh(nlp: Language) -> None:
    """Update encoders and settings of all components, and remove the entries of components that
    the pipeline does not contain."""
    old_entries = nlp.meta.get(KEY) or {}
    entries: dict[str, Any] = {}
    for name, pipe in nlp.components:  # also those that are disabled
        model: Any = getattr(pipe, "model", None)
        entry = _describe(model) if isinstance(model, Model) else {}
        if entry:
            old = old_entries.get(name, {})
            kept = {k: v for k, v in old.items() if k not in ("encoder", "settings")}
            entries[name] = {**entry, **kept}
            _add_source(nlp, entry)
    nlp.meta[KEY] = entries
    _show(nlp)


def _describe(model: Model) -> dict[str, Any]:
    """The source of the encoder in a model, if it has one with weights, and the layers' settings.
    Empty for a model of another package."""
    entry: dict[str, Any] = {}
    settings = _settings(model)
    if settings:
        entry["settings"] = settings
    for node in model.walk():
        if node.name == ENCODER and shim_of(node).module is not None:
            source = module_of(node).source
            entry["encoder"] = {
                "name": source.name,
                "sha256": source.sha256,
                "architecture": source.architecture,
            }
    return entry


def _add_source(nlp: Language, entry: dict[str, Any]) -> None:
    sources = nlp.meta.get("sources") or []
    known = {x.get("name") if isinstance(x, dict) else x for x in sources}
    if "encoder" in entry and entry["encoder"]["name"] not in known:
        nlp.meta["sources"] = [*sources, {"name": entry["encoder"]["name"]}]


def _show(nlp: Language) -> None:
    text = str(nlp.meta.get("notes") or "").partition(_HEADING)[0].rstrip()
    nlp.meta["notes"] = "\n\n".join(filter(None, [text, _notes(nlp.meta[KEY])]))


def _settings(model: Model) -> dict[str, Any]:
    """The plain values among the settings of all nodes, by name."""
    values: dict[str, Any] = {}
    for node in model.walk():
        settings = node.attrs.get("settings")
        if is_dataclass(settings):
            for field in fields(settings):
                value = getattr(settings, field.name)
                if isinstance(value, (str, int, float, list)) and field.name != "name":
                    values[field.name] = value
    return values


def _notes(entries: dict[str, Any]) -> str:
    lines = [
        _HEADING,
        "",
        "| Component | Encoder | Settings | Training data |",
        "|---|---|---|---|",
    ]
    for name, entry in entries.items():
        encoder = entry.get("encoder")
        source = "that of its `luke` component"
        if encoder is not None:
            parts = [f"`{encoder['name']}`", encoder["architecture"]]
            parts.append(f"SHA-256 `{encoder['sha256']}`" if encoder["sha256"] else "")
            source = "<br>".join(filter(None, parts))
        settings = ", ".join(f"{k} = {v}" for k, v in entry["settings"].items())
        if "preset" in entry:
            settings = f"preset `{entry['preset']}`: {settings}"
        counts = ", ".join(f"{k}: {v}" for k, v in entry.get("training_data", {}).items())
        lines.append(f"| `{name}` | {source} | {settings} | {counts or 'none recorded'} |")
    return "\n".join(lines)
