"""The training loop, for any number of processes, resumed exactly.

A step takes the next ``batch_size`` sequences of the epoch's order, distributed round-robin over
the processes. Random numbers are seeded by (seed, step) or (seed, epoch, sequence), and losses are
divided by the counts of the whole step. So the result does not depend on the number of processes,
accumulation or interruptions, except for rounding and for dropout, which is drawn per pass.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import astuple
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.utils import gather_object
from tqdm import tqdm

from ..checkpoint.names import Weights
from ..errors import ConfigError, TrainingError
from ..model.precision import uses_bf16
from ..report import LOGGER
from .checkpoints import load_latest, save_checkpoint
from .determinism import deterministic
from .masking import Sample, Vocabularies, mask_batch
from .objective import PretrainingModel
from .operations import operations
from .optimizer import UncorrectedAdamW, linear_schedule, parameter_groups
from .samples import Samples
from .settings import Phase, TrainingSettings
from .sharding import load_optimizer, shard, unreduced, whole_optimizer, whole_weights
from .stage_lock import first_difference
from .totals import Totals

Record = dict[str, Any]
Log = Callable[[Record], None]

PATIENCE = timedelta(days=1)
"""How long processes wait for work of the main process alone. Collectives give up after minutes."""


class Trainer:
    """Trains a model on samples, resuming from the last checkpoint in ``folder``, if any."""

    def __init__(
        self,
        model: PretrainingModel,
        fresh: Sequence[str],
        samples: Samples,
        ids: Vocabularies,
        settings: TrainingSettings,
        folder: Path,
        identity: dict[str, Any],
    ):
        """fresh: parameters initialised at random. identity: values that must agree with those of a
        checkpoint to resume it, besides the settings."""
        self.settings, self.samples, self.ids, self.folder = settings, samples, ids, folder
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        mixed = settings.precision != "no" and uses_bf16(device)
        self.accelerator = Accelerator(
            mixed_precision=settings.precision if mixed else "no", cpu=device.type == "cpu"
        )
        if self.is_main and self.accelerator.device.type == "cuda" and not settings.deterministic:
            LOGGER.info(
                "A GPU adds in any order: after resuming, weights are equal within rounding only. "
                "--deterministic makes them the same, and is slower."
            )
        self.fresh = set(fresh)
        self.plain = model
        model.luke.set_dropout(settings.dropout)
        model.luke.attention_dropout = settings.attention_dropout
        model.luke.gradient_checkpointing = settings.gradient_checkpointing
        if settings.batch_size < self.accelerator.num_processes:
            raise ConfigError(
                f"batch_size is {settings.batch_size}, less than the "
                f"{self.accelerator.num_processes} processes."
            )
        for phase in settings.phases:
            if self.is_main and settings.n_warmup(phase) > phase.steps:
                LOGGER.warning(
                    "The warm-up of %d steps is longer than a phase of %d: its rate reaches %.2g "
                    "instead of %.2g. --warmup below 1 is a share of the steps.",
                    settings.n_warmup(phase),
                    phase.steps,
                    phase.rate * phase.steps / settings.n_warmup(phase),
                    phase.rate,
                )
        self.identity = {**identity, "settings": settings.fixed}
        self._resumed = load_latest(folder, self.identity)
        self.step = 0
        self._saved = self.first_step
        self.model: Any = None
        self.optimizer: Any = None

    @property
    def is_main(self) -> bool:
        return self.accelerator.is_main_process

    @property
    def first_step(self) -> int:
        """The step of the checkpoint from which training is resumed; 0 without one."""
        return self._resumed.step if self._resumed else 0

    def check_same(self, record: dict[str, Any]) -> None:
        """Raise ConfigError, in all processes, if their records or first steps differ: they would
        train different models together, or wait for each other. record: what decides the training,
        as JSON."""
        mine = {**record, "first step": self.first_step}
        main, *others = gather_object([mine])
        for rank, other in enumerate(others, 1):
            different = first_difference(main, other)
            if different:
                name, expected, found = different
                raise ConfigError(
                    f"Process {rank} has {name} = {found!r}, the main process {expected!r}. All "
                    "processes of a training need the same command, the same files, and an output "
                    "folder that they share."
                )

    def everywhere(self, condition: bool) -> bool:
        """Whether a condition is true in all processes."""
        n_true = torch.tensor(float(condition), device=self.accelerator.device)
        return self.accelerator.reduce(n_true, "sum").item() == self.accelerator.num_processes

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A block in which the main process alone has work to do. The others wait at its end, for
        a day at most."""
        several = self.accelerator.num_processes > 1
        # A group of its own on the host, because a barrier takes its time-out from the group.
        group = dist.new_group(backend="gloo", timeout=PATIENCE) if several else None
        yield
        if group is not None:
            dist.barrier(group)
            dist.destroy_process_group(group)

    # Steps

    def run(self, log: Log, evaluate: Callable[[], dict[str, float]] | None = None) -> Weights:
        """Train to the end. Returns the weights in the main process. log: called there with a
        record every ``log_every`` steps and for each evaluation."""
        with deterministic(self.settings.deterministic):
            self._run(log, evaluate)
        return whole_weights(self.plain)

    def _run(self, log: Log, evaluate: Callable[[], dict[str, float]] | None) -> None:
        settings = self.settings
        resumed, first = self._resumed, self.first_step
        phase_start = 0
        bar = tqdm(total=settings.n_steps, initial=first, disable=not self.is_main)
        if resumed:
            self.plain.load_state_dict(resumed.weights)
        for number, phase in enumerate(settings.phases):
            if first < phase_start + phase.steps:
                self._prepare(phase)
                if resumed and first > phase_start:
                    load_optimizer(self.plain, self.optimizer, resumed.optimizer)
                self._run_phase(
                    number, phase, phase_start, max(first, phase_start), bar, log, evaluate
                )
            phase_start += phase.steps
        bar.close()

    def end(self) -> None:
        """Wait for all processes and close their connections. Otherwise a process that fails at
        exit would make the launcher kill the main one while it writes the model."""
        self.accelerator.wait_for_everyone()
        self.accelerator.end_training()

    def _run_phase(
        self,
        number: int,
        phase: Phase,
        phase_start: int,
        first: int,
        bar: Any,
        log: Log,
        evaluate: Callable[[], dict[str, float]] | None,
    ) -> None:
        settings = self.settings
        stream = self.samples.stream(settings.seed, first * settings.batch_size)
        totals = Totals()
        if self._resumed and first == self.first_step and self.is_main:
            totals = Totals(*self._resumed.totals)
        for self.step in range(first, phase_start + phase.steps):
            started = time.perf_counter()
            rate = phase.rate * linear_schedule(
                self.step - phase_start, phase.steps, settings.n_warmup(phase)
            )
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            samples = list(islice(stream, settings.batch_size))
            totals.add(self._step(samples))
            totals.seconds += (time.perf_counter() - started) * self.is_main
            done = self.step + 1
            last = done == phase_start + phase.steps
            bar.update()
            if done % settings.log_every == 0 or last:
                means = totals.over_all(self.accelerator).means()
                self._log(log, self._record(done, number, rate, means), bar)
                totals = Totals()
            if evaluate and (done % settings.evaluate_every == 0 or last):
                with self.accelerator.autocast():
                    scores = evaluate()
                self._log(log, {"kind": "evaluation", "step": done, **scores}, bar)
            if done % settings.save_every == 0 or last:
                self._save(done, totals.over_all(self.accelerator))

    def _prepare(self, phase: Phase) -> None:
        """Set up model and optimizer for a phase."""
        trained = set(self.plain.entity_parameters()) | self.fresh
        for name, parameter in self.plain.named_parameters():
            parameter.requires_grad_(not phase.entities_only or name in trained)
        self._wrap()
        named = [(n, p) for n, p in self.plain.named_parameters() if p.requires_grad]
        settings = self.settings
        self.optimizer = UncorrectedAdamW(
            parameter_groups(named, settings.decay),
            lr=phase.rate,
            betas=settings.betas,
            eps=settings.eps,
        )
        self.model.train()

    def _wrap(self) -> None:
        """Wrap or shard the model for several processes. DDP fixes the trained parameters when it
        wraps, so the model is wrapped again in each phase."""
        if not self.settings.sharded:
            if self.model is not None:
                self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)
                self.accelerator.free_memory()
            self.model = self.accelerator.prepare(self.plain)
        elif self.model is None:
            shard(self.plain, self.accelerator.device)
            self.model = self.plain

    def _unreduced(self) -> AbstractContextManager[None]:
        """Accumulate gradients without communication until a backward pass outside."""
        sharded = self.settings.sharded
        return unreduced(self.model) if sharded else self.accelerator.no_sync(self.model)

    def _step(self, samples: list[Sample]) -> Totals:
        """One update. Returns the sums of this process. Raises TrainingError if not finite."""
        settings, accelerator = self.settings, self.accelerator
        own = samples[accelerator.process_index :: accelerator.num_processes]
        parts = [
            mask_batch(own[a:b], settings.masking, self.ids, settings.seed)
            for a, b in self._passes(len(samples), len(own))
        ]
        counts = torch.tensor(
            [sum(len(x.words) for x in parts), sum(len(x.entities) for x in parts)],
            dtype=torch.float64,
            device=accelerator.device,
        )
        n_words, n_entities = accelerator.reduce(counts, "sum").tolist()
        torch.manual_seed(_seed(settings.seed, self.step, accelerator.process_index))
        totals = Totals()
        for i, batch in enumerate(parts):
            last = i == len(parts) - 1
            with nullcontext() if last else self._unreduced():
                with accelerator.autocast():
                    outcome = self.model(batch)
                # Gradients are averaged over processes, but the counts are sums: undo the average.
                loss = outcome.word_loss / max(n_words, 1)
                loss = loss + outcome.entity_loss / max(n_entities, 1)
                accelerator.backward(loss * accelerator.num_processes)
            totals.add(Totals.of(outcome, batch, operations(self.plain, batch)))
        if not self.everywhere(totals.is_finite):
            raise self._diverged(f"The loss of step {self.step + 1} is")
        if settings.clip:
            accelerator.clip_grad_norm_(self.model.parameters(), settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return totals

    def _passes(self, n_all: int, n_own: int) -> Iterator[tuple[int, int]]:
        """Ranges of this process's sequences per forward pass. All processes have equally many
        passes, because those of a sharded model wait for each other.

        Example: 7 sequences, 2 processes, micro_batch 2: both make 2 passes, [0, 2), [2, 4) of the
        4 sequences of the first process, and [0, 2), [2, 3) of the 3 of the second.
        """
        n_processes = self.accelerator.num_processes
        n_passes = math.ceil(math.ceil(n_all / n_processes) / self.settings.micro_batch)
        n_passes = min(n_passes, n_all // n_processes)  # so that no pass is empty
        bounds = np.linspace(0, n_own, n_passes + 1).round().astype(int).tolist()
        return zip(bounds[:-1], bounds[1:])

    # Records

    def _record(self, done: int, phase: int, rate: float, means: dict[str, float]) -> Record:
        """The log record of the steps since the last one."""
        record: Record = {
            "kind": "step",
            "step": done,
            "phase": phase,
            "epoch": done * self.settings.batch_size / len(self.samples),
            "rate": rate,
            **means,
        }
        if self.settings.peak:
            devices = self.accelerator.num_processes
            record["share_of_peak"] = means["tflops"] / (self.settings.peak * devices)
        if self.accelerator.device.type == "cuda":
            record["gpu_bytes"] = torch.cuda.max_memory_allocated()  # maximum so far
        return record

    def _log(self, log: Log, record: Record, bar: Any) -> None:
        if self.is_main:
            log(record)
            if record["kind"] == "step":
                shown = {
                    name: f"{record[f'{kind}_loss']:.3f} ({record[f'{kind}_accuracy']:.1%})"
                    for kind, name in (("word", "words"), ("entity", "entities"))
                    if f"{kind}_loss" in record
                }
                bar.set_postfix(**shown, pieces=f"{record['pieces_per_second']:.0f}/s")
            else:
                scores = (f"{k} {v:.4g}" for k, v in record.items() if isinstance(v, float))
                bar.write(f"step {record['step']}, held out: {', '.join(scores)}")

    def _save(self, done: int, totals: Totals) -> None:
        weights = whole_weights(self.plain)
        optimizer = whole_optimizer(self.plain, self.optimizer)
        # Only the main process has weights.
        if not self.everywhere(all(bool(x.isfinite().all()) for x in weights.values())):
            raise self._diverged(f"After step {done} weights are")
        if self.is_main:
            keep = self.settings.keep
            sums = astuple(totals)
            save_checkpoint(self.folder, done, sums, weights, optimizer, self.identity, keep)
        self._saved = done
        self.accelerator.wait_for_everyone()

    def _diverged(self, what: str) -> TrainingError:
        kept = f"the checkpoint of step {self._saved}" if self._saved else "no checkpoint"
        return TrainingError(
            f"{what} not finite: the training has diverged. Use a lower rate, a longer warm-up or "
            f"--clip in a new folder. This folder has {kept}."
        )


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])
