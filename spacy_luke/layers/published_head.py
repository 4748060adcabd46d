"""Read the classes and rows of published classifiers."""

from collections.abc import Sequence

import torch
from thinc.api import Model

from ..checkpoint.classes import class_named
from ..errors import CheckpointError, ConfigError
from ..model.config import LukeConfig
from .task_head import HeadKind
from .task_layer import encoder_of, head_of, scorer_of, task_node

_NEGATIVE = ("o", "nil", "none", "null", "no_entity")  # names of the class "no entity"


def class_names(config: LukeConfig, head: HeadKind) -> dict[str, str]:
    """Our name of each class of a checkpoint -> its published name, in the checkpoint's order.

    Raises CheckpointError if ``id2label`` is invalid.
    """
    fixed = class_named(head.architecture).classes
    if fixed:
        return {name: name for name in fixed}
    listed = config.extra.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}  # files omit these
    try:
        published = [str(listed[key]) for key in sorted(listed, key=int)]
    except (TypeError, ValueError, KeyError, AttributeError) as err:
        raise CheckpointError(
            f"id2label of the checkpoint's configuration is {listed!r}; expected an object."
        ) from err
    if len({*published}) < len(published):
        raise CheckpointError(f"id2label of the checkpoint names a class twice: {published}.")
    ours = list(published)
    if head.negative and head.negative not in published:
        misplaced = [name for name in published[1:] if name.lower() in _NEGATIVE]
        if misplaced and published[0].lower() not in _NEGATIVE:
            raise CheckpointError(
                f"id2label of the checkpoint has {misplaced[0]!r} after {published[0]!r}: the "
                f"class of no entity must be the first, or have the name {head.negative}."
            )
        ours[:1] = [head.negative]
    return dict(zip(ours, published))


def published_labels(model: Model) -> list[str]:
    """Our names of the classes of the checkpoint's classifier, in its order; empty if it has no
    classifier for this task. Raises CheckpointError if its shape is invalid."""
    encoder, head = encoder_of(model), scorer_of(model).kind
    if not head.architecture:
        return []
    names, row = class_names(encoder.network.config, head), class_named(head.architecture)
    weight = encoder.others.get(row.weight)
    architecture = class_named(encoder.source.architecture or head.architecture).name
    if weight is None or head.architecture != architecture:
        return []
    n_states = row.n_states or head.width
    if weight.shape[1:] != (n_states * encoder.hidden_size,):
        raise CheckpointError(
            f"{encoder.source.name}: {row.weight} has the shape {list(weight.shape)}; the "
            f"classifier of {head.architecture} reads {n_states} states of {encoder.hidden_size}."
        )
    if len(names) != len(weight):
        listed = encoder.network.config.extra.get("id2label") or ()
        raise CheckpointError(
            f"{encoder.source.name}: {row.weight} has {len(weight)} rows, and id2label of "
            f"config.json (metadata.json: model_config) names {len(listed)}. Add the labels there."
        )
    return list(names)


def load_published_head(model: Model, classes: Sequence[str]) -> list[str]:
    """Copy the rows of a published classifier into the head. classes: ours, in order.

    Returns the classes that the checkpoint has; none if it has no classifier for this task, or
    shares no label with it that the head can read. Raises CheckpointError if the classifier does
    not match its own configuration, and ConfigError if it has labels that a head with
    ``label_weight`` cannot take over.
    """
    labels, kind = published_labels(model), scorer_of(model).kind
    copied = [name for name in classes if name in labels]
    if not copied:
        return []
    encoder, row = encoder_of(model), class_named(kind.architecture)
    if row.n_states and row.n_states != kind.width:
        shared = [name for name in copied if name != kind.negative]
        if shared:
            raise ConfigError(
                f"The classifier of {encoder.source.name} knows the labels {shared}, and was "
                "trained without label_weight. Set label_weight of the model to null to begin with "
                "that classifier."
            )
        return []
    weight, bias = encoder.others[row.weight], encoder.others.get(row.bias)
    classifier = head_of(model).classifier
    has_bias = classifier.bias is not None
    if (bias is not None) != has_bias or (bias is not None and len(bias) != len(labels)):
        raise CheckpointError(
            f"{encoder.source.name}: the classifier has {'no' if bias is None else 'a'} bias; "
            f"{task_node(model).name} expects {'one' if has_bias else 'none'}."
        )
    with torch.no_grad():
        for name in copied:
            i, theirs = classes.index(name), labels.index(name)
            classifier.weight[i] = weight[theirs]
            if bias is not None:
                classifier.bias[i] = bias[theirs]
    return copied
