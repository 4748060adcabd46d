"""The classes of a classifier of entity pairs, and the direction of each class."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
ClassName = str | tuple[str, str]
"""A label, (label, "reversed"), or the class "no relation"."""


@dataclass(frozen=True)
class RelationClasses:
    """The classes, and the relation between two entities (first, second) that each stands for.

    symmetric: labels without a direction. pair_order: see ``make_luke_relation``. With ``text``, a
    label with a direction has two classes: ``label`` if the first entity is the head, ``(label,
    "reversed")`` if the second is. nil: the last class, "no relation"; None if there is none.

    The labels born_in and borders (symmetric), ``text``: born_in, borders, (born_in, "reversed"),
    nil.
    """

    labels: Sequence[str]
    symmetric: Collection[str]
    pair_order: str
    nil: str | None

    @property
    def names(self) -> list[ClassName]:
        """All classes, in the order of the classifier's rows."""
        names: list[ClassName] = list(self.labels)
        if self.pair_order == "text":
            names += [(label, "reversed") for label in self.labels if label not in self.symmetric]
        return names if self.nil is None else [*names, self.nil]

    @property
    def of_label(self) -> Array:
        """(n_classes without nil,) the number of each class's label."""
        names = self.names if self.nil is None else self.names[:-1]
        numbers = {label: i for i, label in enumerate(self.labels)}
        return np.asarray([numbers[x if isinstance(x, str) else x[0]] for x in names], dtype=int)

    def allowed(self, directions: Array) -> Array:
        """(n_pairs, n_classes) whether each class has a direction that is a candidate.

        directions: (n_pairs, 2) whether (first, second) is a candidate, and (second, first).
        """
        forward, backward = directions.T
        columns = []
        for name in self.names:
            if isinstance(name, tuple):
                columns.append(backward)
            elif name == self.nil:
                columns.append(np.ones(len(directions), dtype=bool))
            else:
                columns.append(forward | backward if name in self.symmetric else forward)
        return np.stack(columns, axis=1) if columns else np.zeros((len(directions), 0), dtype=bool)

    def scored_as(self, head: int, tail: int, label: str) -> list[tuple[int, int, ClassName]]:
        """(first, second, class) of the scored pairs that stand for a relation. head, tail: numbers
        of entities in text order."""
        symmetric = label in self.symmetric
        if self.pair_order == "both":
            other: list[tuple[int, int, ClassName]] = [(tail, head, label)] if symmetric else []
            return [(head, tail, label), *other]
        if head < tail or symmetric:
            return [(min(head, tail), max(head, tail), label)]
        return [(tail, head, (label, "reversed"))]

    def relation_of(self, first: int, second: int, name: ClassName) -> tuple[int, int, str]:
        """(head, tail, label) of the relation that a class of a pair stands for."""
        if isinstance(name, tuple):
            return second, first, name[0]
        if name in self.symmetric and first > second:
            return second, first, name
        return first, second, name
