"""The encoder as one module: network, vocabularies, and what else came with them."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from ..checkpoint.names import Weights
from ..checkpoint.source import Source
from ..model.encoder import LukeModel
from ..vocab.entity_vocab import EntityVocab
from ..vocab.pieces import PieceTokenizer
from .read_write_lock import ReadWriteLock


class Encoder(nn.Module):
    """A network with its vocabularies: what travels in a pipeline.

    window: pieces of a window, without the two special pieces, and those that neighbours share; set
    when the node's settings are applied. mask_id: the row of the entity [MASK].
    others: tensors of the checkpoint it was read from that the network does not use (heads), under
    their published names; they are kept as they are. source: which checkpoint that was.
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

    @contextmanager
    def changing(self) -> Iterator[None]:
        """For a change of the weights: no other thread uses them meanwhile, and no word pass that
        was computed with the former ones is found again."""
        with self.lock.writing():
            try:
                yield
            finally:
                self.network.n_changes += 1

    @property
    def hidden_size(self) -> int:
        return self.network.config.hidden_size
