"""What a finished stage says of itself: what it read, what it wrote, and what it counted."""

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
    """A file of a finished partition. path: relative to the manifest's folder; size: bytes."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """What a finished stage holds.

    settings: everything the files depend on. inputs: fingerprints of what was read. parts: the
    files of each partition, in order. counts: kept and dropped, by name, of all partitions.
    """

    stage: str
    settings: dict[str, Any]
    inputs: dict[str, str]
    parts: list[list[File]]
    counts: dict[str, int]
    folder: Path

    def files(self, name: str) -> list[File]:
        """The file of that name in every partition that has one, in order."""
        return [file for part in self.parts for file in part if Path(file.path).name == name]

    def paths(self, name: str) -> list[Path]:
        """Where these files are."""
        return [self.folder / file.path for file in self.files(name)]

    def verify(self) -> None:
        """Raises StageError if a file is missing or differs from what was written."""
        for file in (file for part in self.parts for file in part):
            verified(self.folder, file, self.stage)

    @property
    def fingerprint(self) -> str:
        """What a later stage writes down as its input."""
        return sha256_of(self.folder / MANIFEST)


def verified(folder: Path, file: File, stage: str) -> Path:
    """Where a file of a stage is. Raises StageError if it is missing or differs from what was
    written."""
    path = folder / file.path
    again = f"To have it again, remove its folder and {MANIFEST} beside it and run '{stage}'."
    if not path.exists():
        raise StageError(f"{path} is missing; its manifest names it. {again}")
    if path.stat().st_size != file.size or sha256_of(path) != file.sha256:
        raise StageError(
            f"{path} is not what was written: its SHA-256 differs from the manifest's. {again}"
        )
    return path


def by_input(articles: Sequence[Manifest]) -> dict[str, Manifest]:
    """Sets of articles by what stages call them among their inputs: by place and language, because
    partitions follow their order. Raises ConfigError where a set is given twice."""
    named: dict[str, Manifest] = {}
    known: dict[str, Path] = {}
    for i, manifest in enumerate(articles):
        same = known.get(manifest.fingerprint)
        if same is not None:
            raise ConfigError(f"{manifest.folder} holds the same articles as {same}.")
        known[manifest.fingerprint] = manifest.folder
        named[f"articles {i} {manifest.settings['language']}"] = manifest
    return named


def read_manifest(folder: Path, stage: str) -> Manifest:
    """The manifest of a finished stage. Raises StageError."""
    folder = folder.absolute()
    path = folder / MANIFEST
    if not path.exists():
        raise StageError(f"{folder} holds no finished stage '{stage}': {path.name} is missing.")
    data = read_json(path, "Remove it and run the stage again: what is finished is kept.")
    try:
        found = data["stage"]
        parts = [[File(**file) for file in part] for part in data["parts"]]
        manifest = Manifest(found, data["settings"], data["inputs"], parts, data["counts"], folder)
    except (KeyError, TypeError) as error:
        raise StageError(f"{path} is not a manifest: {error!r}.") from error
    if found != stage:
        raise StageError(f"{folder} holds the stage '{found}', not '{stage}'.")
    return manifest


def part_of(folder: Path, name: str, counts: Counts) -> dict[str, Any]:
    """What a manifest says of the files in a folder that is, or is going to be, called so."""
    files = [
        {"path": f"{name}/{path.name}", "sha256": sha256_of(path), "size": path.stat().st_size}
        for path in sorted(folder.iterdir())
    ]
    return {"files": files, "counts": dict(counts)}


def files_of_input(paths: Sequence[Path]) -> dict[str, str]:
    """Fingerprints of files by what stages call them among their inputs: by place and name. Raises
    ConfigError where a file is given twice, and CorpusError where one is missing."""
    named: dict[str, str] = {}
    known: dict[str, Path] = {}
    for i, path in enumerate(paths):
        found = named[f"{i} {path.name}"] = fingerprint(path)
        if found in known and not found.startswith("0:"):
            raise ConfigError(f"{path} holds the same as {known[found]}: it would count twice.")
        known[found] = path
    return named
