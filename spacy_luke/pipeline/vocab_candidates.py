"""Candidates of mentions from the encoder's entity vocabulary, whatever their names."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from spacy.tokens import Span
from thinc.api import Model

from ..errors import ConfigError
from ..kb.knowledge_base import MappedKB
from ..kb.tables import Tables
from ..layers.candidate_scorer import row_logits
from ..layers.encoder import module_of
from ..layers.encoder_module import Encoder
from ..layers.encoder_run import EncoderRun
from ..layers.entity_rows import entity_rows
from ..layers.listener import encoder_node
from ..layers.task_layer import encoder_below, head_of, scorer_of
from ..model.packing import Array
from ..vocab.entity_vocab import EntityVocab
from .kb_rows import kb_rows
from .masked_entities import mask_states

_BLOCK = 65_536
"""Rows of the entity table that are scored at once: tens of MiB."""
_MENTIONS = 256
"""That are scored with a block at once."""


class _Shared(NamedTuple):
    """The entities that are in a knowledge base and in a vocabulary. rows: (m,) in the knowledge
    base; ids: (m,) in the vocabulary."""

    tables: Tables
    vocab: EntityVocab
    rows: Array
    ids: Array


class VocabCandidates:
    """The entities that an encoder's masked-entity head predicts for mentions, of those that a
    knowledge base has."""

    def __init__(self) -> None:
        self._shared: _Shared | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the tables of the knowledge base: a copy has others."""
        return {"_shared": None}

    def find(self, kb: MappedKB, model: Model, mentions: Sequence[Span], k: int) -> list[list[int]]:
        """For each mention the rows in ``kb`` of the k entities with the largest logits, the best
        first; none for a mention that does not fit a window.

        model: of ``luke_linker``. Raises ConfigError if it does not use entity rows, or if no
        entity of the knowledge base is in the encoder's vocabulary.
        """
        rows_part = row_logits(head_of(model))
        if rows_part is None:
            raise ConfigError(
                "from_vocabulary needs an encoder with a masked-entity head and entity rows, and "
                "model.rows = true."
            )
        node = encoder_node(encoder_below(model))
        shared = self._entities(kb, module_of(node))
        found: list[list[int]] = []
        # All at once: in full attention the mentions of a document see each other.
        states, encoded = mask_states(node, mentions, scorer_of(model).attention)
        for low in range(0, len(mentions), _MENTIONS):
            part = states[low : low + _MENTIONS]
            with torch.no_grad():
                features = rows_part.transform(part.to(module_of(node).network.device).float())
            best = zip(_best(node, features, shared.ids, k), encoded[low:])
            found += [shared.rows[own].tolist() if fits else [] for own, fits in best]
        return found

    def _entities(self, kb: MappedKB, encoder: Encoder) -> _Shared:
        """Found once for a knowledge base and a vocabulary."""
        shared, vocab = self._shared, encoder.entities
        if shared is None or shared.tables is not kb.tables or shared.vocab is not vocab:
            ids = kb_rows(kb, vocab, range(len(kb.tables.ids)), kb.vocab.lang)
            rows = np.flatnonzero(ids >= 0)
            if not len(rows):
                raise ConfigError(
                    "from_vocabulary is set, and no id or name of the knowledge base is a title of "
                    "the encoder's entity vocabulary."
                )
            shared = self._shared = _Shared(kb.tables, vocab, rows, ids[rows])
        return shared


def _best(node: Model, features: torch.Tensor, ids: Array, k: int) -> list[Array]:
    """For each mention the numbers of the ``ids`` with the k largest logits; of equal logits the
    first. features: (n, size)."""
    scores = np.zeros((len(features), 0), dtype=np.float32)
    numbers = np.zeros((len(features), 0), dtype=np.int64)
    with EncoderRun(node, [], is_train=False) as run:
        for low in range(0, len(ids), _BLOCK):
            table = entity_rows(run, ids[low : low + _BLOCK])
            logits = (features @ table.vectors.T + table.biases).float().cpu().numpy()
            scores = np.concatenate([scores, logits], 1)
            own = np.arange(low, low + logits.shape[1])
            numbers = np.concatenate([numbers, np.broadcast_to(own, logits.shape)], 1)
            order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            scores = np.take_along_axis(scores, order, 1)
            numbers = np.take_along_axis(numbers, order, 1)
    return list(numbers)
