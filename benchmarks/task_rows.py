"""The rows of the relation and typing tables: one spaCy training config each.

``probe`` and ``markers`` are the modes of ``luke_relation`` and ``luke_entity_typing``; in
``baseline`` their model is a plain marker classifier. Everything else is the same in all rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Config

from spacy_luke.annotations.relations import relation_offsets

from .datasets import GIVEN_READER, Corpora, load
from .marker_baseline import ENTITIES, PAIRS
from .task_data import RELATION_SETS
from .training import (
    HEAD_FACTOR,
    EpochSettings,
    base_config,
    block_of,
    encoder_block,
    training_config,
)

Array = np.ndarray
ROWS = ("probe", "markers", "baseline")
NER, RELATION, TYPING = "luke_ner", "luke_relation", "luke_entity_typing"
"""Names of components, as in the shipped configs."""
SAMPLED = "spacy-luke.benchmarks.sampled_pairs.v1"
EVERYTHING = {
    "@misc": "spacy-luke.relation_candidates.v1",
    "max_distance": None,
    "same_sentence": False,
    "label_pairs": None,
    "head_ids": None,
    "tail_ids": None,
}
LEAST = 0.05
"""Probability from which relations are written where a pair may have several; the threshold
that counts is chosen on dev, above it."""

# At most one relation of a pair is predicted, in either direction (of SemEval 2 x 9 + 1 classes),
# and it is asked about once. A sentence of SemEval has one pair; pairs of CrossRE with several
# relations lose the others.
ONE_RELATION: dict[str, Any] = {
    "spans_key": None,
    "multi_label": False,
    "threshold": 0.0,
    "pair_order": "text",
    "symmetric": [],
    "merge_entities": False,
}
# Entities are groups of mentions, which may overlap, and a pair has any number of relations.
REDOCRED: dict[str, Any] = {
    "spans_key": "luke_ner",
    "multi_label": True,
    "threshold": LEAST,
    "pair_order": "both",
    "symmetric": [],
    "merge_entities": True,
}
# Every entity has one type, and gets one.
TYPED: dict[str, Any] = {
    "spans_key": None,
    "multi_label": False,
    "threshold": 0.0,
    "ancestors": False,
}
RELATION_TASKS = {name: REDOCRED if name == "redocred" else ONE_RELATION for name in RELATION_SETS}


@dataclass(frozen=True)
class RelationSettings(EpochSettings):
    """Of a run of relations. pairs: how many pairs of a document are learned from each time it is
    seen, drawn anew, half of them or more related. scored: how many documents of dev and of test
    are asked about, the first ones. 0 for all."""

    pairs: int = 0
    scored: int = 0


@registry.misc(SAMPLED)
def sampled_pairs(n: int, seed: int, path: Path) -> Callable[[Doc, Any], Array]:
    """Candidates for training alone: n of a document's ordered pairs of entities, drawn anew each
    time; at least half of them stand in a relation in the documents of ``path``, if so many do.
    (Drawn evenly they would hardly ever be related, and one sequence a pair can afford few.) Of
    other documents, those that training evaluates, any n."""
    rng = np.random.default_rng(seed)
    related = {doc.text: {x[:2] for x in relation_offsets(doc)} for doc in load(path)}

    def candidates(doc: Doc, entities: Any) -> Array:
        pairs = np.argwhere(~np.eye(len(entities), dtype=bool))
        order = rng.permutation(len(pairs))
        owner = {(x.start_char, x.end_char): i for i, own in enumerate(entities) for x in own}
        gold = {(owner[head], owner[tail]) for head, tail in related.get(doc.text, ())}
        positive = np.asarray([tuple(pair) in gold for pair in pairs[order].tolist()], dtype=bool)
        kept = order[positive][: n // 2]
        rest = order[~np.isin(order, kept)][: n - len(kept)]
        return pairs[np.sort(np.concatenate([kept, rest]))]

    return candidates


def relation_config(
    data: str, row: str, corpora: Corpora, settings: RelationSettings, seed: int, gpu: bool
) -> Config:
    base = base_config("relation")
    component = block_of(base, "luke_relation")
    component.update(RELATION_TASKS[data], candidates=dict(EVERYTHING))
    if settings.pairs:
        component["candidates"] = {
            "@misc": SAMPLED,
            "n": settings.pairs,
            "seed": seed,
            "path": str(corpora.train),
        }
    component["model"] = _model(row, component["model"], PAIRS, settings)
    return training_config(
        base,
        RELATION,
        component,
        corpora,
        settings,
        seed=seed,
        gpu=gpu,
        rate=settings.learn_rate,
        reader=GIVEN_READER,
        score="rels_f",
    )


def typing_config(
    row: str, corpora: Corpora, settings: EpochSettings, seed: int, gpu: bool
) -> Config:
    base = base_config("entity_typing")
    component = block_of(base, "luke_entity_typing")
    component.update(TYPED)
    component["model"] = _model(row, component["model"], ENTITIES, settings)
    return training_config(
        base,
        TYPING,
        component,
        corpora,
        settings,
        seed=seed,
        gpu=gpu,
        rate=settings.learn_rate,
        reader=GIVEN_READER,
        score="types_micro_f",
    )


def _model(
    row: str, block: dict[str, Any], baseline: str, settings: EpochSettings
) -> dict[str, Any]:
    """A row's model, from the one of the project's config."""
    encoder = encoder_block(block["encoder"], settings)
    if row == "baseline":
        factor = {"learn_rate_factor": HEAD_FACTOR}
        return {"@architectures": baseline, **factor, "encoder": encoder}
    return {**block, "mode": row, "learn_rate_factor": HEAD_FACTOR, "encoder": encoder}
