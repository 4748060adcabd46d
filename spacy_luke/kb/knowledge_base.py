"""The memory-mapped knowledge base as spaCy's ``KnowledgeBase``."""

from collections.abc import Iterable
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from spacy.kb import KnowledgeBase
from spacy.tokens import Span
from spacy.vocab import Vocab

from ..errors import InputError, KnowledgeBaseError
from .arrays import Array
from .build import build_kb
from .candidates import CandidateSettings, find_candidates
from .edit import edit_kb
from .entity import NIL, Entity, Findings
from .layout import VECTORS
from .mapped_candidate import MappedCandidate
from .store import Store, open_temporary
from .tables import Tables

DEFAULT_LENGTH = 64
"""Of vectors, if there are none yet; the default of ``entity_linker``."""


class MappedKB(KnowledgeBase):
    """A knowledge base in files that are mapped into memory: entities, aliases and vectors.

    It is never modified: :meth:`edited` makes another one. Threads may share it.

    store: defaults to an empty knowledge base. entity_vector_length: of an empty one; otherwise it
    is that of its vectors.
    """

    def __init__(
        self,
        vocab: Vocab,
        entity_vector_length: int = DEFAULT_LENGTH,
        store: Store | None = None,
    ):
        super().__init__(vocab, entity_vector_length)
        self._use(_empty_store() if store is None else store)

    @classmethod
    def open(
        cls, folder: str | Path, vocab: Vocab, entity_vector_length: int = DEFAULT_LENGTH
    ) -> "MappedKB":
        """Open a folder that was written by ``spacy luke kb`` or :meth:`to_disk`. Raises
        KnowledgeBaseError, with the file, if it is not one, or is damaged."""
        return cls(vocab, entity_vector_length, Store.open(Path(folder)))

    def _use(self, store: Store) -> None:
        tables = Tables(store)
        length = self.entity_vector_length if tables.vectors is None else tables.vectors.shape[1]
        if length != self.entity_vector_length:  # read-only in Python
            super().__init__(self.vocab, length)
        self.tables = tables

    # Entities

    def __len__(self) -> int:
        return len(self.tables)

    def is_empty(self) -> bool:
        return len(self) == 0

    def __contains__(self, entity: object) -> bool:
        return isinstance(entity, str) and self.tables.ids.find(entity) is not None

    def entity(self, entity: str) -> Entity:
        """Everything about an id. Raises InputError if it is unknown."""
        row = self.tables.ids.find(entity)
        if row is None:
            raise InputError(f"{entity!r} is not an id of this knowledge base.")
        return self.tables.entity(row)

    # Candidates

    def get_candidates(self, mention: Span) -> list[MappedCandidate]:
        return self.get_candidates_batch([mention])[0]

    def get_candidates_batch(self, mentions: Iterable[Span]) -> list[list[MappedCandidate]]:
        return self.candidates([mention.text for mention in mentions])

    def candidates(
        self, mentions: Iterable[str], settings: CandidateSettings | None = None
    ) -> list[list[MappedCandidate]]:
        """The candidates of each text, the best first. Repeated texts are looked up once."""
        results = find_candidates(self.tables, mentions, settings or CandidateSettings())
        return [[MappedCandidate(self, self.tables, found) for found in row] for row in results]

    # Vectors

    @property
    def has_vectors(self) -> bool:
        return self.tables.vectors is not None

    @property
    def vectors_hash(self) -> str:
        """The hash of the weights that made the vectors, as given to :meth:`set_vectors`."""
        return str(self.tables.store.meta.get("vectors_hash", ""))

    def set_vectors(self, vectors: Array, weights_hash: str) -> None:
        """Set the vectors of all entities: (n, width) in the order of the file, float32 or float16.

        weights_hash: identifies the weights that made them.

        Raises KnowledgeBaseError for another number, shape or type. The array is not copied; it may
        be mapped.
        """
        expected = len(self)
        if vectors.ndim != 2 or len(vectors) != expected or not vectors.shape[1]:
            raise KnowledgeBaseError(
                f"The vectors have the shape {list(vectors.shape)}, and the knowledge base has "
                f"{expected} entities: [{expected}, width] is required."
            )
        if vectors.dtype not in (np.float32, np.float16):
            raise KnowledgeBaseError(f"The vectors are {vectors.dtype}; use float32 or float16.")
        self._use(self.tables.store.replaced(VECTORS, vectors, vectors_hash=weights_hash))

    def check_vectors(self, weights_hash: str) -> None:
        """Raise KnowledgeBaseError if there are no vectors, or other weights made them."""
        if not self.has_vectors:
            raise KnowledgeBaseError("The knowledge base has no vectors.")
        if self.vectors_hash != weights_hash:
            raise KnowledgeBaseError(
                f"The vectors of the knowledge base were made by weights with the hash "
                f"{self.vectors_hash or 'unknown'!r}, and these have {weights_hash!r}. Make the "
                "vectors again."
            )

    def without_vector(self) -> Array:
        """The rows (n,) of entities whose vector is zero: those that were added or changed after
        the vectors were made. All rows if there are no vectors."""
        vectors = self.tables.vectors
        if vectors is None:
            return np.arange(len(self))
        blocks = range(0, len(vectors), 10_000)
        empty = [~np.any(vectors[i : i + 10_000], axis=1) for i in blocks]
        return np.flatnonzero(np.concatenate(empty)) if empty else np.arange(0)

    def get_vector(self, entity: str) -> Array:
        """(width,) float32; zeros if the id is unknown or "NIL", or there are no vectors."""
        row = None if entity == NIL else self.tables.ids.find(entity)
        if row is None or self.tables.vectors is None:
            return np.zeros(self.entity_vector_length, np.float32)
        return self.tables.vectors[row].astype(np.float32)

    # Editing

    def edited(
        self,
        add: Iterable[Entity] = (),
        remove: Iterable[str] = (),
        folder: str | Path | None = None,
        findings: Findings | None = None,
    ) -> "MappedKB":
        """Another knowledge base in which entities are added, changed (if their id exists) or
        removed. This one stays as it is.

        folder: where to write it; defaults to temporary files, which exist as long as it is open.
        findings: gets what was changed and left out.
        """
        findings = Findings() if findings is None else findings
        write = partial(edit_kb, self.tables, add, remove, findings=findings)
        if folder is None:
            store = open_temporary(write)
        else:
            write(Path(folder))
            store = Store.open(Path(folder))
        return MappedKB(self.vocab, self.entity_vector_length, store)

    # Saving

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        """Write the files to a folder. Files that did not change are linked if possible."""
        self.tables.store.save(Path(path))

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> "MappedKB":
        self._use(Store.open(Path(path)))
        return self

    def to_bytes(self, **kwargs: object) -> bytes:
        return self.tables.store.to_bytes()

    def from_bytes(self, bytes_data: bytes, *, exclude: tuple[str, ...] = ()) -> "MappedKB":
        self._use(Store.from_bytes(bytes_data))
        return self

    def __reduce__(self) -> tuple:
        """With its content: its files may be replaced, or absent on another machine."""
        return _from_bytes, (self.vocab, self.entity_vector_length, self.to_bytes())

    def __deepcopy__(self, memo: dict[int, Any]) -> "MappedKB":
        return MappedKB(deepcopy(self.vocab, memo), self.entity_vector_length, self.tables.store)


@cache
def _empty_store() -> Store:
    return open_temporary(partial(build_kb, ()))


def _from_bytes(vocab: Vocab, length: int, data: bytes) -> MappedKB:
    return MappedKB(vocab, length, Store.from_bytes(data))
