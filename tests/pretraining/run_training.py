"""Trains in processes of their own: ``python run_training.py WORLD ENCODER OUT SETTINGS`` for
torchrun, and :func:`start` for all others, which then need no seconds for imports. WORLD is what
``make_world`` wrote; SETTINGS is JSON."""

import atexit
import json
import os
import socket
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.errors import ConfigError
from spacy_luke.model import precision
from spacy_luke.pretraining import pretrain as with_plots
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.pretrain import pretrain
from spacy_luke.pretraining.settings import ModelSettings, Phase, TrainingSettings
from tests.workers import quick_context


def settings_of(values: dict[str, Any]) -> TrainingSettings:
    phases = values.pop("phases", [(4, 1e-3, False)])
    defaults = {"batch_size": 8, "micro_batch": 4, "warmup": 0.1, "log_every": 1}
    defaults |= {"save_every": 2, "evaluate_every": 100}
    return TrainingSettings(phases=tuple(Phase(*x) for x in phases), **(defaults | values))


def run(world: Path, encoder: Path, folder: Path, values: dict[str, Any], **more: Any) -> Any:
    values = dict(values)
    model_settings = ModelSettings(values.pop("attention", "full"))
    aware = values.pop("entity_aware", None)
    return pretrain(
        more.pop("checkpoint", None) or read_checkpoint(encoder, entity_aware=aware),
        read_manifest(world / "shards", "shards"),
        read_manifest(world / "entities", "entities"),
        folder,
        model_settings,
        settings_of(values),
        **more,
    )


def start(*args: Any, environment: dict[str, str] | None = None) -> BaseProcess:
    """:func:`run` in a process of its own. args: of ``run``."""
    process = quick_context().Process(target=_run_with, args=(environment or {}, *args))
    process.start()
    return process


def start_two(*args: Any, second: tuple[Any, ...] | None = None) -> list[BaseProcess]:
    """Two processes of one training, as torchrun starts them. second: other args of the second."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        start(*given, environment={**shared, "RANK": rank, "LOCAL_RANK": rank})
        for rank, given in (("0", args), ("1", second or args))
    ]


def _run_with(environment: dict[str, str], *args: Any) -> None:
    os.environ.update(environment)
    precision.has_bf16 = lambda device: True  # a test of bf16 is one on any machine
    with_plots.plot_log = lambda records, path: None
    torch.set_num_threads(1)
    try:
        run(*args)
    except ConfigError as error:
        folder = args[2]
        (folder.parent / f"error-{environment.get('RANK')}.txt").write_text(str(error))
        raise
    atexit._run_exitfuncs()  # as at the end of an interpreter, which copies do not reach
    names = [x.read_text().strip() for x in Path("/proc/self/task").glob("*/comm")]
    left = sorted(x for x in names if "gloo" in x)
    assert not left, f"threads that outlive the interpreter: {left}"


if __name__ == "__main__":
    world, encoder, folder, values = sys.argv[1:]
    _run_with({}, Path(world), Path(encoder), Path(folder), json.loads(values))
