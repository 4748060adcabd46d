"""``spacy luke pretrain``: train on masked words and entities."""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from wasabi import Printer

from ..errors import ConfigError
from ..pretraining.settings import (
    ENTITY_PHASE,
    EVALUATE_SEQUENCES,
    FULL_PHASE,
    Masking,
    ModelSettings,
    Phase,
    TrainingSettings,
)
from . import app, exit_on_error
from .stages import pretraining_extra

if TYPE_CHECKING:
    from ..model.network import AttentionPattern
    from ..pretraining.training import Log


@app.command("pretrain")
def pretrain_cli(
    shards: Annotated[Path, typer.Argument(metavar="SHARDS", help="Folder of the shards.")],
    entities: Annotated[Path, typer.Option(help="Folder of the vocabulary.")],
    encoder: Annotated[str, typer.Option(help="Initial encoder: directory or hub name.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Folder of log, checkpoints, model.")],
    entity_steps: Annotated[
        int, typer.Option(help="Steps of the first phase: only entity parameters; 0: none.")
    ] = ENTITY_PHASE.steps,
    steps: Annotated[
        int, typer.Option(help="Steps of the second phase: all parameters; 0: none.")
    ] = FULL_PHASE.steps,
    entity_rate: Annotated[
        float, typer.Option(help="Peak learning rate of the first phase.")
    ] = ENTITY_PHASE.rate,
    rate: Annotated[
        float, typer.Option(help="Peak learning rate of the second phase.")
    ] = FULL_PHASE.rate,
    batch_size: Annotated[
        int, typer.Option(help="Sequences per step over all processes.")
    ] = TrainingSettings.batch_size,
    micro_batch: Annotated[
        int, typer.Option(help="Sequences per forward pass and process.")
    ] = TrainingSettings.micro_batch,
    warmup: Annotated[
        float, typer.Option(help="Warm-up steps per phase or, if below 1, their share.")
    ] = TrainingSettings.warmup,
    decay: Annotated[float, typer.Option(help="Weight decay.")] = TrainingSettings.decay,
    clip: Annotated[
        float, typer.Option(help="Maximum norm of gradients; 0: no limit.")
    ] = TrainingSettings.clip,
    dropout: Annotated[
        float, typer.Option(help="Dropout of embeddings and layers.")
    ] = TrainingSettings.dropout,
    attention_dropout: Annotated[
        float, typer.Option(help="Dropout of attention weights.")
    ] = TrainingSettings.attention_dropout,
    masked_words: Annotated[
        float, typer.Option(help="Share of pieces that are masked.")
    ] = Masking.words,
    masked_entities: Annotated[
        float, typer.Option(help="Share of entities that are masked.")
    ] = Masking.entities,
    whole_words: Annotated[
        bool, typer.Option(help="Mask whole words (LUKE) or single pieces (mLUKE).")
    ] = Masking.whole_words,
    unknown: Annotated[
        bool,
        typer.Option(help="Links outside the vocabulary are [UNK] (LUKE) or left out (mLUKE)."),
    ] = Masking.unknown,
    attention: Annotated[
        str, typer.Option(help="Attention: full, as published, or probe.")
    ] = ModelSettings.attention,
    entity_aware: Annotated[
        bool,
        typer.Option(
            help="Entity-aware attention. In the published models, only fine-tuning adds it."
        ),
    ] = False,
    entity_size: Annotated[
        int, typer.Option(help="Width of the entity table; 0: as in the encoder.")
    ] = ModelSettings.entity_size,
    keep_entities: Annotated[
        bool, typer.Option(help="Keep the rows of entities that the encoder has.")
    ] = ModelSettings.keep_entities,
    precision: Annotated[
        str, typer.Option(help="Mixed precision: no or bf16.")
    ] = TrainingSettings.precision,
    sharded: Annotated[
        bool,
        typer.Option(
            help="Distribute weights and optimizer over processes (FSDP2) or copy them (DDP)."
        ),
    ] = TrainingSettings.sharded,
    deterministic: Annotated[
        bool, typer.Option(help="The same weights bit for bit when resumed on a GPU; slower.")
    ] = TrainingSettings.deterministic,
    gradient_checkpointing: Annotated[
        bool, typer.Option(help="Less memory, more time.")
    ] = TrainingSettings.gradient_checkpointing,
    seed: Annotated[
        int, typer.Option(help="Seed of order, masks, dropout and new weights.")
    ] = TrainingSettings.seed,
    log_every: Annotated[
        int, typer.Option(help="Steps between records of the log.")
    ] = TrainingSettings.log_every,
    evaluate_every: Annotated[
        int,
        typer.Option(help="Steps between evaluations; a phase also ends with one."),
    ] = TrainingSettings.evaluate_every,
    evaluate_sequences: Annotated[
        int, typer.Option(help="Maximum sequences per evaluation; 0: no evaluation.")
    ] = EVALUATE_SEQUENCES,
    save_every: Annotated[
        int, typer.Option(help="Steps between checkpoints.")
    ] = TrainingSettings.save_every,
    peak: Annotated[
        float,
        typer.Option(
            help="1e12 operations per second of a device at this precision, by its maker. The log "
            "then shows the share that is used."
        ),
    ] = TrainingSettings.peak,
    verify: Annotated[
        bool, typer.Option(help="Check shards and vocabulary against their manifests.")
    ] = True,
    hook: Annotated[
        list[str] | None,
        typer.Option(help="module:function that gets each log record, e.g. for wandb."),
    ] = None,
) -> None:
    """Train on masked words and entities: the last stage of pretraining.

    The defaults are those of the paper, for a cluster, except the width of the entity table (256 in
    the paper) and attention dropout, which costs most of the speed. A training that is started
    again is resumed exactly from its last checkpoint.

    On several devices: torchrun --nproc-per-node N -m spacy luke pretrain SHARDS ...

    Writes log.jsonl, log.svg and checkpoints, and finally the model in the published layout.

    \b
    Example:
    python -m spacy luke pretrain work/shards --entities work/entities --encoder DIR -o work/model
    """
    with pretraining_extra():
        from ..checkpoint.hub import resolve
        from ..checkpoint.read import read_checkpoint
        from ..pretraining.entities import STAGE as ENTITIES
        from ..pretraining.manifest import read_manifest
        from ..pretraining.pretrain import pretrain
        from ..pretraining.shards import STAGE

    msg = Printer()
    # Importing a hook may start its logger, so only the main process imports it.
    is_first = os.environ.get("RANK", "0") == "0"
    with exit_on_error(msg):
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
        try:
            model = pretrain(
                read_checkpoint(resolve(encoder), entity_aware=entity_aware),
                read_manifest(shards, STAGE),
                read_manifest(entities, ENTITIES),
                out,
                ModelSettings(cast("AttentionPattern", attention), entity_size, keep_entities),
                settings,
                verify,
                evaluate_sequences,
                hooks=tuple(map(_hook, hook or ())) if is_first else (),
            )
        except KeyboardInterrupt:
            msg.warn(f"Stopped. The same command resumes from the last checkpoint in {out}.")
            raise typer.Exit(130) from None
    if model is not None:
        msg.good(f"{out}: the model is in {model}")


def _hook(name: str) -> "Log":
    module, _, function = name.partition(":")
    if not function:
        raise ConfigError(f"--hook {name}: use MODULE:FUNCTION.")
    try:
        hook = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"--hook {name}: {error}") from error
    if not callable(hook):
        raise ConfigError(f"--hook {name}: it is a {type(hook).__name__}, which is not callable.")
    return hook
