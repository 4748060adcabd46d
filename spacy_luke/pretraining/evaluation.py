"""Evaluation: prediction of masked entities and words in held-out articles, and two baselines."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import torch

from .masking import Sample, Vocabularies, mask_batch
from .objective import TOP, PretrainingModel
from .samples import Samples
from .settings import Masking
from .tables import FROM_PARQUET, literal

Array = np.ndarray

EPOCH = 2**31 - 1
"""An epoch that no training reaches, so that evaluation has its own masks."""


class HeldOut:
    """Sequences of held-out articles, masked once.

    masking: of the training. Its shares are replaced by the defaults, so that trainings with
        different shares can be compared.
    n_sequences: maximum number of sequences, evenly spread over all.
    """

    def __init__(
        self,
        held_out: Sequence[Path],
        masking: Masking,
        ids: Vocabularies,
        seed: int,
        n_sequences: int,
        micro_batch: int,
    ):
        masking = replace(masking, words=Masking.words, entities=Masking.entities)
        samples = Samples(held_out)
        step = max(1, len(samples) / n_sequences)
        chosen = {int(i * step) for i in range(min(n_sequences, len(samples)))}
        used = [replace(x, epoch=EPOCH) for i, x in enumerate(samples.in_order()) if i in chosen]
        self._unknown = ids.entity_unk
        self._batches = [
            mask_batch(used[i : i + micro_batch], masking, ids, seed)
            for i in range(0, len(used), micro_batch)
        ]
        self.targets = np.concatenate([x.entity_targets for x in self._batches])
        anchors = [a for x in used for a in _input_anchors(x, masking, ids)]
        offsets = np.cumsum([0, *(len(x.inputs.entities.ids) for x in self._batches)])
        rows = np.concatenate([x.entities + shift for x, shift in zip(self._batches, offsets)])
        self.anchors = [anchors[i] for i in rows.tolist()]

    def baselines(self, train: Sequence[Path]) -> dict[str, float]:
        """Accuracy of two baselines from the training sequences: the most frequent entities
        (``frequent``), and the most frequent entities of the anchor text, followed by those
        (``anchor``). ``seen`` is the share of targets that occur in the training sequences."""
        frequent, by_anchor, known = _statistics(train, set(self.anchors), self._unknown)
        ranked = [
            list(dict.fromkeys([*by_anchor.get(anchor, ()), *frequent]))[:TOP]
            for anchor in self.anchors
        ]
        return {
            "seen": float(np.isin(self.targets, known).mean()) if len(self.targets) else 0.0,
            **_shares("frequent", [frequent] * len(self.targets), self.targets),
            **_shares("anchor", ranked, self.targets),
        }

    def evaluate(self, model: PretrainingModel) -> dict[str, float]:
        """Losses, and accuracy for masked entities and words. Without masked entities (or words),
        their keys are missing."""
        was_training = model.training
        model.eval()
        sums = np.zeros(6)
        with torch.no_grad():
            for batch in self._batches:
                outcome = model(batch)
                sums += np.asarray([*(float(x) for x in outcome), len(batch.words)])
        model.train(was_training)
        word_loss, entity_loss, words_correct, entities_correct, in_top, n_words = sums.tolist()
        scores: dict[str, float] = {}
        if n_words:
            scores |= {"word_loss": word_loss / n_words, "word_accuracy": words_correct / n_words}
        if n_entities := len(self.targets):
            scores["entity_loss"] = entity_loss / n_entities
            scores["entity_top_1"] = entities_correct / n_entities
            scores[f"entity_top_{TOP}"] = in_top / n_entities
        return scores


def _input_anchors(sample: Sample, masking: Masking, ids: Vocabularies) -> Sequence[str]:
    """The anchors of the entities that are inputs: with ``masking.unknown`` all."""
    if masking.unknown:
        return sample.anchors
    return [sample.anchors[i] for i in np.flatnonzero(sample.ids != ids.entity_unk).tolist()]


def _shares(name: str, ranked: Sequence[Sequence[int]], targets: Array) -> dict[str, float]:
    n = max(len(targets), 1)
    pairs = list(zip(ranked, targets.tolist()))
    return {
        f"{name}_top_1": sum(target in best[:1] for best, target in pairs) / n,
        f"{name}_top_{TOP}": sum(target in best[:TOP] for best, target in pairs) / n,
    }


def _statistics(
    train: Sequence[Path], anchors: set[str], unknown: int
) -> tuple[list[int], dict[str, list[int]], Array]:
    """The most frequent entities; anchor -> its entities by frequency; and all entities."""
    files = [literal(x) for x in train]
    links = (
        "(SELECT unnest(entity_anchors) AS anchor, unnest(entity_ids) AS id "
        f"{FROM_PARQUET}) WHERE id <> {unknown}"
    )
    with duckdb.connect() as db:
        db.register("target_anchors", pa.table({"anchor": pa.array(sorted(anchors), pa.string())}))
        frequent = db.execute(
            f"SELECT id FROM {links} GROUP BY id ORDER BY count(*) DESC, id LIMIT {TOP}", [files]
        ).fetchall()
        # Only the given anchors: those of a large wiki do not fit into memory.
        rows = db.execute(
            f"WITH seen AS (SELECT * FROM {links}), counted AS (SELECT anchor, id, count(*) AS n "
            "FROM seen SEMI JOIN target_anchors USING (anchor) GROUP BY ALL) "
            "SELECT anchor, list(id ORDER BY n DESC, id) FROM counted GROUP BY anchor",
            [files],
        ).fetchall()
        known = db.execute(f"SELECT DISTINCT id FROM {links}", [files]).fetchnumpy()["id"]
    return [x for (x,) in frequent], {anchor: ids[:TOP] for anchor, ids in rows}, known
