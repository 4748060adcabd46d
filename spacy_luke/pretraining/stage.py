"""Stages: folders of finished partitions and a manifest.

A partition is written to a folder with a temporary name, which is renamed when it is complete. So
after a run is killed, partitions are either finished or missing, and the next run computes those
that are missing. No output depends on time, machine, or number of workers.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from ..files import remove_unfinished, sha256_of, whole_folder
from .disk import read_json, write_json
from .engine import Engine
from .manifest import MANIFEST, Counts, Manifest, part_of, read_manifest
from .stage_lock import RECORD, locked

_OWNER = "claim"  # key in part.json: hash of the record of the stage that wrote the partition

P = TypeVar("P")
Work = Callable[[P, Path], Counts]
"""Computes a partition: writes its files into an empty folder and returns counts."""


@dataclass(frozen=True)
class Stage:
    """A running stage in a locked folder; see ``begin``."""

    name: str
    folder: Path
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    n_parts: int

    @property
    def finished(self) -> bool:
        """Whether a previous run finished the stage. Raises StageError if a file is missing or
        damaged: the user decides whether to make it again."""
        if not (self.folder / MANIFEST).exists():
            return False
        read_manifest(self.folder, self.name).verify()
        return True

    def run(
        self,
        partitions: Sequence[P],
        work: Work,
        engine: Engine,
        show_progress: bool = True,
        more: Counts | None = None,
    ) -> Manifest:
        """Compute the unfinished partitions and write the manifest.

        work, partitions: must be picklable. more: counts that are added to those of the partitions.
        Raises StageError, and the exceptions of ``work``.
        """
        if len(partitions) != self.n_parts:
            raise ValueError(f"{len(partitions)} partitions for a stage of {self.n_parts}.")
        folder, owner = self.folder, sha256_of(self.folder / RECORD)
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
            job_names = [f"{path} ({partition})" for path, partition in jobs]
            for _ in engine.map(partial(_run_part, work, owner), jobs, job_names):
                bar.update()
        if not (folder / MANIFEST).exists():
            self.conclude([read_json(folder / name / "part.json") for name in names], more)
        remove_unfinished(folder)  # of workers that died; all parts are there
        return read_manifest(folder, self.name)

    def conclude(self, parts: Sequence[Mapping[str, Any]], more: Counts | None = None) -> None:
        """Write the manifest. parts: the result of ``part_of`` for each partition."""
        counts: Counter[str] = Counter(more or {})
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
    """Run a stage in a folder, which is locked until it ends.

    settings, inputs, n_parts: what the result depends on. Raises ConfigError if the folder contains
    finished parts with other values, and StageError if it is locked.
    """
    record = {
        "stage": name,
        "settings": dict(settings),
        "inputs": dict(inputs),
        "n_parts": n_parts,
    }
    folder = folder.absolute()  # workers may run in another folder
    with locked(folder, record):
        yield Stage(name, folder, settings, inputs, n_parts)


def _run_part(work: Work, owner: str, job: tuple[Path, Any]) -> None:
    target, partition = job
    # A worker of a killed run may have finished the partition meanwhile: its result is the same.
    finished = partial(_is_finished, target, owner)
    with whole_folder(target, durable=True, keep=finished) as folder:
        counts = dict(work(partition, folder))
        part = {_OWNER: owner, **part_of(folder, target.name, counts)}
        write_json(folder / "part.json", part)


def _is_finished(part: Path, owner: str) -> bool:
    """Whether a partition is finished and has the current settings: a worker of a killed run may
    write one with older settings."""
    path = part / "part.json"
    return path.exists() and read_json(path).get(_OWNER) == owner
