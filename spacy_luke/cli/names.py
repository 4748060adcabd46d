"""``spacy luke names``: the list of names of a saved pipeline."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from thinc.api import Config
from wasabi import Printer

from ..errors import ConfigError
from ..kb.entity import Findings
from ..kb.read_records import read_ids
from ..kb.store import verify
from ..names.layout import FOLDER, META, NAMES
from ..names.name_list import NameList
from ..names.read import read_names
from . import app, exit_on_error
from .loading import get_pipeline_directory, is_pipeline
from .saving import remove_scores

_LIST = (
    "JSON lines or CSV with name, label, and optionally id, aliases; patterns of entity_ruler or "
    "span_ruler; a knowledge base; or a saved list."
)


@app.command("names")
def names_cli(
    pipeline: Annotated[
        str,
        typer.Argument(
            metavar="PIPELINE",
            help="A trained pipeline with known_names, or a saved list. To change names, its "
            "directory; to count them, also an installed package.",
        ),
    ],
    replace: Annotated[
        Path | None,
        typer.Option("--set", help=f"The list, instead of the present one: {_LIST}"),
    ] = None,
    add: Annotated[Path | None, typer.Option(help="Names to add, in the same formats.")] = None,
    remove: Annotated[
        Path | None, typer.Option(help="Names to remove, as in the list, one per line.")
    ] = None,
    remove_ids: Annotated[
        Path | None, typer.Option(help="Ids whose names are removed, one per line.")
    ] = None,
    remove_label: Annotated[
        list[str] | None, typer.Option(help="Label whose names are removed; may be repeated.")
    ] = None,
    label: Annotated[str, typer.Option(help="Label of names without one.")] = "",
    component: Annotated[
        str, typer.Option(help="The component. Required if several have a list.")
    ] = "",
) -> None:
    """Replace, add and remove names of a saved pipeline, without training. Without a change, report
    how many there are per label.

    \b
    Example:
    python -m spacy luke names model-best --add products.csv --label PRODUCT
    """
    msg = Printer()
    with exit_on_error(msg):
        if label and replace is None and add is None:
            raise ConfigError("--label is for names that are read by --set or --add.")
        removals = {
            "names": [] if remove is None else list(read_ids(remove)),
            "ids": [] if remove_ids is None else [x.strip() for x in read_ids(remove_ids)],
            "labels": remove_label or [],
        }
        is_edit = add is not None or any(removals.values())
        in_place = is_edit or replace is not None
        path = get_pipeline_directory(pipeline, in_place)
        folder, lang = _find_list(path, component)
        opened = None
        if replace is None:
            names = opened = _open(folder, lang)
            if not is_edit:
                _report_labels(names, msg)
                return
        else:
            findings = Findings()
            names = NameList.build(read_names(replace, findings, label), lang, findings)
            _report(findings, msg)
        if is_edit:
            findings = Findings()
            added = () if add is None else read_names(add, findings, label)
            names = names.edited(added, **removals, findings=findings)
            _report(findings, msg)
        names.to_disk(folder, over=opened)
        if is_pipeline(path):
            remove_scores(path, {folder.parent.name: names.labels})
    msg.good(f"Saved {folder}")


def _find_list(path: Path, component: str) -> tuple[Path, str]:
    """The folder of a list, which may be missing, and its language. Raises ConfigError."""
    if (path / META).is_file():
        return path, NameList.open(path).lang
    if not is_pipeline(path):
        raise ConfigError(f"PIPELINE: {path} is neither a trained pipeline nor a list of names.")
    config = Config().from_disk(path / "config.cfg")
    names = [x for x, y in config["components"].items() if y.get("factory") == "known_names"]
    if component:
        if component not in names:
            raise ConfigError(f"--component is {component!r}; {_names_of(path, names)}")
        names = [component]
    if len(names) != 1:
        hint = " Choose one by --component." if names else ""
        raise ConfigError(f"PIPELINE: {_names_of(path, names)}{hint}")
    folder = path / names[0]
    if not (folder / "cfg").is_file():
        raise ConfigError(f"PIPELINE: {path} was saved without its component {names[0]!r}.")
    return folder / FOLDER, config["nlp"]["lang"]


def _open(folder: Path, lang: str) -> NameList:
    """The list in a folder, which is compared with its hashes; empty if there is no folder."""
    if not folder.exists():
        return NameList.build((), lang)
    verify(folder, NAMES)
    return NameList.open(folder)


def _report(findings: Findings, msg: Printer) -> None:
    for line in findings.lines():
        msg.text(line)


def _report_labels(names: NameList, msg: Printer) -> None:
    for label, n in Counter(x.label for x in names).most_common():
        msg.text(f"{label}: {n:,}")
    msg.text(f"names: {len(names.forms):,}")


def _names_of(path: Path, names: list[str]) -> str:
    return f"the known_names components of {path} are: {', '.join(names) or 'none'}."
