"""Which tensors the heads of published classes have, and of which shapes."""

from collections.abc import Mapping
from pathlib import Path

import torch

from ..errors import CheckpointError
from ..model.config import LukeConfig
from .files import file_of
from .names import (
    CLASSIFIER_BIAS,
    CLASSIFIER_WEIGHT,
    ENTITY_HEAD,
    PHRASE_BIAS,
    PHRASE_WEIGHT,
    TIED,
    WORD_HEAD,
    is_extra_query,
)

Shape = tuple[int, ...]
ANY = -1
_CLASSIFIERS = {
    "LukeForEntityClassification": 1,
    "LukeForEntityPairClassification": 2,
    "LukeForEntitySpanClassification": 3,
}
# What a file may hold beside its head, without being asked for.
_FREE = ("embeddings.position_ids", "cls.", "cls_entity_predictions.")


def head_tensors(architecture: str, config: LukeConfig) -> dict[str, Shape]:
    """The tensors without which a file of this class is not whole; -1: any size. Empty for a class
    without a head, or of which nothing is known."""
    hidden = config.hidden_size
    if architecture in _CLASSIFIERS:
        found: dict[str, Shape] = {CLASSIFIER_WEIGHT: (ANY, _CLASSIFIERS[architecture] * hidden)}
        if architecture != "LukeForEntityPairClassification":  # most of these have none
            found[CLASSIFIER_BIAS] = (ANY,)
        return found
    if architecture == "LukeForMaskedLM":
        return {
            **_masked(WORD_HEAD, hidden, hidden, config.vocab_size),
            **_masked(ENTITY_HEAD, hidden, config.entity_emb_size, config.entity_vocab_size),
        }
    if architecture.startswith("UCTopic"):
        return {PHRASE_WEIGHT: (hidden, hidden), PHRASE_BIAS: (hidden,)}
    return {
        "LukeForQuestionAnswering": {"qa_outputs.weight": (2, hidden), "qa_outputs.bias": (2,)},
        "LukeForEntitySpanQA": {"scorer.weight": (1, 2 * hidden), "scorer.bias": (1,)},
    }.get(architecture, {})


def _masked(names: dict[str, str], hidden: int, size: int, n_classes: int) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {
        "dense.weight": (size, hidden),
        "dense.bias": (size,),
        "norm.weight": (size,),
        "norm.bias": (size,),
        "bias": (n_classes,),
    }
    return {names[ours]: shape for ours, shape in shapes.items()}


def has_head(others: Mapping[str, torch.Tensor], architecture: str, config: LukeConfig) -> bool:
    """Are all tensors of the class's head there?"""
    return head_tensors(architecture, config).keys() <= others.keys()


def check_heads(
    others: Mapping[str, torch.Tensor], architecture: str, config: LukeConfig, directory: Path
) -> None:
    """Raise CheckpointError where the head of a file's class is not whole, or a tensor of any head
    is unknown, misshapen, or holds what is no number."""
    missing = sorted(head_tensors(architecture, config).keys() - others.keys())
    if missing:
        raise CheckpointError(
            f"{file_of(directory, *missing)}: missing weights of a {architecture}: "
            f"{', '.join(missing)}."
        )
    known = _known(config)
    for name, tensor in others.items():
        if name.startswith(_FREE) or is_extra_query(name):
            continue
        if name not in known:
            raise CheckpointError(f"{file_of(directory, name)}: unknown weights: {name}.")
        shapes = known[name]
        if not any(_fits(tuple(tensor.shape), shape) for shape in shapes):
            raise CheckpointError(
                f"{file_of(directory, name)}: {name} has the shape {list(tensor.shape)}; expected "
                f"{' or '.join(str(list(x)) for x in shapes)} (-1: any)."
            )
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise CheckpointError(
                f"{file_of(directory, name)}: {name} holds values that are no numbers."
            )


def _known(config: LukeConfig) -> dict[str, list[Shape]]:
    """Every tensor of a head -> the shapes it may have."""
    hidden = config.hidden_size
    known: dict[str, list[Shape]] = {
        "pooler.dense.weight": [(hidden, hidden)],
        "pooler.dense.bias": [(hidden,)],
        CLASSIFIER_BIAS: [(ANY,)],
        CLASSIFIER_WEIGHT: [(ANY, n * hidden) for n in _CLASSIFIERS.values()],
    }
    tables: dict[str, Shape] = {
        "lm_head.decoder.weight": (config.vocab_size, hidden),
        "lm_head.decoder.bias": (config.vocab_size,),
        "entity_predictions.decoder.weight": (config.entity_vocab_size, config.entity_emb_size),
    }
    assert tables.keys() == TIED.keys()
    classes = ("LukeForMaskedLM", "UCTopic", "LukeForQuestionAnswering", "LukeForEntitySpanQA")
    for shapes in (tables, *(head_tensors(x, config) for x in classes)):
        known.update({name: [shape] for name, shape in shapes.items()})
    return known


def _fits(found: Shape, wanted: Shape) -> bool:
    return len(found) == len(wanted) and all(w in (ANY, f) for f, w in zip(found, wanted))
