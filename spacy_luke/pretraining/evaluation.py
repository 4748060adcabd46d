"""How well masked entities of articles that were set aside are found, beside two baselines."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import torch

from .masking import Masking, Sample, Vocabularies, mask_batch
from .objective import TOP, PretrainingModel
from .samples import Samples
from .tables import FROM_PARQUET, literal

Array = np.ndarray

EPOCH = 2**31 - 1
"""No training gets here: the masks of evaluation are its own."""


class HeldOut:
    """Sequences of held-out articles, masked once and for all.

    masking: of the training; its shares are not used, so that trainings with other shares can be
    compared. most: sequences that are used, spread evenly over all.
    """

    def __init__(
        self,
        held_out: Sequence[Path],
        masking: Masking,
        ids: Vocabularies,
        seed: int,
        most: int = 2000,
        micro_batch: int = 32,
    ):
        masking = replace(masking, words=Masking.words, entities=Masking.entities)
        samples = Samples(held_out)
        step = max(1, len(samples) / most)
        chosen = {int(i * step) for i in range(min(most, len(samples)))}
        found = [replace(x, epoch=EPOCH) for i, x in enumerate(samples.in_order()) if i in chosen]
        self._unknown = ids.entity_unk
        self._batches = [
            mask_batch(found[i : i + micro_batch], masking, ids, seed)
            for i in range(0, len(found), micro_batch)
        ]
        self.targets = np.concatenate([x.entity_targets for x in self._batches])
        kept = [_known(x, masking, ids) for x in found]
        anchors = [a for x in kept for a in x.anchors]
        offsets = np.cumsum([0, *(len(x.inputs.entities.ids) for x in self._batches)])
        rows = np.concatenate([x.entities + at for x, at in zip(self._batches, offsets)])
        self.anchors = [anchors[i] for i in rows.tolist()]

    def baselines(self, train: Sequence[Path]) -> dict[str, float]:
        """Shares of the targets found by two baselines that know the training sequences alone: the
        most frequent entities, and the most frequent ones of the anchor text, then those of all.
        And the share that these sequences link to at all."""
        frequent, by_anchor, known = _statistics(train, set(self.anchors), self._unknown)
        nothing: list[int] = []
        ranked = [
            list(dict.fromkeys([*by_anchor.get(anchor, nothing), *frequent]))[:TOP]
            for anchor in self.anchors
        ]
        return {
            "seen": float(np.isin(self.targets, known).mean()) if len(self.targets) else 0.0,
            **_shares("frequent", [frequent] * len(self.targets), self.targets),
            **_shares("anchor", ranked, self.targets),
        }

    def evaluate(self, model: PretrainingModel) -> dict[str, float]:
        """Shares of masked entities and words that the model finds, and its losses; of what there
        is none, nothing."""
        was_training = model.training
        model.eval()
        sums = np.zeros(6)
        with torch.no_grad():
            for batch in self._batches:
                outcome = model(batch)
                sums += np.asarray([*(float(x) for x in outcome), len(batch.words)])
        model.train(was_training)
        word_loss, entity_loss, words_right, entities_right, top, n_words = sums.tolist()
        found: dict[str, float] = {}
        if n_words:
            found |= {"word_loss": word_loss / n_words, "word_accuracy": words_right / n_words}
        if n_entities := len(self.targets):
            found["entity_loss"] = entity_loss / n_entities
            found["entity_top_1"] = entities_right / n_entities
            found[f"entity_top_{TOP}"] = top / n_entities
        return found


def _known(sample: Sample, masking: Masking, ids: Vocabularies) -> Sample:
    """The sample with the entities that masking lets in."""
    if masking.unknown:
        return sample
    kept = np.flatnonzero(sample.ids != ids.entity_unk).tolist()
    return replace(sample, anchors=[sample.anchors[i] for i in kept])


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
    """The most frequent entities; those of each of the anchors, most frequent first; and all."""
    files = [literal(x) for x in train]
    links = (
        "(SELECT unnest(entity_anchors) AS anchor, unnest(entity_ids) AS id "
        f"{FROM_PARQUET}) WHERE id <> {unknown}"
    )
    with duckdb.connect() as db:
        db.register("wanted", pa.table({"anchor": pa.array(sorted(anchors), pa.string())}))
        frequent = db.execute(
            f"SELECT id FROM {links} GROUP BY id ORDER BY count(*) DESC, id LIMIT {TOP}", [files]
        ).fetchall()
        # Only of the anchors that are asked about: all of a large wiki would not fit in memory.
        rows = db.execute(
            f"WITH seen AS (SELECT * FROM {links}), counted AS (SELECT anchor, id, count(*) AS n "
            "FROM seen SEMI JOIN wanted USING (anchor) GROUP BY ALL) "
            "SELECT anchor, list(id ORDER BY n DESC, id) FROM counted GROUP BY anchor",
            [files],
        ).fetchall()
        known = db.execute(f"SELECT DISTINCT id FROM {links}", [files]).fetchnumpy()["id"]
    return [x for (x,) in frequent], {anchor: found[:TOP] for anchor, found in rows}, known
