"""``spacy luke pretrain``: masked words and entities."""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import Printer

from ..errors import ConfigError, LukeError
from . import app
from .stages import pretraining_extra

if TYPE_CHECKING:
    from ..pretraining.training import Log


@app.command("pretrain")
def pretrain_cli(
    shards: Annotated[Path, typer.Argument(metavar="SHARDS", help="Folder of the shards.")],
    entities: Annotated[Path, typer.Option(help="Folder of the vocabulary.")],
    encoder: Annotated[str, typer.Option(help="What to start from: directory or hub name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of log, checkpoints, model.")],
    entity_steps: Annotated[
        int, typer.Option(help="Steps of the first phase: entity parameters only; 0: none.")
    ] = 98_168,
    steps: Annotated[
        int, typer.Option(help="Steps of the second phase: everything; 0: none.")
    ] = 98_168,
    entity_rate: Annotated[float, typer.Option(help="Peak rate of the first phase.")] = 5e-4,
    rate: Annotated[float, typer.Option(help="Peak rate of the second phase.")] = 1e-5,
    batch_size: Annotated[int, typer.Option(help="Sequences of a step, in all.")] = 2048,
    micro_batch: Annotated[int, typer.Option(help="Sequences at a time, a process.")] = 32,
    warmup: Annotated[float, typer.Option(help="Steps of each phase; below 1, a share.")] = 2500,
    decay: Annotated[float, typer.Option(help="Weight decay.")] = 0.01,
    clip: Annotated[float, typer.Option(help="Norm that gradients are clipped to; 0: none.")] = 0,
    dropout: Annotated[float, typer.Option(help="Of embeddings and layers.")] = 0.1,
    attention_dropout: Annotated[float, typer.Option(help="Of attention weights.")] = 0.0,
    masked_words: Annotated[float, typer.Option(help="Share of pieces.")] = 0.15,
    masked_entities: Annotated[float, typer.Option(help="Share of entities.")] = 0.15,
    whole_words: Annotated[
        bool, typer.Option(help="Mask whole words (LUKE), or each piece on its own (mLUKE).")
    ] = True,
    unknown: Annotated[
        bool,
        typer.Option(help="Links outside the vocabulary enter as [UNK] (LUKE), or not at all."),
    ] = True,
    attention: Annotated[str, typer.Option(help="full, as published, or probe.")] = "full",
    entity_aware: Annotated[
        bool,
        typer.Option(
            help="Queries of their own for entities; as published, only fine-tuning has them."
        ),
    ] = False,
    entity_size: Annotated[
        int, typer.Option(help="Width of the entity table; 0: as the encoder has it.")
    ] = 0,
    keep_entities: Annotated[
        bool, typer.Option(help="Entities that the encoder knows keep their rows.")
    ] = True,
    precision: Annotated[str, typer.Option(help="no or bf16.")] = "no",
    sharded: Annotated[
        bool,
        typer.Option(
            help="Weights and optimizer are spread over the processes (FSDP2), not copied (DDP)."
        ),
    ] = False,
    deterministic: Annotated[
        bool, typer.Option(help="The same weights bit for bit when resumed on a GPU; slower.")
    ] = False,
    gradient_checkpointing: Annotated[bool, typer.Option(help="Less memory, more time.")] = False,
    seed: Annotated[int, typer.Option(help="Of order, masks, dropout and fresh weights.")] = 0,
    log_every: Annotated[int, typer.Option(help="Steps.")] = 10,
    evaluate_every: Annotated[int, typer.Option(help="Steps; at the end of a phase, too.")] = 1000,
    evaluate_sequences: Annotated[
        int, typer.Option(help="Sequences that an evaluation looks at, at most; 0: none is done.")
    ] = 2000,
    save_every: Annotated[int, typer.Option(help="Steps.")] = 1000,
    peak: Annotated[
        float,
        typer.Option(
            help="1e12 operations a second of a device at this precision, by its maker: the log "
            "then has the share of it that is used."
        ),
    ] = 0.0,
    verify: Annotated[
        bool, typer.Option(help="Compare shards and vocabulary with their manifests.")
    ] = True,
    hook: Annotated[
        list[str] | None,
        typer.Option(help="module:function that gets every record of the log, e.g. for wandb."),
    ] = None,
) -> None:
    """Train on masked words and entities: the last stage of pretraining.

    The defaults are those of the paper, for a cluster, but for the width of the entity table (there
    256) and attention dropout, which costs most of the speed. Started again it goes on from its
    last checkpoint, exactly. On several devices, start it as a module under torchrun:
    torchrun --nproc-per-node N -m spacy luke pretrain SHARDS and its options.

    Writes log.jsonl, log.svg and checkpoints, and at the end the model in the published layout.
    """
    with pretraining_extra():
        from ..checkpoint.hub import resolve
        from ..checkpoint.read import read_checkpoint
        from ..pretraining.entities import STAGE as ENTITIES
        from ..pretraining.manifest import read_manifest
        from ..pretraining.masking import Masking
        from ..pretraining.pretrain import ModelSettings, pretrain
        from ..pretraining.settings import Phase, TrainingSettings
        from ..pretraining.shards import STAGE

    msg = Printer()
    # A logger is started by being imported, which only the process that uses it should do.
    is_first = os.environ.get("RANK", "0") == "0"
    try:
        phases = ((entity_steps, entity_rate, True), (steps, rate, False))
        settings = TrainingSettings(
            phases=tuple(Phase(*phase) for phase in phases if phase[0]),
            batch_size=batch_size,
            micro_batch=micro_batch,
            warmup=warmup,
            decay=decay,
            clip=clip,
            dropout=dropout,
            attention_dropout=attention_dropout,
            gradient_checkpointing=gradient_checkpointing,
            precision=precision,
            sharded=sharded,
            deterministic=deterministic,
            masking=Masking(masked_words, masked_entities, whole_words, unknown),
            seed=seed,
            log_every=log_every,
            evaluate_every=evaluate_every,
            save_every=save_every,
            peak=peak,
        )
        if attention not in ("full", "probe"):
            raise ConfigError(f"--attention is {attention!r}; use full or probe.")
        model_settings = ModelSettings(
            "probe" if attention == "probe" else "full", entity_size, keep_entities
        )
        model = pretrain(
            read_checkpoint(resolve(encoder), entity_aware=entity_aware),
            read_manifest(shards, STAGE),
            read_manifest(entities, ENTITIES),
            out,
            model_settings,
            settings,
            verify,
            evaluate_sequences,
            hooks=tuple(map(_hook, hook or ())) if is_first else (),
        )
    except (LukeError, OSError) as err:
        msg.fail(str(err))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        msg.warn(f"Stopped. The same command goes on from the last checkpoint in {out}.")
        raise typer.Exit(130) from None
    if model is not None:
        msg.good(f"{out}: the model is in {model}")


def _hook(name: str) -> "Log":
    module, _, function = name.partition(":")
    if not function:
        raise ConfigError(f"--hook {name}: use MODULE:FUNCTION.")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"--hook {name}: {error}") from error
    if not callable(found):
        raise ConfigError(f"--hook {name}: it is {type(found).__name__}, and cannot be called.")
    return found
