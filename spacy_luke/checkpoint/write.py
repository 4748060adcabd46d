"""Everything a model needs to a directory in the published layout."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from ..errors import CheckpointError
from ..model.config import LukeConfig
from ..vocab.files import write_pieces
from .names import to_published
from .read import Checkpoint
from .source import as_in_file, untrained_queries

_TASKS = {
    "LukeForEntityClassification": "entity_classification",
    "LukeForEntityPairClassification": "entity_pair_classification",
    "LukeForEntitySpanClassification": "entity_span_classification",
}
_OURS = ("kind", "word_shapes", "entity_labels", "extra")


def write_checkpoint(
    folder: Path, checkpoint: Checkpoint, architecture: str, source_names: bool = False
) -> None:
    """Write ``config.json``, ``model.safetensors``, the tokenizer's files and ``entity_vocab.json``.

    Tensors have the precision of the checkpoint's source and today's names, which ``transformers``
    reads. architecture: the published class, e.g. ``LukeForMaskedLM``. Where the extra queries of
    entity-aware attention are left out, the configuration says that attention is plain, which gives
    the same answers. source_names: leave names and attention as the source has them, also old ones. The directory appears when it is complete. Raises
    CheckpointError where there is something of that name, or the network has parts that no
    published file has.
    """
    config = checkpoint.config
    if folder.exists():
        raise CheckpointError(f"{folder} exists; remove it or name another directory.")
    ours = [name for name in ("word_shapes", "entity_labels") if getattr(config, name)]
    if ours:
        raise CheckpointError(
            f"Published files have no place for {' and '.join(ours)}, which this network uses."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as parent:
        temporary = Path(parent) / folder.name
        temporary.mkdir()
        published = to_published(checkpoint.weights) | checkpoint.others
        source = checkpoint.source
        if not source_names:
            # The bare encoder stands without a prefix, as transformers writes it, if it did before.
            bare = architecture == "LukeModel" and not source.prefix
            source = replace(source, prefix="" if bare else "luke.", renamed={})
            if untrained_queries(published, source):  # which transformers would draw
                config = replace(config, use_entity_aware_attention=False)
        save_file(as_in_file(published, source), temporary / "model.safetensors", {"format": "pt"})
        _write(temporary / "config.json", published_config(config, architecture))
        _write(temporary / "entity_vocab.json", dict(checkpoint.entities.names.items()))
        write_pieces(checkpoint.pieces, temporary)
        _name_task(temporary / "tokenizer_config.json", architecture)
        temporary.rename(folder)


def _name_task(path: Path, architecture: str) -> None:
    """Tell ``transformers``' tokenizer what its model asks about, where nothing else is said."""
    values = json.loads(path.read_text("utf8"))
    if architecture in _TASKS and not values.get("task"):
        _write(path, {**values, "task": _TASKS[architecture]})


def published_config(config: LukeConfig, architecture: str) -> dict[str, Any]:
    """``config.json``: the keys that the network uses, and those it was read with."""
    values = {k: v for k, v in config.to_dict().items() if k not in _OURS}
    found = {**config.extra, **values, "model_type": "luke", "architectures": [architecture]}
    if config.kind == "bert" and not str(found.get("bert_model_name", "")).startswith("bert-"):
        found["bert_model_name"] = "bert-base-uncased"  # how published configs tell the kind
    return found


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf8")
