"""What a page counts: entities, relations and types that are right, wrong and missed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spacy.language import Language
from spacy.scorer import PRFScore
from spacy.training import Example

from .page_text import Entity

RELATIONS, TYPES = "doc._.relations", "span._.types"
# What their scorers have to know of a component.
_SETTINGS = {
    RELATIONS: ("symmetric", "spans_key", "merge_entities"),
    TYPES: ("threshold", "multi_label", "ancestors", "spans_key"),
}
Written = dict[str, dict[str, Any]]
"""Which of these a pipeline writes, and settings of the (last) component that does."""


@dataclass
class Counts:
    """What agrees, is only predicted (spurious) or only annotated (missed)."""

    agreed: int = 0
    spurious: int = 0
    missed: int = 0

    def add(self, other: "Counts") -> None:
        self.agreed += other.agreed
        self.spurious += other.spurious
        self.missed += other.missed

    @property
    def gold(self) -> int:
        return self.agreed + self.missed

    @property
    def predicted(self) -> int:
        return self.agreed + self.spurious

    @property
    def p(self) -> float | None:
        return self.agreed / self.predicted if self.predicted else None

    @property
    def r(self) -> float | None:
        return self.agreed / self.gold if self.gold else None

    @property
    def f(self) -> float | None:
        both = self.predicted + self.gold
        return 2 * self.agreed / both if both else None


@dataclass
class Labels:
    """The counts of each label. what: entities, relations or types."""

    what: str
    labels: dict[str, Counts] = field(default_factory=dict)

    def add(self, label: str, counts: Counts) -> None:
        self.labels.setdefault(label, Counts()).add(counts)

    @property
    def total(self) -> Counts:
        total = Counts()
        for counts in self.labels.values():
            total.add(counts)
        return total

    def in_order(self) -> list[tuple[str, Counts]]:
        """The most frequent in the annotation first."""
        return sorted(self.labels.items(), key=lambda item: (-item[1].gold, item[0]))


def count(predicted: Iterable[Entity], gold: Iterable[Entity]) -> Counts:
    """An entity agrees if both ends and the label do."""
    ours, theirs = Counter(e.key for e in predicted), Counter(e.key for e in gold)
    agreed = (ours & theirs).total()
    return Counts(agreed, ours.total() - agreed, theirs.total() - agreed)


def count_labels(tally: Labels, predicted: Sequence[Entity], gold: Sequence[Entity]) -> None:
    """Add the entities of a document."""
    for label in sorted({entity.label for entity in (*predicted, *gold)}):
        parts = ([e for e in entities if e.label == label] for entities in (predicted, gold))
        tally.add(label, count(*parts))


def count_rest(written: Written, examples: Sequence[Example]) -> list[Labels]:
    """Relations and types that the pipeline writes and the documents have annotated, counted as by
    the scorers of the components."""
    from ..metrics.entity_typing import count_types
    from ..metrics.relations import count_relations

    counters: dict[str, tuple[str, Callable[..., Mapping[str, PRFScore]]]] = {
        RELATIONS: ("relations", count_relations),
        TYPES: ("types", count_types),
    }
    found = []
    for attribute, settings in written.items():
        what, counter = counters[attribute]
        tally = Labels(what)
        for label, score in counter(examples, **settings).items():
            tally.add(label, Counts(score.tp, score.fp, score.fn))
        if tally.total.gold:
            found.append(tally)
    return found


def what_is_written(nlp: Language) -> Written:
    found: Written = {}
    for attribute, known in _SETTINGS.items():
        for name, pipe in nlp.pipeline:
            if attribute in nlp.get_pipe_meta(name).assigns:
                cfg: Any = getattr(pipe, "cfg", None) or {}
                found[attribute] = {x: cfg[x] for x in known if cfg.get(x) is not None}
    return found
