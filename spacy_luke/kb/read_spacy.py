"""Entities of a saved ``InMemoryLookupKB``."""

from pathlib import Path

import numpy as np
from spacy.kb import InMemoryLookupKB
from spacy.vocab import Vocab

from ..errors import CorpusError
from .arrays import Array
from .entity import Entity

_CONTENTS = "contents"


def is_lookup_kb(path: Path) -> bool:
    """Whether a path is the folder of an ``InMemoryLookupKB``, or its file of contents."""
    return (_folder(path) / _CONTENTS).is_file()


def read_lookup_kb(path: Path) -> tuple[list[Entity], Array]:
    """The entities, and their vectors (n, width). The name of an entity is its most probable alias
    (the first one among equals), or its id if it has none. Raises CorpusError."""
    kb = InMemoryLookupKB(Vocab(), entity_vector_length=1)
    try:
        kb.from_disk(_folder(path))
    except Exception as err:  # a damaged file may raise anything, also MemoryError
        raise CorpusError(f"{path} cannot be read as an InMemoryLookupKB: {err!r}.") from err
    aliases: dict[str, dict[str, float]] = {x: {} for x in kb.get_entity_strings()}
    counts = dict.fromkeys(aliases, 0.0)
    for alias in sorted(kb.get_alias_strings()):
        for candidate in kb.get_alias_candidates(alias):
            aliases[candidate.entity_][alias] = candidate.prior_prob
            counts[candidate.entity_] = candidate.entity_freq
    entities = [
        Entity(x, max(priors, key=lambda a: priors[a], default=x), priors, count=counts[x])
        for x, priors in aliases.items()
    ]
    vectors = np.array([kb.get_vector(x) for x in aliases], np.float32)
    return entities, vectors.reshape(len(entities), kb.entity_vector_length)


def _folder(path: Path) -> Path:
    return path.parent if path.name == _CONTENTS else path
