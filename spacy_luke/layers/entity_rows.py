"""What an encoder knows of entities: their rows in its table, and its masked-entity head."""

import numpy as np
import torch

from ..checkpoint.names import ENTITY_HEAD
from ..model.heads import MaskedTransform
from ..model.packing import Array
from ..model.row_head import EntityRows
from ..vocab.editing import special
from .encoder_module import Encoder
from .encoder_run import EncoderRun

TRANSFORM = {ours: theirs for ours, theirs in ENTITY_HEAD.items() if ours != "bias"}
"""Parameters of ``MaskedTransform`` -> their published names."""


def has_entity_rows(encoder: Encoder) -> bool:
    """Whether the encoder has a masked-entity head, and entities besides the special ones."""
    entities = encoder.entities
    has_head = all(name in encoder.others for name in ENTITY_HEAD.values())
    return has_head and len(entities) > len(special(entities))


def load_transform(encoder: Encoder, transform: MaskedTransform) -> None:
    """Copy the encoder's masked-entity head."""
    transform.load_state_dict({x: encoder.others[name] for x, name in TRANSFORM.items()})


def entity_rows(run: EncoderRun, ids: Array) -> EntityRows:
    """The rows of entities, and no others: the table may be large.

    ids: (m,) of the encoder's vocabulary, or -1. Rows are trained if the encoder and its table are.
    """
    network, known = run.encoder.network, ids >= 0
    vectors = run.zeros(len(ids), network.config.entity_emb_size)
    biases = torch.zeros(len(ids))
    if known.any():
        of_head = run.encoder.others[ENTITY_HEAD["bias"]]
        biases[torch.from_numpy(known)] = of_head[torch.from_numpy(ids[known])].float().cpu()
        with torch.set_grad_enabled(run.trains):
            rows = network.entity_embeddings.entities(run.index(ids[known]))
            vectors = vectors.index_copy(0, run.index(np.flatnonzero(known)), rows.float())
    return EntityRows(vectors, biases.to(run.device), run.values(known))
