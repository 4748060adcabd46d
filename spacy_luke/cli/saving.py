"""Shared by commands: pipelines and files that appear whole or not at all."""

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import srsly
from spacy.language import Language

from ..errors import ConfigError
from ..files import whole_file, whole_folder
from ..kb.layout import KNOWLEDGE_BASE, Layout
from ..kb.store import check_replaceable

SIGNS = ("meta.json", "config.cfg")
"""Files that every pipeline has."""


def check_free(
    out: Path,
    force: bool = False,
    signs: Sequence[str] = SIGNS,
    own: Collection[str] | None = None,
) -> None:
    """Raise ConfigError if the directory is not empty or a file exists.

    force: a directory with the files ``signs`` is allowed, by default a pipeline. own: all that it
        may contain, if other files in it are not kept.
    """
    check_movable(out)
    if force and all((out / sign).is_file() for sign in signs):
        others = sorted(x.name for x in out.iterdir() if own is not None and x.name not in own)
        if others:
            raise ConfigError(f"{out} contains {others[0]}, too. Choose another directory.")
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        only = f"--force only replaces one with {' and '.join(signs)}"
        advice = only if force else "use --force to replace it"
        raise ConfigError(f"{out} exists; {advice}, or choose another directory.")


def check_store(out: Path, force: bool, layout: Layout = KNOWLEDGE_BASE) -> None:
    """Raise an error if a directory is not empty; with ``force``, if anything else is in it than
    what ``layout`` says."""
    if force:
        check_movable(out)
        check_replaceable(out, layout)
    else:
        check_free(out)


def check_movable(out: Path) -> None:
    """Raise ConfigError if a directory cannot be replaced as a whole."""
    is_mount = out.resolve().is_mount()  # of ".", this is always true
    if is_mount or _is_current(out):
        kind = "a mount point" if is_mount else "the current directory"
        raise ConfigError(
            f"{out} is {kind}: it cannot be replaced as a whole, as what is written there is. Name "
            "a directory in it."
        )


def _is_current(out: Path) -> bool:
    try:
        return out.resolve() == Path.cwd()
    except FileNotFoundError:  # the current directory was removed
        return False


def check_file(out: Path, force: bool = False) -> None:
    """Raise ConfigError if a file exists, unless ``force``, or if a directory does, or if it would
    be in a file."""
    if out.is_dir():
        raise ConfigError(f"{out} is a directory; give the name of a file.")
    for folder in out.parents:
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{out} cannot be written: {folder} is a file.")
    if out.exists() and not force:
        raise ConfigError(f"{out} exists; use --force to replace it, or choose another file.")


def save_json(out: Path, content: Any) -> None:
    """Write a JSON file, and the folder that it is in. The file appears when it is complete."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(out) as temporary:
        text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
        temporary.write_text(text, encoding="utf8")


def save_pipeline(nlp: Language, out: Path, force: bool = False) -> None:
    """Write a pipeline to a directory. The directory appears when it is complete.

    force: it may be another pipeline, which is replaced. Other files in it are kept.
    """
    check_free(out, force)
    out.resolve().parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(out) as temporary:
        nlp.to_disk(temporary)
        replaced = _own_entries(out)
        _keep_others(out, temporary, {*replaced, *(x.name for x in temporary.iterdir())})


def _own_entries(pipeline: Path) -> set[str]:
    """What a pipeline has written to its directory, if it is one."""
    if not (pipeline / SIGNS[0]).is_file():
        return set()
    try:
        meta = srsly.read_json(pipeline / SIGNS[0])
    except ValueError:  # damaged
        meta = None
    names = meta.get("components") if isinstance(meta, dict) else None
    own = [x for x in names if isinstance(x, str)] if isinstance(names, list) else []
    return {*SIGNS, "tokenizer", "vocab", *own}


def _keep_others(out: Path, temporary: Path, replaced: Collection[str]) -> None:
    """Copy what else is in a directory to the one that takes its place."""
    for path in out.iterdir() if out.exists() else ():
        if path.name in replaced:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, temporary / path.name, symlinks=True)
        else:
            shutil.copy2(path, temporary / path.name, follow_symlinks=False)


def remove_scores(pipeline: Path, labels: Mapping[str, Sequence[str]] | None = None) -> None:
    """Remove the scores in the ``meta.json`` of a pipeline, which predicts otherwise now.

    labels: of components that have others now.
    """
    path = pipeline / "meta.json"
    before = srsly.read_json(path)
    meta = {**before, "performance": {}} if before.get("performance") else dict(before)
    if labels:
        meta["labels"] = {**meta.get("labels", {}), **{x: list(y) for x, y in labels.items()}}
    if meta != before:
        with whole_file(path) as temporary:
            srsly.write_json(temporary, meta)


def check_apart(out: Path, pipeline: Path, nlp: Language) -> None:
    """Raise ConfigError if a file would take the place of a pipeline or of its own files."""
    inner, folder = out.resolve(), pipeline.resolve()
    own = {"meta.json", "config.cfg", "tokenizer", "vocab", *nlp.component_names}
    is_own = folder in inner.parents and inner.relative_to(folder).parts[0] in own
    if is_own or inner == folder or inner in folder.parents:
        raise ConfigError(f"{out} would replace files of the pipeline {pipeline}; give another.")


State = dict[str, frozenset[tuple[str, int, int, int]]]
"""Path, inode, size and time of change of each file, by the entry of the directory."""


def state_of(folder: Path) -> State:
    state = {}
    for entry in folder.iterdir() if folder.is_dir() else ():
        real = entry.resolve()  # the folder of a component may be a link
        found = [(x, x.stat()) for x in (real, *real.rglob("*")) if x.is_file()]
        files = ((str(x), s.st_ino, s.st_size, s.st_mtime_ns) for x, s in found)
        state[entry.name] = frozenset(files)
    return state


def update_pipeline(nlp: Language, out: Path, before: State) -> None:
    """Replace the pipeline in a directory atomically. Other files in it are kept.

    before: the :func:`state_of` the directory before the pipeline was loaded. Raises ConfigError,
    and changes nothing, if files that would be replaced were changed since, as by an edit of names.
    """
    with whole_folder(out) as temporary:
        nlp.to_disk(temporary)
        written = {path.name for path in temporary.iterdir()}
        _keep_others(out, temporary, written)
        now = state_of(out)
        if any(now.get(name) != before.get(name) for name in written):
            raise ConfigError(
                f"{out} was changed while this ran, and was not replaced. Run it again."
            )
