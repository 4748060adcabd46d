"""Phrase vectors of UCTopic checkpoints (Li et al. 2022): one entity per sequence, and a head."""

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
    """Vectors of all tokens (without entities), and of each entity alone: tanh(head(state)), with
    [MASK] as its input. They are not normalised.

    The vector of an entity that fits no window is zero. Raises ConfigError if the head is missing.
    """
    module = module_of(encoder)
    if not {PHRASE_WEIGHT, PHRASE_BIAS} <= module.others.keys():
        raise ConfigError(
            f"phrases = true requires a checkpoint with the head {PHRASE_WEIGHT}, such as "
            f"UCTopic's; {module.source.name} has none."
        )
    no_entities = GivenEntities(*_masked(np.zeros((0, 2), dtype=np.int64), 0))
    words = encode_docs(encoder, docs, [no_entities] * len(docs), "full")
    of_doc = [i for i, given in enumerate(entities) for _ in given.ids]
    states = _states(encoder, [docs[i] for i in of_doc], entities)
    weight, bias = (
        module.others[name].float().to(states.device) for name in (PHRASE_WEIGHT, PHRASE_BIAS)
    )
    encoded = (states != 0).any(1, keepdim=True)
    vectors = torch2xp(torch.tanh(F.linear(states, weight, bias)) * encoded)
    bounds = np.searchsorted(of_doc, np.arange(len(docs) + 1)).tolist()
    return [
        DocStates(words[i].token_vectors, vectors[a:b])
        for i, (a, b) in enumerate(zip(bounds, bounds[1:]))
    ]


def _states(encoder: Model, docs: Sequence[Doc], entities: Sequence[GivenEntities]) -> torch.Tensor:
    """(n_entities, hidden) states of entities that are encoded alone. docs: (n_entities,) the
    document of each. A document is encoded once per entity, in groups that limit memory."""
    module = module_of(encoder)
    alone = [
        GivenEntities(*_masked(span[None], module.mask_id))
        for given in entities
        for span in given.spans.reshape(-1, 2)
    ]
    parts = [torch.zeros(0, module.hidden_size, dtype=torch.float32, device=module.network.device)]
    costs = np.asarray([len(doc) for doc in docs])
    for low, high in bounded(costs, encoder_run.MAX_ROWS):
        doc_states = encode_docs(encoder, docs[low:high], alone[low:high], "full")
        parts += [to_torch(x.entity_vectors) for x in doc_states]
    return torch.cat(parts)


def _masked(spans: np.ndarray, mask: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return spans, np.full(len(spans), mask, dtype=np.int64), np.zeros(len(spans), dtype=np.int64)
