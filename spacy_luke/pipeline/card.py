"""What a component is made of, in the pipeline's ``meta.json``; ``spacy package`` shows it."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from spacy.language import Language
from thinc.api import Model

from ..layers.encoder import ENCODER, module_of

KEY = "luke"
_HEADING = "### Encoders and training data"


def record(nlp: Language | None, name: str, model: Model, training_data: dict[str, int]) -> None:
    """Describe an initialised component in ``nlp.meta``.

    ``meta["luke"][name]`` gets the encoder's source (name, SHA-256 of its weight files, published
    class), the settings of its layers, and what was counted in the training data; ``sources`` names
    the source; ``notes`` show all of it, below what is there. A directory's path is not kept, only
    its name. training_data: counts by what was counted; empty where there was none.
    """
    if nlp is None or name not in nlp.pipe_names:
        return
    entry: dict[str, Any] = {"settings": _settings(model)}
    for node in model.walk():
        if node.name == ENCODER:
            source = module_of(node).source
            entry["encoder"] = {
                "name": Path(source.name).name if Path(source.name).is_dir() else source.name,
                "sha256": source.sha256,
                "architecture": source.architecture,
            }
    if training_data and any(training_data.values()):
        entry["training_data"] = dict(training_data)
    nlp.meta.setdefault(KEY, {})[name] = entry
    if "encoder" in entry:
        sources = nlp.meta.get("sources") or []
        known = {source.get("name") for source in sources}
        if entry["encoder"]["name"] not in known:
            nlp.meta["sources"] = [*sources, {"name": entry["encoder"]["name"]}]
    _show(nlp)


def record_preset(nlp: Language, name: str, preset: str) -> None:
    """Add to what :func:`record` wrote which preset a component's settings were taken from."""
    nlp.meta[KEY][name]["preset"] = preset
    _show(nlp)


def _show(nlp: Language) -> None:
    before = str(nlp.meta.get("notes") or "").partition(_HEADING)[0].rstrip()
    nlp.meta["notes"] = "\n\n".join(filter(None, [before, _notes(nlp.meta[KEY])]))


def _settings(model: Model) -> dict[str, Any]:
    """The settings of the nodes that have some, as plain values."""
    found: dict[str, Any] = {}
    for node in model.walk():
        settings = node.attrs.get("settings")
        if is_dataclass(settings):
            for field in fields(settings):
                value = getattr(settings, field.name)
                if isinstance(value, (str, int, float, list)) and field.name != "name":
                    found[field.name] = value
    return found


def _notes(entries: dict[str, Any]) -> str:
    lines = [
        _HEADING,
        "",
        "| Component | Encoder | Settings | Training data |",
        "|---|---|---|---|",
    ]
    for name, entry in entries.items():
        encoder = entry.get("encoder")
        shown = "that of its `luke` component"
        if encoder is not None:
            parts = [f"`{encoder['name']}`", encoder["architecture"]]
            parts.append(f"SHA-256 `{encoder['sha256']}`" if encoder["sha256"] else "")
            shown = "<br>".join(filter(None, parts))
        settings = ", ".join(f"{k} = {v}" for k, v in entry["settings"].items())
        if "preset" in entry:
            settings = f"preset `{entry['preset']}`: {settings}"
        counts = ", ".join(f"{k}: {v}" for k, v in entry.get("training_data", {}).items())
        lines.append(f"| `{name}` | {shown} | {settings} | {counts or 'not trained here'} |")
    return "\n".join(lines)
