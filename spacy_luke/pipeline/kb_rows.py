"""The rows that an encoder's entity table has for entities of a knowledge base."""

from collections.abc import Sequence

import numpy as np

from ..kb.knowledge_base import MappedKB
from ..model.packing import Array
from ..vocab.entity_vocab import EntityVocab


def kb_rows(
    kb: MappedKB, entities: EntityVocab, rows: Sequence[int], language: str | None
) -> Array:
    """(n,) the ids in ``entities`` of the entities in some rows of a knowledge base, or -1. An
    entity is looked up by its id, then by its name, also as titles in ``language``."""
    tables = kb.tables
    found = (
        next((i for x in names if (i := entities.find(x, language)) is not None), -1)
        for names in ((tables.ids[row], tables.names[row]) for row in rows)
    )
    return np.fromiter(found, np.int64, len(rows))
