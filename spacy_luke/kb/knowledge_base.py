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
from .layout import NAME_VECTORS, VECTORS, hash_of
from .mapped_candidate import MappedCandidate
from .nearest import NearestSettings, nearest_candidates
from .store import Store, open_temporary
from .tables import Tables
from .vectors import check_vectors, existing, zero_rows

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
        row = self.tables.ids.find(entity) if isinstance(entity, str) else None
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

    def nearest_candidates(
        self, vectors: Array, settings: NearestSettings | None = None
    ) -> list[list[MappedCandidate]]:
        """The candidates of each mention by the vectors of names, the best first (see
        :func:`~spacy_luke.kb.nearest.nearest_candidates`). vectors: (n, width) of mentions."""
        results = nearest_candidates(self.tables, vectors, settings)
        return [[MappedCandidate(self, self.tables, found) for found in row] for row in results]

    # Vectors of entities

    @property
    def has_vectors(self) -> bool:
        return self.tables.vectors is not None

    @property
    def vectors_hash(self) -> str:
        """The hash of the weights that made the vectors, as given to :meth:`set_vectors`."""
        return self._hash(VECTORS)

    def set_vectors(self, vectors: Array, weights_hash: str) -> None:
        """Set the vectors of all entities: (n, width) in the order of the file, float32 or float16.

        weights_hash: identifies the weights that made them.

        Raises KnowledgeBaseError for another number, shape or type, and for values that are NaN or
        infinite. The array is not copied, and must not be changed afterwards; it may be mapped.
        """
        check_vectors(vectors, len(self), "entities")
        self._set(VECTORS, vectors, weights_hash)

    def check_vectors(self, weights_hash: str) -> None:
        """Raise KnowledgeBaseError if there are no vectors, or other weights made them."""
        self._check_hash(VECTORS, "vectors", weights_hash)

    def without_vector(self) -> Array:
        """The rows (n,) of entities whose vector is zero: those that were added or changed after
        the vectors were made. All rows if there are no vectors."""
        return zero_rows(self.tables.vectors, len(self))

    def get_vector(self, entity: str) -> Array:
        """(width,) float32; zeros if the id is unknown or "NIL", or there are no vectors. Raises
        InputError if there are, but none of this entity yet."""
        row = None if entity == NIL else self.tables.ids.find(entity)
        if row is None or self.tables.vectors is None:
            return np.zeros(self.entity_vector_length, np.float32)
        self.tables.looked_up()
        return existing(self.tables.vectors[row], entity)

    # Vectors of names

    @property
    def has_name_vectors(self) -> bool:
        return self.tables.name_vectors is not None

    @property
    def name_vectors_hash(self) -> str:
        """The hash of the weights that made them, as given to :meth:`set_name_vectors`."""
        return self._hash(NAME_VECTORS)

    def set_name_vectors(self, vectors: Array, weights_hash: str) -> None:
        """Set the vectors of all normalised names, in the order of ``tables.keys``: (n, width),
        float32 or float16. Their width may differ from that of the vectors of entities.

        weights_hash and errors: as of :meth:`set_vectors`.
        """
        check_vectors(vectors, len(self.tables.keys), "names")
        self._set(NAME_VECTORS, vectors, weights_hash)

    def check_name_vectors(self, weights_hash: str) -> None:
        """Raise KnowledgeBaseError if there are none, or other weights made them."""
        self._check_hash(NAME_VECTORS, "vectors of names", weights_hash)

    def without_name_vector(self) -> Array:
        """The rows (n,) of names in ``tables.keys`` whose vector is zero: those that are new since
        the vectors were made. All rows if there are no vectors."""
        return zero_rows(self.tables.name_vectors, len(self.tables.keys))

    def _hash(self, name: str) -> str:
        return str(self.tables.store.meta.get(hash_of(name), ""))

    def _set(self, name: str, vectors: Array, weights_hash: str) -> None:
        self._use(self.tables.store.replaced(name, vectors, **{hash_of(name): weights_hash}))

    def _check_hash(self, name: str, what: str, weights_hash: str) -> None:
        if name not in self.tables.store.arrays:
            raise KnowledgeBaseError(f"The knowledge base has no {what}.")
        if self._hash(name) != weights_hash:
            raise KnowledgeBaseError(
                f"The {what} of the knowledge base were made by weights with the hash "
                f"{self._hash(name) or 'unknown'!r}, and these have {weights_hash!r}. Make them "
                "again."
            )

    # Editing

    def edited(
        self,
        add: Iterable[Entity] = (),
        remove: Iterable[str] = (),
        folder: str | Path | None = None,
        findings: Findings | None = None,
        max_meanings: int | None = None,
    ) -> "MappedKB":
        """Another knowledge base in which entities are added, changed (if their id exists) or
        removed. This one stays as it is.

        folder: where to write it; defaults to temporary files, which exist as long as it is open.
        findings: gets what was changed and left out.
        max_meanings: maximum number of entities per alias; defaults to that of this one.
        """
        findings = Findings() if findings is None else findings
        write = partial(
            edit_kb, self.tables, add, remove, findings=findings, max_meanings=max_meanings
        )
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
