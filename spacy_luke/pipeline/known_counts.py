"""What a list of names is worth on annotated data: counted, reported, and a prior of the model."""

from collections import Counter
from collections.abc import Iterator, Sequence
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
"""A list that is right, and complete, in a larger share of the data was made from its annotations:
lists made from something else are not."""


@dataclass
class KnownCounts:
    """How often known spans are entities of annotated data.

    known_labels: of the list; classes: of the component, the last of them "no entity".
    found: (2, n_known_labels, n_classes) known spans by the class of the equal candidate: those
        that are not inside a longer one, and the others.
    n_words, of_class: words, and gold entities by class. n_named: entities that are known spans.
    wrong, right: texts of the former kind that are no entity, or one.
    """

    known_labels: Sequence[str]
    classes: Sequence[str]
    n_words: int = 0
    n_named: int = 0
    found: Array = field(init=False)
    of_class: Array = field(init=False)
    wrong: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.found = np.zeros((2, len(self.known_labels), len(self.classes)))
        self.of_class = np.zeros(len(self.classes))

    def add(self, query: SpanQuery, targets: Targets) -> None:
        """Count a batch. Candidates that are not annotated are left out."""
        classes, annotated = targets
        nil = len(self.classes) - 1
        self.n_words += sum(len(doc) for doc in query.docs)
        gold = annotated & (classes != nil)
        self.of_class += np.bincount(classes[gold], minlength=len(self.classes))
        if query.known is None:
            return
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

    def report(self, name: str, key: str) -> None:
        """Log how often known spans are entities, by label, with the worst names: as a warning if
        some are none."""
        if not self.n_known:
            LOGGER.warning(
                "%s: no document of the training data has a span in the group %r, so nothing can "
                "be learned from it. The component that writes it must be before %s, in [training] "
                "annotating_components, and not in frozen_components if it reads its list at "
                "initialisation.",
                *(name, key, name),
            )
            return
        log_lost(self.wrong.total(), "%s: %s.", name, "; ".join(self._lines(key)))
        n_gold = self.of_class.sum()
        right, n_known = self.right.total(), self.n_known
        if min(right, self.n_named) >= _OWN_ANNOTATIONS * max(n_known, n_gold):
            LOGGER.warning(
                "%s: %d of %d spans of the group %r are entities of the training data, and %d of "
                "its %d entities are in the group. A list made from these annotations is always "
                "right here, but not on other text: make it from another source.",
                *(name, right, n_known, key, self.n_named, n_gold),
            )

    def _lines(self, key: str) -> Iterator[str]:
        total = self.right.total()
        yield (
            f"{total} of {self.n_known} spans of the group {key!r} are entities of the training "
            f"data, {self.n_named} of its {int(self.of_class.sum())} entities are in the group"
        )
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
