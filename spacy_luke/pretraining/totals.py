"""Sums of a training between two log records."""

import math
from dataclasses import astuple, dataclass, fields

import torch
from accelerate import Accelerator

from .objective import MaskedBatch, Outcome


@dataclass
class Totals:
    """Sums over batches: losses, correct predictions, masked words and entities, pieces, operations
    (``operations.py``), and seconds, which only the main process counts."""

    word_loss: float = 0.0
    entity_loss: float = 0.0
    words_correct: float = 0.0
    entities_correct: float = 0.0
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
            words_correct=outcome.words_correct.item(),
            entities_correct=outcome.entities_correct.item(),
            words=len(batch.words),
            entities=len(batch.entities),
            pieces=len(batch.inputs.words.piece_ids),
            operations=operations,
        )

    def add(self, other: "Totals") -> None:
        for x in fields(self):
            setattr(self, x.name, getattr(self, x.name) + getattr(other, x.name))

    def over_all(self, accelerator: Accelerator) -> "Totals":
        """Sums over all processes."""
        sums = torch.tensor(astuple(self), dtype=torch.float64, device=accelerator.device)
        return Totals(*accelerator.reduce(sums, "sum").tolist())

    @property
    def is_finite(self) -> bool:
        return all(map(math.isfinite, astuple(self)))

    def means(self) -> dict[str, float]:
        """The values of a log record; without masked words (entities), their keys are missing."""
        means = {
            "pieces_per_second": self.pieces / self.seconds,
            "tflops": self.operations / self.seconds / 1e12,
        }
        if self.words:
            means["word_loss"] = self.word_loss / self.words
            means["word_accuracy"] = self.words_correct / self.words
        if self.entities:
            means["entity_loss"] = self.entity_loss / self.entities
            means["entity_accuracy"] = self.entities_correct / self.entities
        return means
