"""Classifiers of published checkpoints: their classes and their rows."""

from collections.abc import Sequence

import torch
from thinc.api import Model

from ..checkpoint.names import CLASSIFIER_BIAS, CLASSIFIER_WEIGHT
from ..errors import CheckpointError
from ..model.config import LukeConfig
from .head import HeadKind
from .task_layer import encoder_of, head_of, scorer_of, task_node

_NONE = ("o", "nil", "none", "null", "no_entity")  # how checkpoints call what is no entity


def class_names(config: LukeConfig, head: HeadKind) -> dict[str, str]:
    """Our name of each class of a checkpoint with such a head -> its name there, in its order."""
    listed = config.extra.get("id2label") or {
        "0": "LABEL_0",
        "1": "LABEL_1",
    }  # what files leave out
    try:
        theirs = [str(listed[key]) for key in sorted(listed, key=int)]
    except (TypeError, ValueError, KeyError, AttributeError) as err:
        raise CheckpointError(
            f"id2label of the checkpoint's configuration is {listed!r}; expected an object."
        ) from err
    if len({*theirs}) < len(theirs):
        raise CheckpointError(f"id2label of the checkpoint names a class twice: {theirs}.")
    ours = list(theirs)
    if head.negative and head.negative not in theirs:
        misplaced = [name for name in theirs[1:] if name.lower() in _NONE]
        if misplaced and theirs[0].lower() not in _NONE:
            raise CheckpointError(
                f"id2label of the checkpoint has {misplaced[0]!r} behind {theirs[0]!r}: what is no "
                f"entity has to be the first class, or to be called {head.negative}."
            )
        ours[:1] = [head.negative]
    return dict(zip(ours, theirs))


def published_labels(model: Model) -> list[str]:
    """The classes of the classifier that came with the encoder's checkpoint, by our names and in
    its order; none where it has no classifier of this task."""
    encoder, head = encoder_of(model), scorer_of(model).kind
    names = class_names(encoder.network.config, head)
    weight = encoder.others.get(CLASSIFIER_WEIGHT)
    architecture = encoder.source.architecture or head.architecture
    if weight is None or not head.architecture or head.architecture != architecture:
        return []
    if weight.shape[1:] != (head.width * encoder.hidden_size,):
        raise CheckpointError(
            f"{encoder.source.name}: {CLASSIFIER_WEIGHT} has the shape {list(weight.shape)}; the "
            f"classifier of {head.architecture} reads {head.width} states of {encoder.hidden_size}."
        )
    if len(names) != len(weight):
        listed = encoder.network.config.extra.get("id2label") or ()
        raise CheckpointError(
            f"{encoder.source.name}: {CLASSIFIER_WEIGHT} has {len(weight)} rows, and id2label of "
            f"config.json (metadata.json: model_config) names {len(listed)}. Add the labels there."
        )
    return list(names)


def load_published_head(model: Model, classes: Sequence[str]) -> list[str]:
    """Copy the rows of a published classifier; ``classes`` are ours, in order.

    Returns the classes found in the checkpoint; none where it has no such head. Raises
    CheckpointError where the head does not fit its own configuration.
    """
    theirs = published_labels(model)
    found = [name for name in classes if name in theirs]
    if not found:
        return []
    encoder = encoder_of(model)
    published = encoder.others
    ours, bias = head_of(model).classifier, published.get(CLASSIFIER_BIAS)
    if (bias is None) != (ours.bias is None) or (bias is not None and len(bias) != len(theirs)):
        raise CheckpointError(
            f"{encoder.source.name}: the classifier has {'no' if bias is None else 'a'} bias; "
            f"{task_node(model).name} expects {'none' if ours.bias is None else 'one'}."
        )
    with torch.no_grad():
        for i, name in enumerate(classes):
            if name in theirs:
                row = theirs.index(name)
                ours.weight[i] = published[CLASSIFIER_WEIGHT][row]
                if bias is not None:
                    ours.bias[i] = bias[row]
    return found
