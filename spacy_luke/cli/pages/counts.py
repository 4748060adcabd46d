"""Counts of entities, relations, types and links that agree, are spurious or missed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spacy.language import Language
from spacy.scorer import PRFScore
from spacy.training import Example

from ...metrics import entity_typing, relations
from ...metrics import links as link_scores
from .links import LINKS
from .questions import ANSWERS
from .text import Entity

RELATIONS, TYPES = "doc._.relations", "span._.types"
_SETTINGS = {
    RELATIONS: relations.SETTINGS,
    LINKS: link_scores.SETTINGS,
    TYPES: entity_typing.SETTINGS,
    ANSWERS: ("no_answer",),
}
"""Settings of the component, whoever wrote it, that its metric or the page needs."""
Written = dict[str, dict[str, Any]]
"""The attributes that a pipeline writes -> settings of the last component that writes them."""


@dataclass
class Counts:
    """How many agree, are only predicted (spurious) or only annotated (missed)."""

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
class LabelCounts:
    """Counts per label. what: entities, relations, types or links."""

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
        """Labels by descending frequency in the annotation."""
        return sorted(self.labels.items(), key=lambda item: (-item[1].gold, item[0]))


def count(predicted: Iterable[Entity], gold: Iterable[Entity]) -> Counts:
    """An entity agrees if both ends and the label agree. Those that are not compared do not
    count."""
    predicted_keys = Counter(e.key for e in predicted if e.compared)
    gold_keys = Counter(e.key for e in gold)
    agreed = (predicted_keys & gold_keys).total()
    return Counts(agreed, predicted_keys.total() - agreed, gold_keys.total() - agreed)


def count_labels(tally: LabelCounts, predicted: Sequence[Entity], gold: Sequence[Entity]) -> None:
    """Add the entities of a document."""
    for label in sorted({entity.label for entity in (*predicted, *gold)}):
        parts = ([e for e in entities if e.label == label] for entities in (predicted, gold))
        tally.add(label, count(*parts))


def count_written(written: Written, examples: Sequence[Example]) -> list[LabelCounts]:
    """Counts of relations, types and links that are predicted and annotated, as by the components'
    metrics."""
    counters: dict[str, tuple[str, Callable[..., Mapping[str, PRFScore]]]] = {
        RELATIONS: ("relations", relations.count_relations),
        LINKS: ("links", link_scores.count_links),
        TYPES: ("types", entity_typing.count_types),
    }
    tallies = []
    for attribute, (what, counter) in counters.items():
        if attribute not in written:
            continue
        tally = LabelCounts(what)
        for label, score in counter(examples, **written[attribute]).items():
            tally.add(label, Counts(score.tp, score.fp, score.fn))
        if tally.total.gold:
            tallies.append(tally)
    return tallies


def what_is_written(nlp: Language) -> Written:
    written: Written = {}
    for attribute, names in _SETTINGS.items():
        for name, pipe in nlp.pipeline:
            if attribute in nlp.get_pipe_meta(name).assigns:
                cfg: Any = getattr(pipe, "cfg", None) or {}
                written[attribute] = {x: cfg[x] for x in names if cfg.get(x) is not None}
    return written
