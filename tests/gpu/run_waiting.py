"""One of two processes: ``python run_waiting.py RANK FOLDER``. The first is busy for longer than a
collective waits."""

import sys
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch.distributed as dist

from spacy_luke.pretraining.training import Trainer

TIMEOUT, BUSY = 5.0, 7.0
"""Seconds."""


def meet(rank: int, folder: Path) -> None:
    """Wait until both processes have imported everything, which takes longer than a collective."""
    (folder / str(rank)).touch()
    while not (folder / str(1 - rank)).exists():
        time.sleep(0.01)


if __name__ == "__main__":
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    meet(rank, folder)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=TIMEOUT),
    )
    trainer: Any = SimpleNamespace(accelerator=SimpleNamespace(num_processes=2))
    with Trainer.waiting(trainer):
        if rank == 0:
            time.sleep(BUSY)
    dist.destroy_process_group()
