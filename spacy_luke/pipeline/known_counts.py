"""What a list of names is worth on annotated data: counted, reported, and a prior of the model."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..layers.known_spans import RELATIONS
from ..layers.span_network import SpanQuery
from ..report import LOGGER, log_lost
from .class_loss import Targets

Array = np.ndarray

_WORST = 8
_WRONG_AT_LEAST = 3
_OWN_ANNOTATIONS = 0.98
"""A list that has a larger share of the entities of the data was probably made from them."""


@dataclass
class KnownCounts:
    """How often known spans are entities of annotated data.

    known_labels: of the list; classes: of the component, the last of them "no entity".
    found: (2, n_known_labels, n_classes) known spans by the class of the equal candidate: those
        that are not inside a longer one, and the others.
    n_words: of the data. of_class: candidates that are entities, by class. n_gold: all entities;
        n_named: those that are known spans.
    wrong, right: texts of known spans that are not inside a longer one, and no entity, or one.
    ids: of known spans.
    """

    known_labels: Sequence[str]
    classes: Sequence[str]
    n_words: int = 0
    n_gold: int = 0
    n_named: int = 0
    found: Array = field(init=False)
    of_class: Array = field(init=False)
    wrong: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.found = np.zeros((2, len(self.known_labels), len(self.classes)))
        self.of_class = np.zeros(len(self.classes))

    def add(self, query: SpanQuery, targets: Targets, n_gold: int) -> None:
        """Count a batch. n_gold: its entities, candidates or not. Candidates that are not annotated
        are left out."""
        self.n_gold += n_gold
        classes, annotated = targets
        nil = len(self.classes) - 1
        self.n_words += sum(len(doc) for doc in query.docs)
        gold = annotated & (classes != nil)
        self.of_class += np.bincount(classes[gold], minlength=len(self.classes))
        if query.known is None:
            return
        self.ids.update(query.known.titles)
        n_labels = len(self.known_labels)
        owner = np.repeat(np.arange(len(classes)), query.known.counts)
        used = (query.known.features < 2 * n_labels) & annotated[owner]
        rows, features = owner[used], query.known.features[used]
        np.add.at(self.found, (*np.divmod(features, max(n_labels, 1)), classes[rows]), 1)
        self.n_named += int((gold & query.known.asked).sum())
        for i in np.flatnonzero(query.known.is_known & annotated):
            doc, (start, end) = query.docs[query.of_doc[i]], query.table[i]
            (self.wrong if classes[i] == nil else self.right)[doc[start:end].text] += 1

    @property
    def n_known(self) -> int:
        """Known spans that are not inside a longer one, each once whatever its labels."""
        return self.wrong.total() + self.right.total()

    def prior(self) -> Array:
        """(n_features, n_classes) logits of a known span by its label, to be added to those of a
        model that does not know the list: the log of how much more likely than without it each
        class is, less that of "no entity". Zero for other candidates that overlap a known span, and
        for labels that do not occur.

        The rate without the list is that of the candidates that the model scores: one per word.
        """
        nil = len(self.classes) - 1
        rate = self.of_class + 0.5
        rate[nil] = max(self.n_words - self.of_class.sum(), 1)
        rate /= rate.sum()
        total = self.found.sum(-1, keepdims=True)
        ratio = np.log((self.found + rate) / (total + 1)) - np.log(rate)
        logits = np.zeros((len(RELATIONS), len(self.known_labels), len(self.classes)))
        logits[:2] = np.where(total > 0, ratio - ratio[..., [nil]], 0)
        return logits.reshape(-1, len(self.classes))

    def report(self, name: str, key: str, has_row: Callable[[str], bool]) -> None:
        """Log how often known spans are entities, by label, with the worst names: as a warning if
        some are none. has_row: whether the encoder has a row of an id."""
        if not self.n_known:
            LOGGER.warning(
                "%s: no document of the training data has a span in the group %r, so nothing can "
                "be learned from it. The component that writes it must be before %s, in [training] "
                "annotating_components, and have its names (or, if it is a model, be trained and "
                "frozen) before this one is initialised.",
                *(name, key, name),
            )
            return
        log_lost(self.wrong.total(), "%s: %s.", name, "; ".join(self._lines(key, has_row)))
        if self.n_named >= _OWN_ANNOTATIONS * max(self.n_gold, 1):
            LOGGER.warning(
                "%s: %d of the %d entities of the training data are in the group %r. If its list "
                "was made from these annotations, it knows much less of other text: make it from "
                "another source.",
                *(name, self.n_named, self.n_gold, key),
            )

    def _lines(self, key: str, has_row: Callable[[str], bool]) -> Iterator[str]:
        total = self.right.total()
        yield (
            f"{total} of {self.n_known} spans of the group {key!r} are entities of the training "
            f"data, {self.n_named} of its {self.n_gold} entities are in the group"
        )
        if self.ids:
            n_rows = sum(map(has_row, self.ids))
            yield f"the encoder has rows of {n_rows} of their {len(self.ids)} ids"
        for label, counts in zip(self.known_labels, self.found[0]):
            if counts.sum():
                found = [
                    f"{int(counts[i])} {self.classes[i]}"
                    for i in np.argsort(-counts, kind="stable")
                    if counts[i]
                ]
                yield f"{label or 'without label'}: {', '.join(found)}"
        worst = [
            (text, n)
            for text, n in self.wrong.most_common(_WORST)
            if n >= _WRONG_AT_LEAST and n > self.right[text]
        ]
        if worst:
            yield "mostly no entities: " + ", ".join(f"{text} ({n})" for text, n in worst)
