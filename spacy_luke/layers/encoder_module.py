"""The encoder as one module: network, vocabularies, and the rest of its checkpoint."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from ..checkpoint.names import Weights
from ..checkpoint.source import Source
from ..model.network import LukeModel
from ..vocab.entity_vocab import EntityVocab
from ..vocab.pieces import PieceTokenizer
from .read_write_lock import ReadWriteLock


class Encoder(nn.Module):
    """A network with its vocabularies, as saved in a pipeline.

    window: pieces per window without the two special pieces, and pieces that consecutive windows
        share; set when the node's settings are applied.
    mask_id: the row of the entity [MASK].
    others: tensors of the checkpoint that the network does not use (heads), with their published
        names; they are kept unchanged. source: the checkpoint.
    """

    def __init__(
        self,
        network: LukeModel,
        pieces: PieceTokenizer,
        entities: EntityVocab,
        others: Weights | None = None,
        source: Source | None = None,
    ):
        super().__init__()
        self.network = network
        self.pieces = pieces
        self.entities = entities.indexed()
        self.others: Weights = others or {}
        self.source = source or Source()
        self.lock = ReadWriteLock()
        self.mask_id = self.entities.mask_id
        self.window = (0, 0)
        self._reported: set[str] = set()

    def reports_first(self, what: str) -> bool:
        """True for the first call about something. What concerns most batches of a corpus is
        logged once: a service would log it with every request."""
        if what in self._reported:
            return False
        self._reported.add(what)
        return True

    @contextmanager
    def changing(self) -> Iterator[None]:
        """A context in which the weights may be changed: no other thread uses them, and word passes
        of the old weights are not used afterwards."""
        with self.lock.writing():
            try:
                yield
            finally:
                self.network.n_changes += 1

    @property
    def hidden_size(self) -> int:
        return self.network.config.hidden_size
