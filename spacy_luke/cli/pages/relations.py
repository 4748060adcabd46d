"""Relations on the page: those that are predicted, compared with the annotation."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from spacy.tokens import Doc

from ...annotations.annotated import annotated_labels
from ...annotations.mentions import first_mentions
from ...annotations.relations import Offsets, gold_offsets, relation_offsets
from ...metrics.relations import one_mention
from .text import Place

MARKS = {"spurious": "\N{BALLOT X} ", "missed": "missed "}
"""Kinds of errors, and how the labels of relations are marked."""


class ShownRelation(NamedTuple):
    """A predicted or gold relation. kind: "plain" without annotation, else "agreed", "spurious" or
    "missed". score: None if missed or not shown."""

    kind: str
    head: Place
    tail: Place
    label: str
    score: float | None

    @property
    def text(self) -> str:
        score = "" if self.score is None else f" {self.score:.2f}"
        return MARKS.get(self.kind, "") + self.label + score


def links(
    doc: Doc,
    reference: Doc,
    compare: bool,
    *,
    symmetric: Collection[str] = (),
    spans_key: str | None = None,
    merge_entities: bool = False,
) -> list[ShownRelation]:
    """Predicted relations, then missed ones, without repetitions. The settings are those of the
    component that predicted them."""
    firsts = [first_mentions(x, spans_key) if merge_entities else {} for x in (doc, reference)]

    def keyed(items: Sequence[Offsets]) -> dict[tuple[Place, Place, str], float]:
        scores = {}
        for item in sorted(items, key=lambda x: x.score):
            head, tail = (one_mention(place, *firsts) for place in (item.head, item.tail))
            if item.label in symmetric and tail < head:
                head, tail = tail, head
            scores[head, tail, item.label] = item.score
        return scores

    labels = annotated_labels(reference, "relations") if compare else frozenset()
    predicted = keyed(relation_offsets(doc))
    gold = keyed(gold_offsets(reference, merge_entities, spans_key))
    shown = []
    for key, score in sorted(predicted.items()):
        compared = labels is None or key[-1] in labels
        kind = ("agreed" if key in gold else "spurious") if compared else "plain"
        shown.append(ShownRelation(kind, *key, score))
    missed = sorted(
        key for key in gold.keys() - predicted.keys() if labels is None or key[-1] in labels
    )
    return shown + [ShownRelation("missed", *key, None) for key in missed]
