"""A knowledge base with entities added, changed and removed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ..errors import CorpusError, InputError
from ..files import beside
from .arrays import Array
from .build import MAX_MEANINGS, build_kb
from .entity import EMPTY_NAME, Entity, Findings, check_text, check_texts
from .layout import NAME_VECTORS, PRIORS, VECTORS, hash_of
from .store import Store
from .tables import Tables
from .text_table import TextTable
from .vectors import moved, zero_rows


def edit_kb(
    tables: Tables,
    add: Iterable[Entity],
    remove: Iterable[str],
    folder: Path,
    findings: Findings,
    max_meanings: int | None = None,
) -> None:
    """Write the changed knowledge base to a folder, which it replaces when it is complete.

    add: an entity with an existing id replaces it, in its place; others follow at the end. The
    result is the same as that of building from a file with these changes, and takes as long. But
    meanings that were left out (``max_meanings``) do not come back.

    max_meanings: as of ``build_kb``; defaults to that of the knowledge base.

    Entities that were not changed keep their vectors, and so do names that stay; the vectors of the
    others are zero. Raises CorpusError if an id is both added and removed or not text, and
    InputError if ``add`` is no list of entities, or ``remove`` one text. Unknown ids to remove are
    counted. Raises KnowledgeBaseError if the knowledge base is changed where it is, and was changed
    there since it was opened.
    """
    folder = folder.resolve()
    changed = _by_id(add, findings)
    removed = _known(tables, remove, findings)
    both = sorted(removed & changed.keys())
    if both:
        raise CorpusError(f"The id {both[0]!r} is both to be added and to be removed.")
    rows: list[int] = []  # the earlier row of each entity; -1 if it has changed
    folder.parent.mkdir(parents=True, exist_ok=True)
    with beside(folder) as scratch:
        scratch.mkdir()
        entities = _entities(tables, changed, removed, rows, findings)
        priors = tables.store.meta["weights"] == PRIORS
        if max_meanings is None:
            max_meanings = tables.store.meta.get("max_meanings", MAX_MEANINGS)
        build_kb(entities, scratch / "kb", tables.lang, max_meanings, findings, priors)
        store = Store.open(scratch / "kb")
        store = _with_vectors(store, tables, np.array(rows, np.int64), scratch, findings)
        store.save(folder, over=tables.store)


def _by_id(add: Iterable[Entity], findings: Findings) -> dict[str, Entity]:
    changed: dict[str, Entity] = {}
    if not isinstance(add, Iterable):
        raise InputError(f"add is {add!r}; a list of entities is required.")
    for entity in add:
        if not isinstance(entity, Entity):
            raise InputError(
                f"add contains {entity!r}, which is not a spacy_luke.kb.entity.Entity."
            )
        check_text(entity.id, "id", "An entity")
        if entity.id in changed:
            findings.add("entities left out because an earlier one has their id", entity.id)
        elif not check_text(entity.name, "name", f"The entity {entity.id!r}").strip():
            findings.add(EMPTY_NAME, entity.id)
        else:
            changed[entity.id] = entity
    return changed


def _known(tables: Tables, remove: Iterable[str], findings: Findings) -> set[str]:
    check_texts(remove, "remove")
    known = set()
    for entity in dict.fromkeys(remove):
        check_text(entity, "id", "An entity to be removed")
        if tables.ids.find(entity) is None:
            findings.add("unknown ids, which were not removed", entity)
        else:
            known.add(entity)
    return known


def _entities(
    tables: Tables,
    changed: dict[str, Entity],
    removed: set[str],
    rows: list[int],
    findings: Findings,
) -> Iterator[Entity]:
    for row, entity in enumerate(tables.ids):
        if entity in removed:
            findings.add("entities removed")
        elif entity in changed:
            findings.add("entities changed")
            rows.append(-1)
            yield changed[entity]
        else:
            rows.append(row)
            yield tables.entity(row)
    for entity in changed:
        if tables.ids.find(entity) is None:
            findings.add("entities added")
            rows.append(-1)
            yield changed[entity]


def _with_vectors(
    store: Store, tables: Tables, rows: Array, scratch: Path, findings: Findings
) -> Store:
    """The store with the vectors of ``tables``. rows: (n,) the earlier row of each entity."""
    earlier = tables.store
    for name, of in ((VECTORS, "entities"), (NAME_VECTORS, "names")):
        if name in earlier.arrays:
            if name == NAME_VECTORS:
                rows = _name_rows(tables.keys, Tables(store).keys)
            vectors = moved(earlier.arrays[name], rows, scratch / f"{name}.npy")
            store = store.replaced(name, vectors, **{hash_of(name): earlier.meta[hash_of(name)]})
            n_missing = len(zero_rows(vectors, len(vectors)))
            findings.add(f"{of} that have no vector yet", n=n_missing)
    return store


def _name_rows(earlier: TextTable, names: TextTable) -> Array:
    """(n,) the earlier row of each name; -1 if it is new."""
    rows = (earlier.find(name) for name in names)
    return np.fromiter((-1 if row is None else row for row in rows), np.int64, len(names))
