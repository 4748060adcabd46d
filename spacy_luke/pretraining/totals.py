"""What a training adds up between two records of its log."""

import math
from dataclasses import astuple, dataclass, fields

import torch
from accelerate import Accelerator

from .objective import MaskedBatch, Outcome


@dataclass
class Totals:
    """Sums over batches. Losses; how many were right; words and entities that were asked for;
    pieces; operations (``operations.py``); seconds, which only the first process counts."""

    word_loss: float = 0.0
    entity_loss: float = 0.0
    words_right: float = 0.0
    entities_right: float = 0.0
    words: float = 0.0
    entities: float = 0.0
    pieces: float = 0.0
    operations: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, outcome: Outcome, batch: MaskedBatch, operations: float) -> "Totals":
        return cls(
            word_loss=outcome.word_loss.item(),
            entity_loss=outcome.entity_loss.item(),
            words_right=outcome.words_right.item(),
            entities_right=outcome.entities_right.item(),
            words=len(batch.words),
            entities=len(batch.entities),
            pieces=len(batch.inputs.words.piece_ids),
            operations=operations,
        )

    def add(self, other: "Totals") -> None:
        for x in fields(self):
            setattr(self, x.name, getattr(self, x.name) + getattr(other, x.name))

    def over_all(self, accelerator: Accelerator) -> "Totals":
        """Sums of all processes."""
        sums = torch.tensor(astuple(self), dtype=torch.float64, device=accelerator.device)
        return Totals(*accelerator.reduce(sums, "sum").tolist())

    @property
    def is_finite(self) -> bool:
        return all(map(math.isfinite, astuple(self)))

    def means(self) -> dict[str, float]:
        """What a record says of them; of what was not asked for, nothing."""
        found = {
            "pieces_per_second": self.pieces / self.seconds,
            "tflops": self.operations / self.seconds / 1e12,
        }
        if self.words:
            found["word_loss"] = self.word_loss / self.words
            found["word_accuracy"] = self.words_right / self.words
        if self.entities:
            found["entity_loss"] = self.entity_loss / self.entities
            found["entity_accuracy"] = self.entities_right / self.entities
        return found
