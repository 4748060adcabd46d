"""What every benchmark that trains shares: the settings of a run, its config, and training it."""

import copy
import io
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.util import load_config
from thinc.api import Config

from spacy_luke.files import sha256_of

from . import runtime
from .datasets import Corpora

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
HEAD_FACTOR = 5.0


@dataclass(frozen=True)
class RunSettings:
    """What one run was trained with; equal settings, row, data and seed are the same run.

    learn_rate: peak rate of the encoder. limit: documents of each file, 0 for all. overrides:
    further config values by dotted name, with ``component`` for the row's component.
    """

    learn_rate: float = 2e-4
    limit: int = 0
    mixed_precision: bool = False
    encoder: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """As written to results: the encoder by its name, not its place, and a pretrained one,
        which all have the same name, by what is in it too."""
        path = Path(self.encoder)
        name = path.name
        if (path / "entity_vocab.json").exists():
            name += "@" + sha256_of(path / "model.safetensors")[:12]
        return {**asdict(self), "encoder": name}


@dataclass(frozen=True)
class EpochSettings(RunSettings):
    """Of a run that counts epochs, and batches in documents."""

    epochs: int = 3
    batch_size: int = 16

    def steps(self, n_train: int) -> int:
        return self.epochs * math.ceil(n_train / self.batch_size)


def base_config(name: str) -> Config:
    """One of the project's own training configs."""
    return load_config(CONFIGS / f"{name}.cfg")


def block_of(base: Config, factory: str) -> dict[str, Any]:
    """A copy of the block of the component that ``factory`` makes."""
    for block in base["components"].values():
        if block.get("factory") == factory:
            return copy.deepcopy(block)
    raise ValueError(f"The config has no {factory} component.")


def encoder_block(block: dict[str, Any], settings: RunSettings) -> dict[str, Any]:
    """An encoder block with a run's encoder and precision. Text is shown as it is, all word shapes
    included."""
    return {
        **block,
        "name": settings.encoder,
        "mixed_precision": settings.mixed_precision,
        "new_learn_rate_factor": HEAD_FACTOR,
        "learn_rate_factor": 1.0,
        "max_learn_rate": None,
        "word_shape_dropout": 0.0,
    }


def schedule(rate: float, steps: int) -> dict[str, Any]:
    return {
        "@schedules": "warmup_linear.v1",
        "warmup_steps": max(1, steps // 10),
        "total_steps": steps,
        "initial_rate": rate,
    }


def training_config(
    base: Config,
    name: str,
    component: dict[str, Any],
    corpora: Corpora,
    settings: EpochSettings,
    *,
    seed: int,
    gpu: bool,
    rate: float,
    reader: str,
    score: str,
) -> Config:
    """The config of one component alone, with the optimizer and dropout of ``base``.

    gpu: use PyTorch's allocator. rate: peak rate of the optimizer. reader: of both corpora.
    score: the name of a score of the component.
    """
    steps = settings.steps(corpora.n_train)
    training = copy.deepcopy(base["training"])
    training["optimizer"]["learn_rate"] = schedule(rate, steps)
    training.update(
        seed=seed,
        gpu_allocator="pytorch" if gpu else None,
        train_corpus="corpora.train",
        dev_corpus="corpora.dev",
        max_epochs=settings.epochs,
        max_steps=0,
        patience=0,
        # The last weights are used, so the loop's own evaluation is only the one of step 0.
        eval_frequency=steps + 1,
        score_weights={score: 1.0},
        frozen_components=[],
        annotating_components=[],
        before_to_disk=None,
        before_update=None,
        logger={"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False},
        batcher={"@batchers": "spacy.batch_by_sequence.v1", "size": settings.batch_size},
    )
    config = Config(
        {
            "nlp": {**base["nlp"], "pipeline": [name]},
            "components": {name: component},
            "corpora": {
                "train": {"@readers": reader, "path": str(corpora.train)},
                "dev": {"@readers": reader, "path": str(corpora.dev), "limit": 4},
            },
            "training": training,
            "initialize": {"vectors": None},
        }
    )
    return override(config, settings.overrides)


def override(config: Config, overrides: dict[str, Any]) -> Config:
    """Set values by dotted name; every name must be in a block that is there. ``component``
    stands for the first component."""
    for name, value in overrides.items():
        *path, last = name.split(".")
        if path and path[0] == "component":
            path[:1] = ["components", next(iter(config["components"]))]
        block = config
        for part in path:
            if part not in block:
                raise ValueError(f"--set {name}: the config has no block {part!r}.")
            block = block[part]
        block[last] = value
    return config


def fit(config: Config, gpu_id: int) -> tuple[Language, dict[str, Any]]:
    """The pipeline with its last weights, and what :func:`train_nlp` says."""
    from spacy.training.initialize import init_nlp

    nlp = init_nlp(config, use_gpu=gpu_id)
    return nlp, train_nlp(nlp, gpu_id)


def fit_best(config: Config, folder: Path, gpu_id: int) -> tuple[Language, int]:
    """The pipeline that ``spacy train`` saves as model-best below ``folder``, but for what the
    config tunes when it saves, and the steps at most."""
    import spacy
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train

    override(config, {"training.before_to_disk": None})
    nlp = init_nlp(config, use_gpu=gpu_id)
    log = io.StringIO()
    folder.mkdir(parents=True, exist_ok=True)
    train(nlp, folder, use_gpu=gpu_id, stdout=log, stderr=log)
    return spacy.load(folder / "model-best"), nlp.config["training"]["max_steps"]


def train_nlp(nlp: Language, gpu_id: int) -> dict[str, Any]:
    """Train an initialised pipeline. What training took (steps, seconds, MiB), for a record."""
    from spacy.training.loop import train

    runtime.reset_peak(gpu_id)
    log = io.StringIO()
    with runtime.Clock() as clock:
        train(nlp, use_gpu=gpu_id, stdout=log, stderr=log)
    return {
        "steps": nlp.config["training"]["max_steps"],
        "device": runtime.device_name(gpu_id),
        "train_seconds": clock.wall,
        "train_cpu_seconds": clock.process,
        "train_peak_mib": runtime.peak_memory(gpu_id),
    }
