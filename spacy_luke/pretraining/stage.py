"""Stages of preparation: folders of finished partitions and a manifest.

A partition is written to a folder of its own under a temporary name and renamed when it is
complete, so a killed run leaves either a finished partition or nothing that counts, and starting
again computes what is missing. Nothing written depends on time, machine, or number of workers.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import srsly
from tqdm import tqdm

from ..errors import ConfigError, CorpusError, StageError
from .engine import Engine

P = TypeVar("P")
Counts = Mapping[str, int]
Work = Callable[[P, Path], Counts]
"""Computes a partition: writes its files into an empty folder, returns what it counted."""

VERSION = 1
_CLAIM = "stage.json"
_FINISHED = ("part-*/part.json", "checkpoints/*/state.json", "manifest.json")
_MENDS = {
    "manifest.json": "Remove it and run the stage again: what is finished is kept.",
    "stage.json": "Name another folder.",
}
_SAMPLE = 1 << 20


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
        return sha256(self.folder / "manifest.json")


def verified(folder: Path, file: File, stage: str) -> Path:
    """Where a file of a stage is. Raises StageError if it is missing or differs from what was
    written."""
    path = folder / file.path
    if not path.exists():
        raise StageError(f"{path} is missing; its manifest names it.")
    if path.stat().st_size != file.size or sha256(path) != file.sha256:
        raise StageError(
            f"{path} is not what was written: its SHA-256 differs from the manifest's. "
            f"Remove its folder and manifest.json beside it and run '{stage}' again."
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
    path = folder / "manifest.json"
    if not path.exists():
        raise StageError(f"{folder} holds no finished stage '{stage}': {path.name} is missing.")
    data = read_json(path)
    try:
        found = data["stage"]
        parts = [[File(**file) for file in part] for part in data["parts"]]
        manifest = Manifest(found, data["settings"], data["inputs"], parts, data["counts"], folder)
    except (KeyError, TypeError) as error:
        raise StageError(f"{path} is not a manifest: {error!r}.") from error
    if found != stage:
        raise StageError(f"{folder} holds the stage '{found}', not '{stage}'.")
    return manifest


def run_stage(
    stage: str,
    folder: Path,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    partitions: Sequence[P],
    work: Work,
    engine: Engine,
    show_progress: bool = True,
) -> Manifest:
    """Compute the partitions that are not finished and write the manifest.

    settings, inputs: what the result depends on; a folder made with others is refused. work and
    partitions have to be picklable. Raises StageError, and what ``work`` raises.
    """
    with claimed(folder, stage, settings, inputs, len(partitions)):
        return run_claimed(stage, folder, settings, inputs, partitions, work, engine, show_progress)


def run_claimed(
    stage: str,
    folder: Path,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    partitions: Sequence[P],
    work: Work,
    engine: Engine,
    show_progress: bool = True,
) -> Manifest:
    """``run_stage`` in a folder that is claimed."""
    owner = sha256(folder / _CLAIM)
    names = [f"part-{i:05d}" for i in range(len(partitions))]
    missing = [i for i, name in enumerate(names) if not _is_finished(folder / name, owner)]
    if missing:
        (folder / "manifest.json").unlink(missing_ok=True)
    _sweep(folder)
    jobs = [(folder / names[i], partitions[i]) for i in missing]
    with tqdm(
        total=len(partitions),
        initial=len(partitions) - len(missing),
        desc=stage,
        unit="part",
        disable=not show_progress,
    ) as bar:
        names_of_jobs = [f"{path} ({partition})" for path, partition in jobs]
        for _ in engine.map(partial(_run_part, work, owner), jobs, names_of_jobs):
            bar.update()
    if not (folder / "manifest.json").exists():
        parts = [read_json(folder / name / "part.json") for name in names]
        conclude(folder, stage, settings, inputs, parts)
    return read_manifest(folder, stage)


def _run_part(work: Work, owner: str, job: tuple[Path, Any]) -> None:
    target, partition = job
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    temporary.mkdir()
    try:
        counts = dict(work(partition, temporary))
        part = {"claim": owner, **part_of(temporary, target.name, counts)}
        write_json(temporary / "part.json", part)
        sync_folder(temporary)
        if _is_finished(target, owner):
            return  # by a worker that a run before this one lost: it is the same
        if target.exists():  # what is left of a partition, or of other settings
            shutil.rmtree(target)
        temporary.rename(target)
        sync(target.parent)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StageError(
                f"The disk of {target.parent} is full. Make room and start again: finished "
                "partitions are kept."
            ) from error
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _is_finished(part: Path, owner: str) -> bool:
    """Whether a partition is there, and of this claim: a worker that outlived its run may write one
    of settings that have been corrected since."""
    path = part / "part.json"
    return path.exists() and read_json(path).get("claim") == owner


def part_of(folder: Path, name: str, counts: Counts) -> dict[str, Any]:
    """What a manifest says of the files in a folder that is, or is going to be, called so."""
    files = [
        {"path": f"{name}/{path.name}", "sha256": sha256(path), "size": path.stat().st_size}
        for path in sorted(folder.iterdir())
    ]
    return {"files": files, "counts": dict(counts)}


@contextlib.contextmanager
def claimed(
    folder: Path, stage: str, settings: Mapping[str, Any], inputs: Mapping[str, str], n_parts: int
) -> Iterator[None]:
    """Have a folder for a stage, and alone: what it is for is written down there. One that is for
    something else is refused, once something is finished in it. Raises ConfigError and
    StageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise ConfigError(f"{folder} is a file; name a folder.") from error
    with alone(folder):
        _claim(folder, stage, settings, inputs, n_parts)
        yield


def _claim(
    folder: Path, stage: str, settings: Mapping[str, Any], inputs: Mapping[str, str], n_parts: int
) -> None:
    path = folder / _CLAIM
    mine = {
        "version": VERSION,
        "stage": stage,
        "settings": dict(settings),
        "inputs": dict(inputs),
        "n_parts": n_parts,
    }
    if not path.exists():
        if any(not x.name.startswith(".") for x in folder.iterdir()):
            raise ConfigError(f"{folder} is not empty and not of a stage '{stage}'; name another.")
        write_json(path, mine)
        return
    theirs = read_json(path)
    if any(next(folder.glob(name), None) for name in _FINISHED):
        refuse_other(folder, theirs, mine)
    elif theirs != srsly.json_loads(srsly.json_dumps(mine)):
        # What was wrong with the settings may be what ended that run.
        for before in folder.glob(f".*/{_CLAIM}"):  # stages that it had for itself
            shutil.rmtree(before.parent)
        write_json(path, mine)


def refuse_other(path: Path, theirs: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Raises ConfigError, naming the first value that differs: ``path`` is of another run."""
    before, now = _flat(theirs), _flat(srsly.json_loads(srsly.json_dumps(mine)))
    for name in {**now, **before}:
        if before.get(name) != now.get(name):
            raise ConfigError(
                f"{path} was begun with {name} = {before.get(name)!r}, this run has "
                f"{now.get(name)!r}. Name another folder, or remove that one."
            )


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(tree, list):
        tree = dict(enumerate(tree))
    if not isinstance(tree, Mapping) or not tree:
        return {prefix.rstrip("."): tree}
    parts = [_flat(value, f"{prefix}{key}.") for key, value in tree.items()]
    return {name: value for part in parts for name, value in part.items()}


def conclude(
    folder: Path,
    stage: str,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    parts: Sequence[Mapping[str, Any]],
) -> None:
    """Write the manifest. parts: of every partition what ``part_of`` says."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part["counts"])
    manifest = {
        "stage": stage,
        "settings": dict(settings),
        "inputs": dict(inputs),
        "parts": [part["files"] for part in parts],
        "counts": dict(sorted(counts.items())),
    }
    write_json(folder / "manifest.json", manifest)


def _sweep(folder: Path) -> None:
    """Remove what killed workers left."""
    for path in folder.glob(".part-*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(".*.json.*"):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One run at a time in a folder; the lock goes with its process."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StageError(f"Another run is at work in {folder}.") from error
        yield


def read_json(path: Path) -> dict[str, Any]:
    """A file that ``write_json`` wrote. Raises StageError where it is damaged."""
    mend = _MENDS.get(path.name, "Remove its folder: what is there is made again.")
    try:
        found = srsly.read_json(path)
    except ValueError as error:
        raise StageError(f"{path} is damaged: {error}. {mend}") from error
    if not isinstance(found, dict):
        raise StageError(f"{path} is damaged: it holds no object. {mend}")
    return found


def write_json(path: Path, data: Any) -> None:
    """Write a file at once or not at all."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    temporary.write_text(srsly.json_dumps(data, indent=1) + "\n", encoding="utf8")
    sync(temporary)
    temporary.rename(path)


def sync_folder(folder: Path) -> None:
    """Have the files of a folder, and their names, on the disk."""
    for path in folder.iterdir():
        sync(path)
    sync(folder)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """Of a whole file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_SAMPLE):
            digest.update(block)
    return digest.hexdigest()


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


def fingerprint(path: Path) -> str:
    """Size and a hash of the first and last MiB: dumps are too large to read twice. Raises
    CorpusError where the file is missing."""
    if not path.is_file():
        raise CorpusError(f"{path} is not a file.")
    size = path.stat().st_size
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_SAMPLE))
        file.seek(max(0, size - _SAMPLE))
        digest.update(file.read(_SAMPLE))
    return f"{size}:{digest.hexdigest()[:32]}"
