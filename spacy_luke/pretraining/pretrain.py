"""The last stage: train a model from shards, a vocabulary and an encoder."""

import hashlib
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import srsly
import torch

from ..checkpoint.classes import MASKED_LM
from ..checkpoint.entity_table import with_entities
from ..checkpoint.names import POOLER, Weights, is_extra_query, plain_query, to_published
from ..checkpoint.read import Checkpoint, with_extra_queries
from ..checkpoint.source import Source
from ..checkpoint.write import write_checkpoint
from ..errors import ConfigError
from ..files import whole_file
from ..report import LOGGER
from ..vocab.editing import shared_rows, special
from .evaluation import HeldOut
from .manifest import Manifest, part_of
from .masking import Vocabularies
from .objective import HEADS, PretrainingModel, published
from .plot import plot_log
from .samples import Samples
from .settings import EVALUATE_SEQUENCES, ModelSettings, TrainingSettings
from .shards import covers_nothing, pieces_hash, vocabulary
from .stage import begin
from .tables import HELD_OUT, TRAIN
from .training import Log, Trainer

STAGE = "pretrain"
LOG, PLOT, CHECKPOINTS, MODEL = "log.jsonl", "log.svg", "checkpoints", "model"


def pretrain(
    checkpoint: Checkpoint,
    shards: Manifest,
    entities: Manifest,
    folder: Path,
    model_settings: ModelSettings,
    settings: TrainingSettings,
    verify: bool = True,
    evaluate_sequences: int = EVALUATE_SEQUENCES,
    hooks: tuple[Log, ...] = (),
) -> Path | None:
    """Train to the end, resuming from the last checkpoint in ``folder``.

    checkpoint: the initial encoder, with the tokenizer of the shards. verify: first check shards
    and vocabulary against their manifests. hooks: called with each log record.

    Returns, in the main process, the directory of the finished model in the published layout. A
    model that is already finished is kept. Raises ConfigError if the folder belongs to another run.
    """
    _check(checkpoint, shards, entities, model_settings, evaluate_sequences)
    if verify:
        shards.verify()
        entities.verify()
    vocab = vocabulary(entities)
    languages = entities.settings["languages"]
    language = languages[0] if len(languages) == 1 else None
    start = with_entities(
        checkpoint,
        vocab,
        model_settings.entity_size,
        settings.seed,
        model_settings.keep_entities,
        language=language,
    )
    _warn(start, shards)
    n_kept = _count_kept(checkpoint, start, language) if model_settings.keep_entities else 0
    ids = Vocabularies(
        cls=start.pieces.cls_id,
        sep=start.pieces.sep_id,
        mask=start.pieces.mask_id,
        n_pieces=len(start.pieces),
        entity_mask=vocab.mask_id,
        entity_unk=vocab.unk_id,
    )
    model = PretrainingModel.start(start, model_settings.attention, settings.seed)
    train = shards.paths(TRAIN.file)
    inputs = {"shards": shards.fingerprint, "start": _weights_hash(checkpoint)}
    trainer = Trainer(
        model,
        fresh_heads(start),
        Samples(train),
        ids,
        settings,
        folder / CHECKPOINTS,
        {**inputs, **vars(model_settings)},
    )
    fixed = {**vars(model_settings), "evaluate_sequences": evaluate_sequences, **settings.fixed}
    trainer.check_same({**fixed, **asdict(settings), **inputs})
    held_out = _held_out(shards, ids, settings, evaluate_sequences)
    if held_out is None and evaluate_sequences and shards.settings["held_out"] and trainer.is_main:
        LOGGER.warning(
            "Nothing is evaluated: of so few articles the share of %g that is held out is none. "
            "Make shards with a larger --held-out.",
            shards.settings["held_out"],
        )
    with begin(STAGE, folder, fixed, inputs) if trainer.is_main else nullcontext() as stage:
        if trainer.everywhere(stage is None or not stage.finished):
            log: Log = _silent
            if stage:
                log = Logger(folder, hooks, trainer.first_step)
            with trainer.waiting():
                if stage and not trainer.first_step:
                    n_entities = len(vocab) - len(special(vocab))
                    start_record = {"entities": n_entities, "entities_kept": n_kept}
                    log({"kind": "start", "step": 0, **start_record})
                    if held_out:
                        record = {"kind": "baselines", "step": 0, "targets": len(held_out.targets)}
                        log({**record, **held_out.baselines(train)})
            weights = trainer.run(log, partial(held_out.evaluate, model) if held_out else None)
            if stage:
                plot_log(read_log(folder / LOG), folder / PLOT)
                _write_model(folder / MODEL, start, weights)
                counts = {"steps": settings.n_steps}
                counts["sequences"] = settings.n_steps * settings.batch_size
                stage.conclude([part_of(folder / MODEL, MODEL, counts)])
    trainer.end()
    return folder / MODEL if trainer.is_main else None


def _check(
    checkpoint: Checkpoint,
    shards: Manifest,
    entities: Manifest,
    settings: ModelSettings,
    evaluate_sequences: int,
) -> None:
    """Raise ConfigError if the inputs do not belong together."""
    if evaluate_sequences < 0:
        raise ConfigError(f"evaluate_sequences is {evaluate_sequences}; use 0 (none) or more.")
    if shards.inputs["entities"] != entities.fingerprint:
        raise ConfigError(
            f"{shards.folder} was made with another vocabulary than {entities.folder}."
        )
    if settings.attention == "probe" and checkpoint.config.use_entity_aware_attention:
        raise ConfigError(
            f"{checkpoint.source.name} is entity-aware. In probe attention, words do not attend to "
            "entities, so some of its queries are not trained: use full attention or plain queries."
        )
    if shards.inputs["pieces"] != pieces_hash(checkpoint.pieces):
        raise ConfigError(
            f"{shards.folder} was made with another tokenizer than that of "
            f"{checkpoint.source.name}."
        )
    limit = checkpoint.config.max_pieces
    if shards.settings["max_pieces"] > limit:
        raise ConfigError(
            f"{shards.folder} has sequences of {shards.settings['max_pieces']} pieces; the encoder "
            f"has {limit} positions. Make shards with --max-pieces {limit}."
        )


def _held_out(
    shards: Manifest, ids: Vocabularies, settings: TrainingSettings, n_sequences: int
) -> HeldOut | None:
    if not n_sequences or not shards.counts.get("sequences, held out"):
        return None
    paths, seed = shards.paths(HELD_OUT.file), settings.seed
    return HeldOut(paths, settings.masking, ids, seed, n_sequences, settings.micro_batch)


def _write_model(folder: Path, start: Checkpoint, weights: Weights) -> None:
    """Write the published layout. Pretraining uses plain attention; the extra queries of
    entity-aware attention are added as copies, as in the published models."""
    pooler = {k: v for k, v in start.others.items() if k.startswith(POOLER)}
    network, heads = published(weights)
    source = Source(name=start.source.name)
    trained = replace(start, weights=network, others=pooler | heads, source=source)
    write_checkpoint(folder, with_extra_queries(trained), MASKED_LM.name, overwrite=True)


class Logger:
    """Writes records to a JSON lines file and to hooks, and plots the file after each evaluation. A
    resumed run removes records after its first step."""

    def __init__(self, folder: Path, hooks: tuple[Log, ...], first_step: int):
        self._path, self._plot, self._hooks = folder / LOG, folder / PLOT, hooks
        records = read_log(self._path) if self._path.exists() and first_step else []
        with whole_file(self._path) as temporary:
            srsly.write_jsonl(temporary, [x for x in records if x["step"] <= first_step])

    def __call__(self, record: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf8") as file:
            file.write(srsly.json_dumps(record) + "\n")
        for hook in self._hooks:
            hook(record)
        if record["kind"] == "evaluation":
            plot_log(read_log(self._path), self._plot)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a log, without a truncated last line."""
    return list(srsly.read_jsonl(path, skip=True))


def _silent(record: dict[str, Any]) -> None:
    """The log of all processes except the main one."""


def fresh_heads(checkpoint: Checkpoint) -> list[str]:
    """Parameters of heads that are missing or incomplete in the checkpoint."""
    names = []
    for module, table in HEADS.items():
        if any(theirs not in checkpoint.others for theirs in table.values()):
            names += [f"{module}.{ours}" for ours in table]
    return names


def _warn(start: Checkpoint, shards: Manifest) -> None:
    queries = [name for name in start.others if is_extra_query(name)]
    plain = to_published(start.weights)
    if any(not torch.equal(start.others[x], plain[plain_query(x)]) for x in queries):
        LOGGER.warning(
            "%s has trained extra queries, which plain attention does not use: in the finished "
            "model they are copies of the plain queries. --entity-aware trains them.",
            start.source.name,
        )
    if covers_nothing(shards):
        LOGGER.warning(
            "%s has no link to an entity of the vocabulary: no entity is trained.", shards.folder
        )


def _count_kept(checkpoint: Checkpoint, start: Checkpoint, language: str | None) -> int:
    """Count the entities that keep their rows of the checkpoint. Logs a warning if none does."""
    known, vocab = checkpoint.entities, start.entities
    n_kept = 0
    if checkpoint.config.entity_emb_size == start.config.entity_emb_size:
        special_ids = {vocab.names[name] for name in special(vocab)}
        n_kept = len(shared_rows(vocab, known, language).keys() - special_ids)
    if not n_kept and len(known) > len(special(known)):
        LOGGER.warning(
            "No entity of the vocabulary keeps its row of %s, which has %d: they differ in names, "
            "languages or width.",
            checkpoint.source.name,
            len(known),
        )
    return n_kept


def _weights_hash(checkpoint: Checkpoint) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted({**checkpoint.weights, **checkpoint.others}.items()):
        digest.update(name.encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
