"""New entity vocabularies from given ones: a part of one, or two joined."""

from collections.abc import Iterable
from dataclasses import dataclass

from .entities import MASK, MASK2, PAD, UNK, EntityVocab

LITE = (MASK, UNK, PAD, MASK2)
"""The special entities in the order of the published ``-lite`` models."""


@dataclass
class Kept:
    """missing: names that were asked for and are not in the vocabulary."""

    vocab: EntityVocab
    missing: list[str]


def special(entities: EntityVocab) -> list[str]:
    """The names of the special entities, by their ids."""
    names = [name for name in (PAD, UNK, MASK, MASK2) if name in entities]
    return sorted(names, key=entities.names.__getitem__)


def shared_rows(
    entities: EntityVocab, known: EntityVocab, language: str | None = None
) -> dict[int, int]:
    """Of the entities that both vocabularies name: the row in the first -> that in the second.

    language: of names that do not say theirs, to find them in a multilingual vocabulary.
    """
    rows = {}
    for name, index in entities.names.items():
        row = known.names.get(name)
        if row is None and language:
            row = known.names.get(f"{language}:{name}")
        if row is not None:
            rows[index] = row
    return rows


def keep_entities(vocab: EntityVocab, names: Iterable[str], language: str | None = None) -> Kept:
    """The vocabulary of the special entities and of ``names``, in its own order; an entity keeps
    all of its names (those of other languages). language: in which to look up names without one."""
    wanted, missing = set(), []
    for name in names:
        index = vocab.find(name, language)
        if index is None:
            missing.append(name)
        else:
            wanted.add(index)
    wanted.update(vocab.names[name] for name in special(vocab))
    rows = {index: row for row, index in enumerate(sorted(wanted))}
    kept = {name: rows[index] for name, index in vocab.names.items() if index in rows}
    return Kept(EntityVocab(kept), missing)


def lite(vocab: EntityVocab) -> EntityVocab:
    """The special entities alone, in the order of the published ``-lite`` models."""
    names = [name for name in LITE if name in vocab]
    return EntityVocab({name: i for i, name in enumerate(names)})


def joined(one: EntityVocab, other: EntityVocab) -> EntityVocab:
    """The entities of ``one`` with their ids, then those that ``other`` alone has; names that both
    have are the same entity, whatever else it is called."""
    names = dict(one.names.items())
    rows = {index: names[name] for name, index in other.names.items() if name in names}
    n_rows = len(one)
    for name, index in other.names.items():
        if index not in rows:
            rows[index], n_rows = n_rows, n_rows + 1
        names.setdefault(name, rows[index])
    return EntityVocab(names)
