"""Cases in a process of their own, with the emulated device."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import write_checkpoint
from tests.gpu.emulation.cuda_library import build, missing
from tests.saved.make import TINY

ROOT = Path(__file__).parents[2]

Record = dict[str, Any]


def prepare(folder: Path) -> None:
    """The device's library, and the encoders of the cases. Skips the test if the device cannot be
    emulated here."""
    if reason := missing():
        pytest.skip(reason)
    build()
    make_checkpoints(folder)


def make_checkpoints(folder: Path) -> None:
    """The encoders of the cases."""
    for name, kind in (("luke", "bert-luke"), ("bert", "bert")):
        (folder / name).mkdir()
        write_checkpoint(folder / name, kind, None, **TINY)


def run_emulated(
    command: list[str], root: Path = ROOT, timeout: float = 800
) -> subprocess.CompletedProcess[str]:
    """Run ``python ...`` with the package and the tests of a clone's root."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def run_cases(folder: Path, *names: str, root: Path = ROOT) -> dict[str, Record]:
    """Case -> its record; all of them if none is named. folder: of :func:`make_checkpoints`. Raises
    AssertionError if the process ends badly, as it does if the package cannot be imported."""
    result = run_emulated(["-m", "tests.gpu.run_cases", str(folder), *names], root)
    assert result.returncode == 0, result.stderr[-3000:]
    lines = [line for line in result.stdout.splitlines() if line.startswith('{"case"')]
    return {record["case"]: record for record in map(json.loads, lines)}
