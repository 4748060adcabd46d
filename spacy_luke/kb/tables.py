"""A store read as entities and aliases."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .arrays import Array
from .entity import Entity
from .layout import NAME_VECTORS, PRIORS, VECTORS
from .store import Store
from .text_table import TextTable
from .trigrams import TrigramIndex

_LOOKUPS = 100
"""Between two releases of mapped memory."""


@dataclass(frozen=True)
class Meanings:
    """The entities that aliases mean: rows (n,), per alias in the order of the file; their
    probabilities (n,); a form that means each (n,); which of the aliases it is (n,), from 0;
    whether these were counted or given (n,): without counts all entities of an alias are equal; and
    the sums of counts or probabilities that its forms have (n,), NaN if one of them has none."""

    entities: Array
    priors: Array
    forms: Array
    aliases: Array
    counted: Array
    weights: Array


class Tables:
    """Entities are addressed by their row, which is their order in the file. Reads only, so any
    number of threads may use it."""

    def __init__(self, store: Store):
        self.store, arrays = store, store.arrays
        self.lang, self._priors = str(store.meta["lang"]), store.meta["weights"] == PRIORS
        self.ids, self.names = TextTable(arrays, "ids"), TextTable(arrays, "names")
        self.descriptions = TextTable(arrays, "descriptions")
        self.types = TextTable(arrays, "types")
        self.forms, self.keys = TextTable(arrays, "forms"), TextTable(arrays, "keys")
        self.counts: Array = arrays["counts"]
        self.vectors: Array | None = arrays.get(VECTORS)
        self.name_vectors: Array | None = arrays.get(NAME_VECTORS)
        self.trigrams = TrigramIndex(arrays)
        self._n_lookups = 0

    def looked_up(self, n: int = 1) -> None:
        """Count lookups, and release mapped memory now and then. (If threads count at once, some
        lookups are not counted.)

        n: more than 1 for a lookup that reads as much as so many.
        """
        self._n_lookups += n
        if self._n_lookups >= _LOOKUPS:
            self._n_lookups = 0
            self.store.release()

    def __len__(self) -> int:
        return len(self.ids)

    def entity(self, row: int) -> Entity:
        """All of one entity, with its aliases in their given order."""
        arrays = self.store.arrays
        start, end = arrays["entity_pairs"][row : row + 2].tolist()
        pairs = arrays["pairs_of_entities"][start:end]
        forms = np.searchsorted(arrays["form_pairs"], pairs, side="right") - 1
        aliases = {
            self.forms[form]: weight
            for form, weight in zip(forms.tolist(), arrays["pair_weights"][pairs].tolist())
        }
        return Entity(
            self.ids[row],
            self.names[row],
            aliases,
            self.descriptions[row],
            self.types[row],
            float(self.counts[row]),
        )

    def entities(self) -> Iterator[Entity]:
        return (self.entity(row) for row in range(len(self)))

    @property
    def has_counts(self) -> bool:
        """Whether the weights of aliases are counts, not probabilities."""
        return not self._priors

    def meanings_of_form(self, form: int, without: int | None = None) -> Meanings:
        """The entities of a form (n,). without: see :meth:`meanings_of_keys`."""
        return self._meanings(np.array([form]), np.array([form + 1]), without)

    def meanings_of_key(self, key: int, without: int | None = None) -> Meanings:
        return self.meanings_of_keys(np.array([key]), without)

    def meanings_of_keys(self, keys: Array, without: int | None = None) -> Meanings:
        """The entities of all forms of each key (n,). An entity has the sum of the weights of the
        forms that mean it; if one of them has no weight, at least its count. without: an entity
        that counts one time fewer, if all of its forms have a count. If none is left, it is not
        among the meanings, unless it has a form that was never counted, or its name, which lists
        of entities have as an alias, counted or not. (A redirect that was counted cannot be told
        from a text that was.)"""
        key_forms = self.store.arrays["key_forms"]
        return self._meanings(key_forms[keys], key_forms[keys + 1], without)

    def _has_own_form(self, row: int, forms: Array, weights: Array) -> bool:
        """Whether an entity would have one of its forms (n,), with these weights (n,), without one
        of its mentions. An entity without description that was counted once may be there only
        because it was counted: then it has none."""
        exists = not 0 < self.counts[row] <= 1 or bool(self.descriptions[row])
        if not exists:
            return False
        return bool((weights == 0).any()) or self.names[row].strip() in (
            self.forms[form] for form in forms.tolist()
        )

    def _meanings(self, first: Array, last: Array, without: int | None) -> Meanings:
        """first, last: (n,) a range of forms per alias."""
        arrays, n = self.store.arrays, len(first)
        aliases, forms = _ranges(first, last)
        of_form, pairs = _ranges(arrays["form_pairs"][forms], arrays["form_pairs"][forms + 1])
        aliases, forms, entities = aliases[of_form], forms[of_form], arrays["pair_entities"][pairs]
        order = np.lexsort((entities, aliases))  # stable: the first form of an entity stays first
        aliases, entities = aliases[order], entities[order]
        weights = arrays["pair_weights"][pairs[order]]
        pair_entities, pair_forms = entities, forms[order]
        new = np.ones(len(order), bool)
        new[1:] = (aliases[1:] != aliases[:-1]) | (entities[1:] != entities[:-1])
        meanings, unknown = np.cumsum(new) - 1, np.isnan(weights)
        aliases, entities, forms = aliases[new], entities[new], pair_forms[new]
        sums = np.bincount(meanings, np.where(unknown, 0.0, weights), len(entities))
        # An entity is not mentioned more often because its name is given in several spellings.
        unknown = np.bincount(meanings, unknown, len(entities)) > 0
        if without is not None:
            less = (entities == without) & ~unknown
            sums = np.where(less, np.maximum(sums - 1, 0), sums)
            own = pair_entities == without
            if not self._has_own_form(without, pair_forms[own], weights[own]):
                kept = ~less | (sums > 0)
                columns = (aliases, entities, forms, sums, unknown)
                aliases, entities, forms, sums, unknown = (x[kept] for x in columns)
        given = np.where(unknown, np.nan, sums)
        sums = np.where(unknown, np.maximum(sums, self.counts[entities]), sums)
        totals = (last - first).astype(float) if self._priors else np.bincount(aliases, sums, n)
        n_entities = np.bincount(aliases, minlength=n)
        known = totals > 0
        priors = np.where(known, 0.0, 1 / np.maximum(n_entities, 1))[aliases]
        priors += sums / np.where(known, totals, np.inf)[aliases]
        return Meanings(entities, priors, forms, aliases, known[aliases], given)


def _ranges(starts: Array, ends: Array) -> tuple[Array, Array]:
    """The numbers of ranges (n,), concatenated, and before them the range that each belongs to.

    Example: the ranges [5, 7) and [2, 3) have the numbers [5, 6, 2], of the ranges [0, 0, 1].
    """
    lengths = (ends - starts).astype(np.int64)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    begins = np.cumsum(lengths) - lengths
    return owners, np.arange(len(owners)) + (starts - begins)[owners]
