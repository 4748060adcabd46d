"""Published classes, their labels, and a sentence to ask them about."""

from pathlib import Path

import torch
from safetensors.torch import load_file

NER, PAIRS, TYPES, MASKED, QA = (
    "LukeForEntitySpanClassification",
    "LukeForEntityPairClassification",
    "LukeForEntityClassification",
    "LukeForMaskedLM",
    "LukeForQuestionAnswering",
)
LABELS = {
    NER: ["NIL", "MISC", "PER", "ORG", "LOC"],
    PAIRS: ["per:title", "no_relation", "org:founded", "per:age"],
    TYPES: ["person", "event", "location"],
}
DOC = {
    NER: ("Ada Lovelace was born in London .", []),
    PAIRS: ("Ada Lovelace was born in London .", [(0, 2), (5, 6)]),
    TYPES: ("Ada Lovelace was born in London .", [(0, 2)]),
}


def labels_of(architecture: str) -> dict:
    labels = LABELS.get(architecture)
    if labels is None:
        return {}
    return {
        "id2label": dict(enumerate(labels)),
        "label2id": {x: i for i, x in enumerate(labels)},
        "num_labels": len(labels),
    }


def tensors(directory: Path) -> dict[str, torch.Tensor]:
    return load_file(directory / "model.safetensors")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert sorted(one) == sorted(other)
    for name, tensor in one.items():
        assert tensor.dtype == other[name].dtype and torch.equal(tensor, other[name]), name
