"""Stages: folders of finished partitions and a manifest.

A partition is written to a folder of its own under a temporary name and renamed when it is
complete, so a killed run leaves either a finished partition or nothing that counts, and starting
again computes what is missing. Nothing written depends on time, machine, or number of workers.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from ..files import sha256_of, whole_folder
from .claim import CLAIM, claimed
from .disk import read_json, write_json
from .engine import Engine
from .manifest import MANIFEST, Counts, Manifest, part_of, read_manifest

P = TypeVar("P")
Work = Callable[[P, Path], Counts]
"""Computes a partition: writes its files into an empty folder, returns what it counted."""


@dataclass(frozen=True)
class Stage:
    """A stage at work in a folder that it has for itself: see ``begin``."""

    name: str
    folder: Path
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    n_parts: int

    @property
    def finished(self) -> bool:
        """Whether it has come to its end before. Raises StageError where what it made is not there
        as it was written: whether to make it again is not for a program to decide."""
        if not (self.folder / MANIFEST).exists():
            return False
        read_manifest(self.folder, self.name).verify()
        return True

    def run(
        self, partitions: Sequence[P], work: Work, engine: Engine, show_progress: bool = True
    ) -> Manifest:
        """Compute the partitions that are not finished and write the manifest.

        work and partitions have to be picklable. Raises StageError, and what ``work`` raises.
        """
        if len(partitions) != self.n_parts:
            raise ValueError(f"{len(partitions)} partitions for a stage of {self.n_parts}.")
        folder, owner = self.folder, sha256_of(self.folder / CLAIM)
        names = [f"part-{i:05d}" for i in range(len(partitions))]
        missing = [i for i, name in enumerate(names) if not _is_finished(folder / name, owner)]
        if missing:
            (folder / MANIFEST).unlink(missing_ok=True)
        jobs = [(folder / names[i], partitions[i]) for i in missing]
        with tqdm(
            total=len(partitions),
            initial=len(partitions) - len(missing),
            desc=self.name,
            unit="part",
            disable=not show_progress,
        ) as bar:
            names_of_jobs = [f"{path} ({partition})" for path, partition in jobs]
            for _ in engine.map(partial(_run_part, work, owner), jobs, names_of_jobs):
                bar.update()
        if not (folder / MANIFEST).exists():
            self.conclude([read_json(folder / name / "part.json") for name in names])
        return read_manifest(folder, self.name)

    def conclude(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Write the manifest. parts: of every partition what ``part_of`` says."""
        counts: Counter[str] = Counter()
        for part in parts:
            counts.update(part["counts"])
        manifest = {
            "stage": self.name,
            "settings": dict(self.settings),
            "inputs": dict(self.inputs),
            "parts": [part["files"] for part in parts],
            "counts": dict(sorted(counts.items())),
        }
        write_json(self.folder / MANIFEST, manifest)


@contextlib.contextmanager
def begin(
    name: str,
    folder: Path,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    n_parts: int = 1,
) -> Iterator[Stage]:
    """A stage in a folder, which no other run has until it ends; what is in it is named from the
    root, because workers may be elsewhere.

    settings, inputs, n_parts: what the result depends on; a folder where something is finished with
    others is refused. Raises ConfigError and StageError.
    """
    purpose = {
        "stage": name,
        "settings": dict(settings),
        "inputs": dict(inputs),
        "n_parts": n_parts,
    }
    folder = folder.absolute()
    with claimed(folder, purpose):
        yield Stage(name, folder, settings, inputs, n_parts)


def _run_part(work: Work, owner: str, job: tuple[Path, Any]) -> None:
    target, partition = job
    # A worker that a run before this one lost may have finished the partition: it is the same.
    finished = partial(_is_finished, target, owner)
    with whole_folder(target, durable=True, keep=finished) as folder:
        counts = dict(work(partition, folder))
        part = {"claim": owner, **part_of(folder, target.name, counts)}
        write_json(folder / "part.json", part)


def _is_finished(part: Path, owner: str) -> bool:
    """Whether a partition is there, and of this claim: a worker that outlived its run may write one
    of settings that have been corrected since."""
    path = part / "part.json"
    return path.exists() and read_json(path).get("claim") == owner
