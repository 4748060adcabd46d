"""Gold relations as targets of candidate pairs."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from spacy.tokens import Span
from spacy.training import Example

from ..annotations.annotated import joined_starts
from ..metrics.relations import common_places
from .relation_classes import ClassName, RelationClasses

Array = np.ndarray

LOST = ("no entity", "no candidate", "second label", "too long")
"""The reasons for which a gold relation is not learned."""
UNKNOWN_LABEL = "unknown label"


class RelationTargets:
    """The gold classes of candidate pairs: table, (n_pairs, n_classes), filled by :meth:`add`.

    pairs: (n_pairs, 2) entities. directions: (n_pairs, 2) see :meth:`RelationClasses.allowed`.
    fits: (n_pairs,) whether each pair can be scored; by default all can.
    """

    def __init__(
        self, classes: RelationClasses, pairs: Array, directions: Array, fits: Array | None = None
    ) -> None:
        names = classes.names
        self.table = np.zeros((len(pairs), len(names)), dtype=np.float32)
        self._classes = classes
        self._allowed = classes.allowed(directions)
        self._fits = np.ones(len(pairs), dtype=bool) if fits is None else fits
        self._rows = {(a, b): row for row, (a, b) in enumerate(pairs.tolist())}
        self._columns: dict[ClassName, int] = {name: i for i, name in enumerate(names)}

    def add(self, head: int | None, tail: int | None, label: str) -> str | None:
        """Mark the candidates of a gold relation. Returns None, or why it is not learned: a reason
        of ``LOST`` or ``UNKNOWN_LABEL``. head, tail: entities, or None for a span that is not one.
        """
        if head is None or tail is None:
            return "no entity"
        positive = self._positive(head, tail, label)
        if positive is None:
            return UNKNOWN_LABEL
        if not positive:
            return "no candidate"
        if not self._fits[[row for row, _ in positive]].any():
            return "too long"
        one_class = self._classes.nil is not None
        for row, column in positive:
            if one_class and self.table[row].any() > self.table[row, column]:
                return "second label"
            self.table[row, column] = 1.0
        return None

    def _positive(self, head: int, tail: int, label: str) -> list[tuple[int, int]] | None:
        """(row, column) of the candidates of a gold relation; None for an unknown label."""
        pairs = self._classes.scored_as(head, tail, label)
        scored = [(self._rows[a, b], name) for a, b, name in pairs if (a, b) in self._rows]
        if any(name not in self._columns for _, name in scored):
            return None
        places = [(row, self._columns[name]) for row, name in scored]
        return [place for place in places if self._allowed[place]]

    def mark_unrelated(self) -> None:
        """Give the class "no relation", if there is one, to all pairs without a gold relation."""
        if self._classes.nil is not None:
            self.table[~self.table.any(1), -1] = 1.0


def across_texts(
    examples: Sequence[Example], by_doc: Sequence[Sequence[Sequence[Span]]], pairs: Array
) -> Array:
    """(n_pairs,) whether the entities of each pair are in different texts of a joined document.

    by_doc: the entities of each document, each a list of mentions. pairs: (n_pairs, 2) entities,
    counted over the batch. Entities with mentions in several texts are in each of these.
    """
    texts: list[set[int]] = []  # of each entity
    for eg, entities in zip(examples, by_doc):
        place_of, gold_place_of = (common_places(eg, doc) for doc in (eg.predicted, eg.reference))
        starts = [gold_place_of((start, start))[0] for start in joined_starts(eg.reference)]
        for mentions in entities:
            places = [place_of((span.start_char, span.end_char))[0] for span in mentions]
            texts.append({bisect_right(starts, place) for place in places})
    apart = [texts[head].isdisjoint(texts[tail]) for head, tail in pairs.tolist()]
    return np.asarray(apart, dtype=bool)
