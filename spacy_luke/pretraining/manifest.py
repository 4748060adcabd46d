"""The manifest of a finished stage: inputs, files and counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError, StageError
from ..files import sha256_of
from .disk import fingerprint, read_json

MANIFEST = "manifest.json"
Counts = Mapping[str, int]


@dataclass(frozen=True)
class File:
    """A file of a finished partition. path: relative to the manifest's folder. size: in bytes."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """The content of a finished stage.

    settings: all settings on which the files depend. inputs: name -> fingerprint. parts: the files
    of each partition, in order. counts: name -> number of kept or dropped items.
    """

    stage: str
    settings: dict[str, Any]
    inputs: dict[str, str]
    parts: list[list[File]]
    counts: dict[str, int]
    folder: Path

    def files(self, name: str) -> list[File]:
        """The files of that name, in the order of partitions."""
        return [file for part in self.parts for file in part if Path(file.path).name == name]

    def paths(self, name: str) -> list[Path]:
        """The paths of :meth:`files`."""
        return [self.folder / file.path for file in self.files(name)]

    def verify(self) -> None:
        """Raise StageError if a file is missing or damaged."""
        for file in (file for part in self.parts for file in part):
            verified(self.folder, file, self.stage)

    @property
    def fingerprint(self) -> str:
        """The hash by which later stages identify this input."""
        return sha256_of(self.folder / MANIFEST)


def verified(folder: Path, file: File, stage: str) -> Path:
    """The path of a file of a stage. Raises StageError if it is missing or damaged."""
    path = folder / file.path
    remedy = f"To restore it, remove its folder and {MANIFEST} beside it and run '{stage}'."
    if not path.exists():
        raise StageError(f"{path} is missing, but its manifest lists it. {remedy}")
    if path.stat().st_size != file.size or sha256_of(path) != file.sha256:
        raise StageError(f"{path} is damaged: its SHA-256 differs from the manifest's. {remedy}")
    return path


def by_input(articles: Sequence[Manifest]) -> dict[str, Manifest]:
    """Name of the input -> set of articles. The name contains the position, because partitions
    follow the order. Raises ConfigError if a set is given twice."""
    inputs: dict[str, Manifest] = {}
    folders: dict[str, Path] = {}
    for i, manifest in enumerate(articles):
        same = folders.get(manifest.fingerprint)
        if same is not None:
            raise ConfigError(f"{manifest.folder} contains the same articles as {same}.")
        folders[manifest.fingerprint] = manifest.folder
        inputs[f"articles {i} {manifest.settings['language']}"] = manifest
    return inputs


def read_manifest(folder: Path, stage: str) -> Manifest:
    """The manifest of a finished stage. Raises StageError."""
    folder = folder.absolute()
    path = folder / MANIFEST
    if not path.exists():
        raise StageError(f"{folder} contains no finished stage '{stage}': {path.name} is missing.")
    data = read_json(path, "Remove it and run the stage again: finished parts are kept.")
    try:
        name = data["stage"]
        parts = [[File(**file) for file in part] for part in data["parts"]]
        manifest = Manifest(name, data["settings"], data["inputs"], parts, data["counts"], folder)
    except (KeyError, TypeError) as error:
        raise StageError(f"{path} is not a manifest: {error!r}.") from error
    if name != stage:
        raise StageError(f"{folder} contains the stage '{name}', not '{stage}'.")
    return manifest


def part_of(folder: Path, name: str, counts: Counts) -> dict[str, Any]:
    """The manifest entry of the files in a folder. name: the folder's final name."""
    files = [
        {"path": f"{name}/{path.name}", "sha256": sha256_of(path), "size": path.stat().st_size}
        for path in sorted(folder.iterdir())
    ]
    return {"files": files, "counts": dict(counts)}


def files_of_input(paths: Sequence[Path]) -> dict[str, str]:
    """Name of the input (position and file name) -> fingerprint. Raises ConfigError if a file is
    given twice, and CorpusError if one is missing."""
    inputs: dict[str, str] = {}
    paths_by_hash: dict[str, Path] = {}
    for i, path in enumerate(paths):
        digest = inputs[f"{i} {path.name}"] = fingerprint(path)
        if digest in paths_by_hash and not digest.startswith("0:"):
            raise ConfigError(f"{path} is a copy of {paths_by_hash[digest]}: it would count twice.")
        paths_by_hash[digest] = path
    return inputs
