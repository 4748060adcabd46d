"""Scores of ``Doc._.relations``."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from ..annotations.annotated import annotated_labels
from ..annotations.mentions import Place, first_mentions
from ..annotations.relations import relation_offsets
from ..errors import InputError

FIGURES = ("p", "r", "f")


class Side(NamedTuple):
    """Head or tail: its characters, and the label of the entity there ("" for none)."""

    place: Place
    entity: str


class Pair(NamedTuple):
    """A relation as it is compared; sides are in one order for all tokenisations."""

    head: Side
    tail: Side
    label: str

    @property
    def places(self) -> tuple[Place, Place, str]:
        return self.head.place, self.tail.place, self.label


@registry.scorers("spacy-luke.luke_relation_scorer.v1")
def make_luke_relation_scorer() -> Callable[..., dict[str, Any]]:
    """Precision, recall and F of relations: :func:`relation_score`."""
    return relation_score


@registry.scorers("spacy-luke.semeval_scorer.v1")
def make_semeval_scorer() -> Callable[..., dict[str, Any]]:
    """The figures of :func:`relation_score` and, as ``rels_semeval_f``, that of
    :func:`semeval_score`."""
    return relation_and_semeval_score


def relation_score(
    examples: Iterable[Example],
    *,
    labels: Iterable[str] = (),
    symmetric: Collection[str] = (),
    prefix: str = "rels",
    spans_key: str | None = None,
    merge_entities: bool = False,
    **kwargs: Any,
) -> dict[str, Any]:
    """Precision, recall and F of predicted relations, from 0 to 1.

    A relation is right if the characters of its head and tail and its label are (the
    "boundary" evaluation). All gold relations count, also those whose spans the pipeline did not
    find, and so do all predicted ones: a document without gold relations is one that has none,
    unless it says that its relations, or those of some labels, are not annotated.
    Relations given twice count once.

    labels: the labels of the component. They restrict nothing; one that occurs neither in gold
        nor in predictions is listed in ``rels_per_type`` with None.
    symmetric: labels without a direction; head and tail may be exchanged.
    prefix: what the names of the scores begin with.
    spans_key: the group of ``Doc.spans`` that gives a side its entity label; without it, or where
        the group has no span there, ``Doc.ents``, then any group.
    merge_entities: mentions with the same ``kb_id_`` are one entity, whichever of them a relation
        is written on.

    Returns ``rels_p``, ``rels_r``, ``rels_f`` (micro: over all relations), ``rels_macro_p``,
    ``rels_macro_r``, ``rels_macro_f`` (means over the labels that occur in gold),
    ``rels_strict_p``, ``rels_strict_r``, ``rels_strict_f`` (micro; the entity labels of head and
    tail must be right as well) and ``rels_per_type``, label -> p, r, f. All are None where the
    data has no gold relation at all.
    """
    compared = [_pairs(example, symmetric, spans_key, merge_entities) for example in examples]
    per_type = _count(compared)
    micro, strict = sum(per_type.values(), PRFScore()), PRFScore()
    for both in compared:
        strict.score_set(*both)
    in_gold = [label for label, score in sorted(per_type.items()) if score.tp + score.fn]
    of_gold = [per_type[label].to_dict() for label in in_gold]
    parts = {"": micro.to_dict(), "macro_": mean(of_gold), "strict_": strict.to_dict()}
    found: dict[str, Any] = {
        f"{prefix}_{part}{figure}": values[figure] if in_gold else None
        for part, values in parts.items()
        for figure in FIGURES
    }
    found[f"{prefix}_per_type"] = by_type(per_type, labels) if in_gold else None
    return found


def count_relations(
    examples: Iterable[Example],
    *,
    symmetric: Collection[str] = (),
    spans_key: str | None = None,
    merge_entities: bool = False,
) -> dict[str, PRFScore]:
    """label -> how many relations are right, wrong and missed; see :func:`relation_score`."""
    return _count(_pairs(example, symmetric, spans_key, merge_entities) for example in examples)


def _count(compared: Iterable[tuple[set[Pair], set[Pair]]]) -> dict[str, PRFScore]:
    """Of each label, by what is predicted and what is gold in each document."""
    found: dict[str, PRFScore] = {}
    for predicted, gold in compared:
        # Sides of the same characters have the same label: no two pairs share their places.
        ours, theirs = ({pair.places for pair in pairs} for pairs in (predicted, gold))
        for label in {label for *_, label in ours | theirs}:
            score = found.setdefault(label, PRFScore())
            score.score_set(*({key for key in keys if key[-1] == label} for keys in (ours, theirs)))
    return found


def semeval_score(
    examples: Iterable[Example], *, other: str = "Other", prefix: str = "rels", **kwargs: Any
) -> dict[str, float | None]:
    """The official score of SemEval-2010 Task 8, as a fraction: ``rels_semeval_f``.

    That is "(9+1)-way evaluation with directionality taken into account", macro-averaged over
    all relations but Other, as the task's scorer (version 1.2) computes it. For a relation,
    precision is what is right, direction included, over all predictions of it in either
    direction, and recall is the same over all gold of it in either direction; F is 0 where both
    are. The mean of F goes over the relations that occur in gold, with Other left out: predicting
    a relation that gold never has is like predicting Other. So is predicting nothing.

    One pair of a document is judged. The direction is that of head and tail; a label that ends in
    "(e2,e1)" turns it round, and "(e1,e2)" is taken off. A prediction whose spans are not those
    of the gold pair counts as one of the wrong direction. Of several predicted relations the one
    with the best score counts, the first in the text among equals.

    other: the label of pairs in no relation, if any is written. Documents without a gold relation
        are such pairs, too. None is returned where all are.

    Raises InputError for a document with several gold relations.
    """
    right: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    gold: Counter[str] = Counter()
    for example in examples:
        ours = _best(example.predicted, common_places(example, example.predicted), other)
        theirs = _only(example, other)
        if ours is not None:
            predicted[ours[-1]] += 1
        if theirs is not None:
            gold[theirs[-1]] += 1
            right[theirs[-1]] += ours == theirs
    scores = [
        PRFScore(tp=right[x], fp=predicted[x] - right[x], fn=gold[x] - right[x]) for x in gold
    ]
    mean_f = sum(score.fscore for score in scores) / len(scores) if scores else None
    return {f"{prefix}_semeval_f": mean_f}


def relation_and_semeval_score(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Both, so that a component with this scorer keeps the figures its training chooses by."""
    examples = list(examples)
    return {**relation_score(examples, **kwargs), **semeval_score(examples, **kwargs)}


def mean(rows: Collection[Mapping[str, float]]) -> dict[str, float]:
    """p, r and f, each averaged over rows; 0 without rows."""
    return {figure: sum(row[figure] for row in rows) / max(len(rows), 1) for figure in FIGURES}


def by_type(
    scores: Mapping[str, PRFScore], labels: Iterable[str]
) -> dict[str, dict[str, float | None]]:
    """Label -> p, r, f. labels: those to list, with None, even if they have no score."""
    found: dict[str, dict[str, float | None]] = {}
    for label in sorted({*scores, *labels}):
        found[label] = dict(scores[label].to_dict()) if label in scores else dict.fromkeys(FIGURES)
    return found


def common_places(example: Example, doc: Doc) -> Callable[[Place], Place]:
    """Characters of a document -> what both sides of an example can be compared by.

    That is the characters themselves, unless the two texts are not the same: then those that are
    not white space are counted, which is all that spaCy lets the texts of an example differ in.
    """
    if example.predicted.text == example.reference.text:
        return lambda place: place
    solid = [i for i, character in enumerate(doc.text) if not character.isspace()]
    return lambda place: (bisect_left(solid, place[0]), bisect_left(solid, place[1]))


def _pairs(
    example: Example, symmetric: Collection[str], spans_key: str | None, merged: bool
) -> tuple[set[Pair], set[Pair]]:
    """Predicted and gold relations of the labels that were judged; those of symmetric labels in the
    order of the text, those of merged entities on one mention."""
    judged = annotated_labels(example.reference, "relations")
    docs = (example.predicted, example.reference)
    alike = [common_places(example, doc) for doc in docs]
    firsts: list[dict[Place, Place]] = [{}, {}]
    if merged:
        firsts = [
            {
                common(place): common(first)
                for place, first in first_mentions(doc, spans_key).items()
            }
            for doc, common in zip(docs, alike)
        ]
    found = []
    for doc, common in zip(docs, alike):
        entities = _entity_labels(doc, spans_key)
        pairs = set()
        for item in relation_offsets(doc):
            if judged is not None and item.label not in judged:
                continue
            head, tail = (
                Side(one_mention(common(place), *firsts), entities.get(place, ""))
                for place in (item.head, item.tail)
            )
            if item.label in symmetric and tail < head:
                head, tail = tail, head
            pairs.add(Pair(head, tail, item.label))
        found.append(pairs)
    predicted, gold = found
    return predicted, gold


def one_mention(place: Place, ours: Mapping[Place, Place], gold: Mapping[Place, Place]) -> Place:
    """The mention that stands for an entity on both sides: the first that is annotated; of an
    entity that is only predicted its own first. ours, gold: mention -> first mention."""
    own = ours.get(place, place)
    return gold.get(place, gold.get(own, own))


def _entity_labels(doc: Doc, spans_key: str | None) -> dict[Place, str]:
    """Characters -> label, the group spans_key before entities before other groups."""
    found: dict[Place, str] = {}
    first = doc.spans[spans_key] if spans_key is not None and spans_key in doc.spans else ()
    for spans in (first, doc.ents, *doc.spans.values()):
        for span in spans:
            found.setdefault((span.start_char, span.end_char), span.label_)
    return found


Key = tuple[Hashable, Hashable, str]


def _directed(
    doc: Doc, common: Callable[[Place], Place], other: str
) -> list[tuple[float, Key | None]]:
    """Score and (head, tail, relation) of each relation, or None for ``other``."""
    found: list[tuple[float, Key | None]] = []
    for item in relation_offsets(doc):
        head, tail = common(item.head), common(item.tail)
        label = item.label.removesuffix("(e1,e2)")
        if label.endswith("(e2,e1)"):
            label, head, tail = label.removesuffix("(e2,e1)"), tail, head
        found.append((item.score, None if label == other else (head, tail, label)))
    return found


def _best(doc: Doc, common: Callable[[Place], Place], other: str) -> Key | None:
    found = _directed(doc, common, other)
    return max(found, key=lambda row: row[0])[1] if found else None


def _only(example: Example, other: str) -> Key | None:
    doc = example.reference
    found = {key for _, key in _directed(doc, common_places(example, doc), other)}
    if len(found) > 1:
        raise InputError(
            f"The document {doc.text[:60]!r} has {len(found)} gold relations; "
            "spacy-luke.semeval_scorer.v1 judges one pair of a document."
        )
    return next(iter(found), None)
