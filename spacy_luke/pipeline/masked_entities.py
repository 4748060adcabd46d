"""The masked-entity head: which entities a mention looks for, hidden behind [MASK]."""

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
from ..vocab.editing import special

Ranked = list[tuple[str, float]]
"""Titles with their probabilities, best first."""
_BATCH = 32
"""Documents that are encoded, and mentions that are scored, at a time."""


def rank_entities(node: Any, mentions: Sequence[Span], n: int) -> list[Ranked]:
    """For each mention the ``n`` most probable entities; rows without a name are left out.

    node: the encoder. Every mention is hidden behind [MASK], together with the others of its
    document. Nothing is found for one without pieces, or longer than a window. Raises ConfigError
    where the encoder came without a masked-entity head, or ``n`` is below 1.
    """
    if n < 1:
        raise ConfigError(f"n is {n}; ask for 1 entity or more.")
    checkpoint = to_checkpoint(module_of(node))
    features, seen = mention_features(node, checkpoint, mentions)
    vocab = checkpoint.entities
    own = [vocab.names[name] for name in special(vocab)]
    table = checkpoint.weights[ENTITY_TABLE].cpu()
    bias = checkpoint.others[ENTITY_HEAD["bias"]].cpu().index_fill(0, torch.tensor(own), -torch.inf)
    n = min(n, len(table) - len(own))
    ranked: list[Ranked] = []
    for i in range(0, len(mentions), _BATCH):
        scores = features[i : i + _BATCH] @ table.T + bias  # of a large vocabulary: MB a mention
        best = scores.topk(n, dim=1)
        shares = (best.values - scores.logsumexp(dim=1, keepdim=True)).exp()
        for k, (ids, found) in enumerate(zip(best.indices.tolist(), shares.tolist()), i):
            language = mentions[k].doc.vocab.lang or None
            named = zip((vocab.name_of(x, language) for x in ids), found)
            ranked.append([(name, share) for name, share in named if name] if seen[k] else [])
    return ranked


def mention_features(
    node: Any, checkpoint: Checkpoint, mentions: Sequence[Span]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The head's features, (n, entity size): an entity is scored by its row's product with them
    (Yamada et al. 2020, section 3.2). And which mentions have pieces, (n,)."""
    head = _entity_head(checkpoint)
    by_doc: dict[int, list[int]] = defaultdict(list)
    for row, mention in enumerate(mentions):
        by_doc[id(mention.doc)].append(row)
    groups = list(by_doc.values())
    mask = checkpoint.entities.mask_id
    states = torch.zeros(len(mentions), checkpoint.config.hidden_size, dtype=torch.float32)
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
        for rows, found in zip(part, encode_docs(node, docs, given, "full")):
            vectors = np.asarray(node.ops.to_numpy(found.entity_vectors))
            states[rows] = torch.as_tensor(vectors)
    with torch.no_grad():
        return head(states), states.any(dim=1)


def _entity_head(checkpoint: Checkpoint) -> MaskedHead:
    tensors = {ours: checkpoint.others.get(theirs) for ours, theirs in ENTITY_HEAD.items()}
    if any(tensor is None for tensor in tensors.values()):
        raise ConfigError(
            f"{checkpoint.source.name} came without a masked-entity head (entity_predictions): "
            "use a masked-LM checkpoint, or pretrain one."
        )
    config = checkpoint.config
    head = MaskedHead(
        config.hidden_size, config.entity_emb_size, config.entity_vocab_size, config.layer_norm_eps
    )
    head.load_state_dict(tensors)
    return head.eval()
