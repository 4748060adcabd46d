"""What pretraining does for GPUs, as far as a CPU shows it."""

import os
import subprocess
import sys
from pathlib import Path

import torch

from spacy_luke.pretraining.determinism import deterministic

ROOT = Path(__file__).parents[2]


def test_processes_wait_for_the_main_one_longer_than_a_collective_does(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    processes = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("run_waiting.py")), str(rank), tmp_path],
            env={**os.environ, "PYTHONPATH": paths},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors


def test_determinism_ends_with_its_block() -> None:
    with deterministic(True):
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(False):
        assert not torch.are_deterministic_algorithms_enabled()
