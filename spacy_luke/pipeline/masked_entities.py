"""The masked-entity head: it predicts the entity of a mention that is hidden behind [MASK]."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from spacy.tokens import Span

from ..checkpoint.names import ENTITY_HEAD, ENTITY_TABLE
from ..checkpoint.read import Checkpoint
from ..errors import ConfigError
from ..layers.doc_states import GivenEntities, encode_docs
from ..layers.encoder import module_of, to_checkpoint
from ..model.heads import MaskedHead
from ..model.network import AttentionPattern
from ..vocab.editing import special

Ranked = list[tuple[str, float]]
"""Titles with their probabilities, best first."""
_BATCH = 32
"""Documents that are encoded, and mentions that are scored, per batch."""


def rank_entities(node: Any, mentions: Sequence[Span], n: int) -> list[Ranked]:
    """For each mention the ``n`` most probable entities; rows without a name are omitted.

    node: the encoder. All mentions of a document are hidden behind [MASK] in the same pass. A
    mention without pieces, or longer than a window, gets an empty list.

    Raises ConfigError if the encoder's checkpoint has no masked-entity head, or if ``n`` < 1.
    """
    if n < 1:
        raise ConfigError(f"n is {n}; it must be at least 1.")
    checkpoint = to_checkpoint(module_of(node))
    features, encoded = mention_features(node, checkpoint, mentions)
    vocab = checkpoint.entities
    specials = torch.tensor([vocab.names[name] for name in special(vocab)])
    table = checkpoint.weights[ENTITY_TABLE].cpu()
    bias = checkpoint.others[ENTITY_HEAD["bias"]].cpu().index_fill(0, specials, -torch.inf)
    n = min(n, len(table) - len(specials))
    ranked: list[Ranked] = []
    for i in range(0, len(mentions), _BATCH):
        # (n_mentions, n_entities): megabytes per mention for a large vocabulary.
        scores = features[i : i + _BATCH] @ table.T + bias
        best = scores.topk(n, dim=1)
        probabilities = (best.values - scores.logsumexp(dim=1, keepdim=True)).exp()
        for k, (rows, of_rows) in enumerate(zip(best.indices.tolist(), probabilities.tolist()), i):
            language = mentions[k].doc.vocab.lang or None
            titles = [vocab.name_of(row, language) for row in rows]
            named = [(title, p) for title, p in zip(titles, of_rows) if title]
            ranked.append(named if encoded[k] else [])
    return ranked


def mention_features(
    node: Any, checkpoint: Checkpoint, mentions: Sequence[Span]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The head's features, (n, entity size), and whether each mention could be encoded, (n,).

    The head scores an entity by the product of its row and the features (Yamada et al. 2020,
    section 3.2).
    """
    head = _entity_head(checkpoint)
    states, encoded = mask_states(node, mentions, "full")
    with torch.no_grad():
        return head(states), encoded


def mask_states(
    node: Any, mentions: Sequence[Span], attention: AttentionPattern
) -> tuple[torch.Tensor, torch.Tensor]:
    """States of mentions that are hidden behind [MASK], (n, H), and whether each could be encoded,
    (n,). It cannot if it has no pieces or is longer than a window."""
    by_doc: dict[int, list[int]] = defaultdict(list)
    for row, mention in enumerate(mentions):
        by_doc[id(mention.doc)].append(row)
    groups = list(by_doc.values())
    encoder = module_of(node)
    mask = encoder.mask_id
    states = torch.zeros(len(mentions), encoder.hidden_size, dtype=torch.float32)
    for i in range(0, len(groups), _BATCH):
        part = groups[i : i + _BATCH]
        given = [
            GivenEntities(
                np.asarray([(mentions[x].start, mentions[x].end) for x in rows], dtype=np.int64),
                np.full(len(rows), mask, dtype=np.int64),
                np.zeros(len(rows), dtype=np.int64),
            )
            for rows in part
        ]
        docs = [mentions[rows[0]].doc for rows in part]
        for rows, doc_states in zip(part, encode_docs(node, docs, given, attention)):
            vectors = np.asarray(node.ops.to_numpy(doc_states.entity_vectors))
            states[rows] = torch.as_tensor(vectors)
    return states, states.any(dim=1)


def _entity_head(checkpoint: Checkpoint) -> MaskedHead:
    tensors = {ours: checkpoint.others.get(theirs) for ours, theirs in ENTITY_HEAD.items()}
    if any(tensor is None for tensor in tensors.values()):
        raise ConfigError(
            f"{checkpoint.source.name} has no masked-entity head (entity_predictions): use a "
            "masked-LM checkpoint, or pretrain one."
        )
    config = checkpoint.config
    head = MaskedHead(
        config.hidden_size, config.entity_emb_size, config.entity_vocab_size, config.layer_norm_eps
    )
    head.load_state_dict(tensors)
    return head.eval()
