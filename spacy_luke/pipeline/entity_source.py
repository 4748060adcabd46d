"""Components whose entity inputs come from ``Doc.ents``, or from a source saved with them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import srsly
from spacy.tokens import Doc, Span

from ..layers.task_layer import Query, Scores
from .classifier_pipe import ClassifierPipe

FOLDER = "entities"


@runtime_checkable  # the config is validated against it
class EntitySource(Protocol):
    """Finds the entity inputs of texts; ``kb_id_`` names the row of an entity. If it has
    ``to_disk``, it is saved with the component, as ``spacy-luke.linked_mentions.v1`` is."""

    def find(self, docs: Sequence[Doc]) -> Sequence[Sequence[Span]]: ...


class DocEnts:
    """The entity inputs are ``Doc.ents``."""

    def find(self, docs: Sequence[Doc]) -> list[list[Span]]:
        return [list(doc.ents) for doc in docs]


class HasEntitySource(ClassifierPipe[Query, Scores]):
    """entity_source: of the entity inputs. It is saved in the folder ``entities``."""

    entity_source: EntitySource

    @property
    def _saved_source(self) -> Any:
        """The source, or None if it has nothing to save."""
        return self.entity_source if hasattr(self.entity_source, "to_disk") else None

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        path, exclude = Path(path), tuple(exclude)
        super().to_disk(path, exclude=exclude)
        if self._saved_source is not None and FOLDER not in exclude:
            self._saved_source.to_disk(path / FOLDER)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "HasEntitySource":
        path, exclude = Path(path), tuple(exclude)
        super().from_disk(path, exclude=exclude)
        if self._saved_source is not None and FOLDER not in exclude:
            self._saved_source.from_disk(path / FOLDER)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        exclude = tuple(exclude)
        parts = {"pipe": super().to_bytes(exclude=exclude)}
        if self._saved_source is not None and FOLDER not in exclude:
            parts[FOLDER] = self._saved_source.to_bytes()
        return srsly.msgpack_dumps(parts)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "HasEntitySource":
        exclude, parts = tuple(exclude), srsly.msgpack_loads(data)
        super().from_bytes(parts["pipe"], exclude=exclude)
        if self._saved_source is not None and FOLDER in parts and FOLDER not in exclude:
            self._saved_source.from_bytes(parts[FOLDER])
        return self
