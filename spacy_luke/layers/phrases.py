"""Phrase vectors of UCTopic checkpoints (Li et al. 2022): one entity per sequence, then a head."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from spacy.tokens import Doc
from thinc.api import Model
from thinc.util import torch2xp

from ..checkpoint.names import PHRASE_BIAS, PHRASE_WEIGHT
from ..errors import ConfigError
from ..inputs.placed_spans import bounded
from . import encoder_run
from .arrays import to_torch
from .doc_states import DocStates, GivenEntities, encode_docs
from .encoder import module_of


def encode_phrases(
    encoder: Model, docs: Sequence[Doc], entities: Sequence[GivenEntities]
) -> list[DocStates]:
    """Vectors of all tokens (without entities), and of each entity by itself: tanh of the head on
    its state, with [MASK] as its entity. Not normalised.

    An entity that fits no window has zeros. Raises ConfigError if the checkpoint came without the
    head.
    """
    module = module_of(encoder)
    if not {PHRASE_WEIGHT, PHRASE_BIAS} <= module.others.keys():
        raise ConfigError(
            f"phrases = true needs a checkpoint with the head {PHRASE_WEIGHT}, as UCTopic's; "
            f"{module.source.name} has none."
        )
    none = GivenEntities(*_masked(np.zeros((0, 2), dtype=np.int64), 0))
    words = encode_docs(encoder, docs, [none] * len(docs), "full")
    owners = [i for i, given in enumerate(entities) for _ in given.ids]
    states = _states(encoder, [docs[i] for i in owners], entities)
    weight, bias = (
        module.others[name].float().to(states.device) for name in (PHRASE_WEIGHT, PHRASE_BIAS)
    )
    seen = (states != 0).any(1, keepdim=True)
    vectors = torch2xp(torch.tanh(F.linear(states, weight, bias)) * seen)
    bounds = np.searchsorted(owners, np.arange(len(docs) + 1)).tolist()
    return [
        DocStates(words[i].token_vectors, vectors[a:b])
        for i, (a, b) in enumerate(zip(bounds, bounds[1:]))
    ]


def _states(encoder: Model, docs: Sequence[Doc], entities: Sequence[GivenEntities]) -> torch.Tensor:
    """(n_entities, hidden), each entity by itself. docs: (n_entities,) the document of each. A
    document is encoded once per entity, so the words of a few entities are in memory at a time."""
    module = module_of(encoder)
    alone = [
        GivenEntities(*_masked(span[None], module.mask_id))
        for given in entities
        for span in given.spans.reshape(-1, 2)
    ]
    parts = [torch.zeros(0, module.hidden_size, dtype=torch.float32, device=module.network.device)]
    costs = np.asarray([len(doc) for doc in docs])
    for low, high in bounded(costs, encoder_run.MAX_ROWS):
        found = encode_docs(encoder, docs[low:high], alone[low:high], "full")
        parts += [to_torch(x.entity_vectors) for x in found]
    return torch.cat(parts)


def _masked(spans: np.ndarray, mask: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return spans, np.full(len(spans), mask, dtype=np.int64), np.zeros(len(spans), dtype=np.int64)
