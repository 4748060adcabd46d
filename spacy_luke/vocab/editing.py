"""Subsets and unions of entity vocabularies."""

from collections.abc import Iterable
from dataclasses import dataclass

from .entity_vocab import MASK, MASK2, PAD, UNK, EntityVocab

LITE = (MASK, UNK, PAD, MASK2)
"""The special entities in the order of the published ``-lite`` models."""


@dataclass
class KeptEntities:
    """missing: requested names that are not in the vocabulary."""

    vocab: EntityVocab
    missing: list[str]


def special(entities: EntityVocab) -> list[str]:
    """The names of the special entities, ordered by id."""
    names = [name for name in (PAD, UNK, MASK, MASK2) if name in entities]
    return sorted(names, key=entities.names.__getitem__)


def shared_rows(
    entities: EntityVocab, other: EntityVocab, language: str | None = None
) -> dict[int, int]:
    """Row in ``entities`` -> row in ``other``, of the entities that are in both.

    language: prefix for names without a language, to find them in a multilingual vocabulary.
    """
    rows = {}
    for name, index in entities.names.items():
        row = other.names.get(name)
        if row is None and language:
            row = other.names.get(f"{language}:{name}")
        if row is not None:
            rows[index] = row
    return rows


def keep_entities(
    vocab: EntityVocab, names: Iterable[str], language: str | None = None
) -> KeptEntities:
    """The subset of the special entities and ``names``, in the vocabulary's order. An entity keeps
    all its names (in all languages). language: used to look up names without a language."""
    kept_ids, missing = set(), []
    for name in names:
        index = vocab.find(name, language)
        if index is None:
            missing.append(name)
        else:
            kept_ids.add(index)
    kept_ids.update(vocab.names[name] for name in special(vocab))
    rows = {index: row for row, index in enumerate(sorted(kept_ids))}
    kept = {name: rows[index] for name, index in vocab.names.items() if index in rows}
    return KeptEntities(EntityVocab(kept), missing)


def lite(vocab: EntityVocab) -> EntityVocab:
    """Only the special entities, in the order of the published ``-lite`` models."""
    names = [name for name in LITE if name in vocab]
    return EntityVocab({name: i for i, name in enumerate(names)})


def joined(one: EntityVocab, other: EntityVocab) -> EntityVocab:
    """The entities of ``one`` with their ids, then those only in ``other``. Entities that share a
    name are the same entity, with the names of both."""
    names = dict(one.names.items())
    rows = {index: names[name] for name, index in other.names.items() if name in names}
    n_rows = len(one)
    for name, index in other.names.items():
        if index not in rows:
            rows[index], n_rows = n_rows, n_rows + 1
        names.setdefault(name, rows[index])
    return EntityVocab(names)
