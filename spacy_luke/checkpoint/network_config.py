"""A published ``config.json`` to the network's configuration."""

from pathlib import Path
from typing import Any

from ..errors import CheckpointError, ConfigError
from ..model.config import LukeConfig

LUKE_TYPES = ("luke", "mluke")
PLAIN_TYPES = ("bert", "roberta", "xlm-roberta")

# Values of absent keys: files omit values that equal the defaults of their model type.
_DEFAULTS: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02,
    "use_entity_aware_attention": True,
}
_LUKE_DEFAULTS: dict[str, Any] = {
    "vocab_size": 50267,
    "entity_vocab_size": 500000,
    "entity_emb_size": 256,
    "pad_token_id": 1,
}
_PLAIN_DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": {"vocab_size": 30522, "pad_token_id": 0},
    "roberta": {"vocab_size": 50265, "pad_token_id": 1},
    "xlm-roberta": {"vocab_size": 30522, "pad_token_id": 1},
}


def is_bert(raw: dict[str, Any]) -> bool:
    """Whether a LUKE was initialised from BERT. The official code looks for "roberta" in
    ``bert_model_name`` (luke/model.py). Without that key, ``transformers`` assumes RoBERTa."""
    name = str(raw.get("bert_model_name") or "").lower()
    return "bert" in name and "roberta" not in name


def network_config(raw: dict[str, Any], file: Path) -> LukeConfig:
    """The configuration of a LUKE, or of the LUKE that a plain encoder becomes.

    A plain encoder gets four special entities, and entity embeddings of its hidden size. file: for
    messages. Raises CheckpointError for another model type and ConfigError for a setting that the
    network does not support.
    """
    model_type = raw.get("model_type")
    if model_type not in LUKE_TYPES + PLAIN_TYPES:
        raise CheckpointError(
            f"{file}: model_type is {model_type!r}; supported are "
            f"{', '.join(LUKE_TYPES + PLAIN_TYPES)}."
        )
    for key, only in (("hidden_act", "gelu"), ("position_embedding_type", "absolute")):
        if raw.get(key, only) != only:
            raise ConfigError(f"{file}: {key} is {raw[key]!r}; only {only!r} is supported.")
    values = dict(_DEFAULTS)
    if model_type in LUKE_TYPES:
        values.update(_LUKE_DEFAULTS)
        values["kind"] = "bert" if is_bert(raw) else "roberta"
    else:
        values.update(_PLAIN_DEFAULTS[model_type])
        values["kind"] = "bert" if model_type == "bert" else "roberta"
        values["entity_vocab_size"] = 4
        values["entity_emb_size"] = raw.get("hidden_size", values["hidden_size"])
    kind = values.pop("kind")  # not a published key: a file's key of that name must not replace it
    values.update({key: raw[key] for key in values if raw.get(key) is not None})
    values["kind"] = kind
    values["extra"] = {key: value for key, value in raw.items() if key not in values}
    try:
        return LukeConfig.from_dict(values)
    except ConfigError as err:
        raise ConfigError(f"{file}: {err}") from err
