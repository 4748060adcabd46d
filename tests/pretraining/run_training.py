"""Trains in a process of its own: ``python run_training.py WORLD OUT SETTINGS``, for torchrun and
for runs that are killed. WORLD is what ``make_world`` wrote; SETTINGS is JSON."""

import json
import sys
from pathlib import Path
from typing import Any

from spacy_luke.checkpoint.read import read_checkpoint
from spacy_luke.model import precision
from spacy_luke.pretraining.manifest import read_manifest
from spacy_luke.pretraining.pretrain import pretrain
from spacy_luke.pretraining.settings import ModelSettings, Phase, TrainingSettings


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


if __name__ == "__main__":
    world, encoder, folder, values = sys.argv[1:]
    precision.has_bf16 = lambda device: True  # a test of bf16 is one on any machine
    run(Path(world), Path(encoder), Path(folder), json.loads(values))
