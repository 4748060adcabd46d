"""How a model is trained: phases, batches, optimizer, and how often it is told and saved."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import ConfigError
from .masking import Masking

_FREE = (
    "micro_batch",
    "sharded",
    "deterministic",
    "log_every",
    "evaluate_every",
    "save_every",
    "keep",
    "peak",
)
"""Settings that may change when a training goes on."""


@dataclass(frozen=True)
class Phase:
    """A part of training, a stage of the paper. steps: updates. rate: peak learning rate.
    entities_only: train what belongs to entities alone, and heads that started fresh."""

    steps: int
    rate: float
    entities_only: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(f"A phase has {self.steps} steps; use 1 or more, or leave it out.")
        if not 0.0 <= self.rate < math.inf:
            raise ConfigError(f"The peak rate of a phase is {self.rate}; use 0 or more.")


@dataclass(frozen=True)
class TrainingSettings:
    """phases: run one after the other, each with its own warm-up, schedule and optimizer.

    batch_size: sequences of a step, over all processes. micro_batch: sequences in memory at a time,
    a process. warmup: steps of every phase, or its share if below 1. decay, betas, eps, clip: of
    AdamW (clip 0: none). dropout: of embeddings and layers. attention_dropout: of weights.
    evaluate_every, save_every, log_every: steps. keep: checkpoints that are kept. precision: ``no``
    or ``bf16``. sharded: weights, gradients and optimizer are spread over the processes (FSDP2)
    instead of copied to each (DDP). deterministic: on a GPU, operations give the same bits every
    time. seed: of order, masks and dropout. peak: 1e12 operations a second that a device can do at
    this precision, by its maker; 0: unknown.
    """

    phases: tuple[Phase, ...]
    batch_size: int = 2048
    micro_batch: int = 32
    warmup: float = 2500
    decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    clip: float = 0.0
    dropout: float = 0.1
    attention_dropout: float = 0.0
    gradient_checkpointing: bool = False
    precision: str = "no"
    sharded: bool = False
    deterministic: bool = False
    masking: Masking = field(default_factory=Masking)
    seed: int = 0
    log_every: int = 10
    evaluate_every: int = 1000
    save_every: int = 1000
    keep: int = 2
    peak: float = 0.0

    def __post_init__(self) -> None:
        if not self.phases:
            raise ConfigError("Pretraining needs at least one phase: both have no steps.")
        every = ("log_every", "evaluate_every", "save_every")
        for name in ("batch_size", "micro_batch", *every, "keep"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it has to be at least 1.")
        if self.precision not in ("no", "bf16"):
            raise ConfigError(f"precision is {self.precision!r}; use 'no' or 'bf16'.")
        for name in ("dropout", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ConfigError(f"{name} is {getattr(self, name)}; use 0 to less than 1.")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}; use 0 or more.")
        if not 0.0 <= self.warmup < math.inf:
            raise ConfigError(f"warmup is {self.warmup}; use steps, or a share below 1.")
        for name in ("clip", "decay", "peak"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)}; use 0 or more.")

    @property
    def n_steps(self) -> int:
        return sum(phase.steps for phase in self.phases)

    @property
    def fixed(self) -> dict[str, Any]:
        """What has to stay the same when a training goes on."""
        return {name: value for name, value in asdict(self).items() if name not in _FREE}

    def n_warmup(self, phase: Phase) -> int:
        return round(self.warmup * phase.steps) if self.warmup < 1 else round(self.warmup)
