"""Where several commands save a pipeline: whole or not at all."""

import shutil
from pathlib import Path

from spacy.language import Language

from ..errors import ConfigError
from ..files import whole_folder


def check_free(out: Path, force: bool = False) -> None:
    """Raise ConfigError where there is something that a pipeline would be written over; with
    ``force`` only where that is no pipeline."""
    if force and (out / "meta.json").is_file():
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"OUT: {out} exists; remove it or name another directory.")


def save_pipeline(nlp: Language, out: Path, force: bool = False) -> None:
    """Write a pipeline to a directory that appears when it is complete."""
    check_free(out, force)
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(out) as temporary:
        nlp.to_disk(temporary)


def update_pipeline(nlp: Language, out: Path) -> None:
    """Write a pipeline in place of what is in a directory, all at once. Files that are not the
    pipeline's stay."""
    out = out.resolve()  # a link stays a link
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(out) as temporary:
        nlp.to_disk(temporary)
        written = {path.name for path in temporary.iterdir()}
        others = [x for x in out.iterdir() if x.name not in written] if out.exists() else []
        for path in others:
            if path.is_dir() and not path.is_symlink():
                shutil.copytree(path, temporary / path.name, symlinks=True)
            else:
                shutil.copy2(path, temporary / path.name, follow_symlinks=False)
