"""A store read as entities and aliases."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .arrays import Array
from .entity import Entity
from .layout import PRIORS, VECTORS
from .store import Store
from .text_table import TextTable
from .trigrams import TrigramIndex

_LOOKUPS = 100
"""Between two releases of mapped memory."""


@dataclass(frozen=True)
class Meanings:
    """The entities that an alias means: rows (n,), in the order of the file, the probability of
    each (n,), and a form that means it (n,)."""

    entities: Array
    priors: Array
    forms: Array


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

    def meanings_of_form(self, form: int) -> Meanings:
        return self._meanings(form, form + 1)

    def meanings_of_key(self, key: int) -> Meanings:
        """The entities of all forms of a key. Their weights are added."""
        start, end = self.store.arrays["key_forms"][key : key + 2].tolist()
        return self._meanings(start, end)

    def _meanings(self, first: int, last: int) -> Meanings:
        arrays = self.store.arrays
        bounds = arrays["form_pairs"][first : last + 1].astype(np.int64)
        entities = arrays["pair_entities"][bounds[0] : bounds[-1]]
        weights = arrays["pair_weights"][bounds[0] : bounds[-1]]
        weights = np.where(np.isnan(weights), self.counts[entities], weights)
        forms = np.repeat(np.arange(first, last), np.diff(bounds))
        rows, firsts, inverse = np.unique(entities, return_index=True, return_inverse=True)
        sums = np.bincount(inverse, weights, len(rows))
        total = float(last - first) if self._priors else float(sums.sum())
        priors = sums / total if total > 0 else np.full(len(rows), 1 / max(len(rows), 1))
        return Meanings(rows, priors, forms[firsts])
