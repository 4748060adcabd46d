"""Published weight names and ours: one reversible table.

Published names are those of LUKE, BERT and RoBERTa files, without the prefix ``luke.``, ``bert.``
or ``roberta.``. One of our parameters is either a renamed published tensor, or several published
tensors stacked along the first axis.
"""

import re
from collections.abc import Iterable, Mapping

import torch

Weights = dict[str, torch.Tensor]

# Parameters of ``model.heads.MaskedHead`` -> their published names.
WORD_HEAD = {
    "dense.weight": "lm_head.dense.weight",
    "dense.bias": "lm_head.dense.bias",
    "norm.weight": "lm_head.layer_norm.weight",
    "norm.bias": "lm_head.layer_norm.bias",
    "bias": "lm_head.bias",
}
ENTITY_HEAD = {
    "dense.weight": "entity_predictions.transform.dense.weight",
    "dense.bias": "entity_predictions.transform.dense.bias",
    "norm.weight": "entity_predictions.transform.LayerNorm.weight",
    "norm.bias": "entity_predictions.transform.LayerNorm.bias",
    "bias": "entity_predictions.bias",
}
# BERT's masked-word head computes the same function.
_BERT_WORD_HEAD = {
    "cls.predictions.transform.dense.": "lm_head.dense.",
    "cls.predictions.transform.LayerNorm.": "lm_head.layer_norm.",
    "cls.predictions.": "lm_head.",
}
CLASSIFIER = "classifier"
CLASSIFIER_WEIGHT, CLASSIFIER_BIAS = f"{CLASSIFIER}.weight", f"{CLASSIFIER}.bias"
POOLER, ENTITY_PREDICTIONS = "pooler.", "entity_predictions."
PHRASE_WEIGHT, PHRASE_BIAS = "mlp.dense.weight", "mlp.dense.bias"  # UCTopic's
MASKED_HEADS = ("lm_head.", ENTITY_PREDICTIONS)
# Names that follow the model's prefix. Heads have no prefix.
BODY = ("embeddings.", "entity_embeddings.", "encoder.", POOLER)
# Decoders share the weights of a table. Some files contain both.
TIED = {
    "lm_head.decoder.weight": "embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
    "entity_predictions.decoder.weight": "entity_embeddings.entity_embeddings.weight",
}

ENTITY_TABLE = "entity_embeddings.entities.weight"  # our name
MASK_EMBEDDING = "entity_embeddings.mask_embedding"  # published and ours
_RENAMED = {
    "embeddings.word_embeddings": "word_embeddings.words",
    "embeddings.position_embeddings": "word_embeddings.positions",
    "embeddings.token_type_embeddings": "word_embeddings.types",
    "embeddings.LayerNorm": "word_embeddings.norm",
    "entity_embeddings.entity_embeddings": "entity_embeddings.entities",
    "entity_embeddings.entity_embedding_dense": "entity_embeddings.dense",
    "entity_embeddings.position_embeddings": "entity_embeddings.positions",
    "entity_embeddings.token_type_embeddings": "entity_embeddings.types",
    "entity_embeddings.LayerNorm": "entity_embeddings.norm",
    "entity_embeddings": "entity_embeddings",  # of its own parameter, the mask embedding
}
_RENAMED_IN_LAYER = {
    "attention.self.w2e_query": "word_to_entity",
    "attention.output.dense": "attention_output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "intermediate",
    "output.dense": "output",
    "output.LayerNorm": "output_norm",
}
_STACKED_IN_LAYER = {
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "entity_queries": ("attention.self.e2w_query", "attention.self.e2e_query"),
}
EXTRA_QUERIES = tuple(f"attention.self.{name}_query" for name in ("w2e", "e2w", "e2e"))

_LAYER = re.compile(r"^encoder\.layer\.(\d+)\.(.+)$")
_OUR_LAYER = re.compile(r"^layers\.(\d+)\.(.+)$")
_PREFIXES = ("luke.", "bert.", "roberta.")
_OTHER_HEADS = {"typing.": f"{CLASSIFIER}.", **_BERT_WORD_HEAD}  # names in the official repository


def strip_prefix(names: Iterable[str]) -> dict[str, str]:
    """Name in a file -> name without prefix, with the current names of LayerNorm and heads."""
    result = {}
    for name in names:
        short = next((name[len(p) :] for p in _PREFIXES if name.startswith(p)), name)
        short = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", short)
        short = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", short)
        old = next((x for x in _OTHER_HEADS if short.startswith(x)), "")
        result[name] = _OTHER_HEADS[old] + short[len(old) :] if old else short
    return result


def by_short_name(tensors: Weights) -> Weights:
    """Tensors of a file under the names of :func:`strip_prefix`."""
    return {short: tensors[name] for name, short in strip_prefix(tensors).items()}


def sources(name: str) -> tuple[str, ...]:
    """The published tensors of which our parameter ``name`` consists, in order.

    ``layers.0.qkv.bias`` -> ``encoder.layer.0.attention.self.query.bias``, ``...key.bias``,
    ``...value.bias``.
    """
    module, _, kind = name.rpartition(".")
    match = _OUR_LAYER.match(module)
    if match:
        layer, part = match.groups()
        parts = _STACKED_IN_LAYER.get(part) or (_reverse(_RENAMED_IN_LAYER).get(part),)
        if None in parts:
            return ()
        return tuple(f"encoder.layer.{layer}.{published}.{kind}" for published in parts)
    published = _reverse(_RENAMED).get(module)
    return (f"{published}.{kind}",) if published else ()


def to_ours(published: Mapping[str, torch.Tensor], names: Iterable[str]) -> Weights:
    """Our parameters ``names`` from published tensors. Raises KeyError if one is missing."""
    result: Weights = {}
    for name in names:
        parts = [published[source] for source in sources(name)]
        # A renamed tensor is not copied: it stays memory-mapped until it is modified.
        result[name] = torch.cat(parts) if len(parts) > 1 else parts[0]
    return result


def to_published(ours: Mapping[str, torch.Tensor]) -> Weights:
    """The exact inverse of :func:`to_ours`."""
    result: Weights = {}
    for name, tensor in ours.items():
        parts = sources(name)
        for source, part in zip(parts, tensor.chunk(len(parts)) if parts else ()):
            result[source] = part.clone()
    return result


def is_extra_query(published: str) -> bool:
    """Whether the tensor is one of the three query projections of entity-aware attention."""
    match = _LAYER.match(published)
    return bool(match and match.group(2).rpartition(".")[0] in EXTRA_QUERIES)


def plain_query(published: str) -> str:
    """The name of the ``query`` tensor from which an extra query is initialised."""
    return re.sub(r"self\.\w+_query\.", "self.query.", published)


def _reverse(table: dict[str, str]) -> dict[str, str]:
    return {ours: published for published, ours in table.items()}
