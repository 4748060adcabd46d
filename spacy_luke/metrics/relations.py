"""Scores of ``Doc._.relations``."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from ..annotations.annotated import annotated_labels
from ..annotations.group_spans import row_of, rows_of
from ..annotations.mentions import Place, first_mentions
from ..annotations.relations import NO_RELATION, Offsets, gold_offsets, relation_offsets
from ..errors import InputError
from .answers import Answer, Answers, calibration_scores

FIGURES = ("p", "r", "f")
SETTINGS = ("symmetric", "spans_key", "merge_entities")
"""Of a component, that decide what counts."""


class Side(NamedTuple):
    """Head or tail: its characters, and its entity label, "" if there is none."""

    place: Place
    entity: str


class Pair(NamedTuple):
    """A relation in the form that is compared."""

    head: Side
    tail: Side
    label: str

    @property
    def places(self) -> tuple[Place, Place, str]:
        return self.head.place, self.tail.place, self.label


@registry.scorers("spacy-luke.luke_relation_scorer.v1")
def make_luke_relation_scorer(prefix: str = "rels") -> Callable[..., dict[str, Any]]:
    """Precision, recall and F of relations: :func:`relation_score`.

    prefix: of the names of the scores, before "_"; another one if a pipeline has several such
        components.
    """
    return partial(relation_score, prefix=prefix)


@registry.scorers("spacy-luke.semeval_scorer.v1")
def make_semeval_scorer(prefix: str = "rels") -> Callable[..., dict[str, Any]]:
    """The scores of :func:`relation_score` and ``rels_semeval_f``, see :func:`semeval_score`.

    prefix: as in ``spacy-luke.luke_relation_scorer.v1``.
    """
    return partial(relation_and_semeval_score, prefix=prefix)


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

    A relation is correct if its label and the characters of its head and tail are correct (the
    "boundary" evaluation). All gold relations count, including those whose spans the pipeline did
    not predict. All predicted relations count: a document without gold relations has none, unless
    its relations, or some labels of them, are set as not annotated. Repeated relations count once,
    and pairs that are labelled :data:`.NO_RELATION` have none.

    labels: the labels of the component. A label without gold and predicted relations is listed in
        ``rels_per_type`` with None. Other labels count, too.
    symmetric: labels without a direction; head and tail may be exchanged.
    prefix: of the names of the scores.
    spans_key: the group of ``Doc.spans`` with the entity labels of heads and tails. Without it, or
        if the group lacks the span, ``Doc.ents`` is used, then any group.
    merge_entities: mentions with the same ``kb_id_`` are one entity. A relation may be predicted on
        any of its mentions.

    Returns ``rels_p``, ``rels_r``, ``rels_f`` (micro: over all relations), ``rels_macro_p``,
    ``rels_macro_r``, ``rels_macro_f`` (means over the labels that occur in gold),
    ``rels_strict_p``, ``rels_strict_r``, ``rels_strict_f`` (micro; the entity labels of head and
    tail must be correct, too) and ``rels_per_type``, label -> p, r, f. All are None if there are no
    gold relations. And :func:`.calibration_scores` of the predicted relations.
    """
    scored = [_pairs(example, symmetric, spans_key, merge_entities) for example in examples]
    compared = [(set(predicted), set(gold)) for predicted, gold in scored]
    per_type = _count(compared)
    micro, strict = sum(per_type.values(), PRFScore()), PRFScore()
    for predicted, gold in compared:
        strict.score_set(predicted, gold)
    in_gold = [label for label, score in sorted(per_type.items()) if score.tp + score.fn]
    of_gold = [per_type[label].to_dict() for label in in_gold]
    parts = {"": micro.to_dict(), "macro_": mean(of_gold), "strict_": strict.to_dict()}
    scores: dict[str, Any] = {
        f"{prefix}_{part}{figure}": values[figure] if in_gold else None
        for part, values in parts.items()
        for figure in FIGURES
    }
    scores[f"{prefix}_per_type"] = by_type(per_type, labels) if in_gold else None
    return {**scores, **calibration_scores(_answers(scored), prefix)}


def relation_answers(
    examples: Iterable[Example],
    *,
    symmetric: Collection[str] = (),
    spans_key: str | None = None,
    merge_entities: bool = False,
) -> Answers:
    """Predicted relations with their scores; see :func:`relation_score`."""
    return _answers(_pairs(x, symmetric, spans_key, merge_entities) for x in examples)


def _answers(compared: Iterable[tuple[Mapping[Pair, float], Mapping[Pair, float]]]) -> Answers:
    answers = Answers()
    for predicted, gold in compared:
        right = {pair.places for pair in gold}
        answers.n_gold.update(label for *_, label in right)
        answers.found += [
            Answer(x.label, score, x.places in right) for x, score in predicted.items()
        ]
    return answers


def count_relations(
    examples: Iterable[Example],
    *,
    symmetric: Collection[str] = (),
    spans_key: str | None = None,
    merge_entities: bool = False,
) -> dict[str, PRFScore]:
    """Label -> counts of correct, wrong and missed relations; see :func:`relation_score`."""
    compared = (_pairs(x, symmetric, spans_key, merge_entities) for x in examples)
    return _count((set(predicted), set(gold)) for predicted, gold in compared)


def _count(compared: Iterable[tuple[set[Pair], set[Pair]]]) -> dict[str, PRFScore]:
    """Label -> counts. compared: the predicted and gold relations of each document."""
    per_type: dict[str, PRFScore] = {}
    for predicted_pairs, gold_pairs in compared:
        # Entity labels are left out here. They depend only on the characters, so no two pairs of a
        # set become equal.
        predicted, gold = ({pair.places for pair in x} for x in (predicted_pairs, gold_pairs))
        for label in {label for *_, label in predicted | gold}:
            of_label = ({key for key in keys if key[-1] == label} for keys in (predicted, gold))
            per_type.setdefault(label, PRFScore()).score_set(*of_label)
    return per_type


def semeval_score(
    examples: Iterable[Example], *, other: str = "Other", prefix: str = "rels", **kwargs: Any
) -> dict[str, float | None]:
    """The official score of SemEval-2010 Task 8, as a fraction: ``rels_semeval_f``.

    It is the "(9+1)-way evaluation with directionality taken into account" of the task's scorer
    (version 1.2), macro-averaged over all relations except Other. Precision of a relation is the
    number of correct predictions, direction included, over all predictions of it in either
    direction. Recall is the same number over all gold relations of it in either direction. F is 0
    if both are 0. The mean of F is over the relations that occur in gold, without Other.
    Predicting no relation, or one that never occurs in gold, is like predicting Other.

    One pair per document is judged. The direction is that of head and tail. The suffix "(e2,e1)" of
    a label reverses it, and the suffix "(e1,e2)" is ignored. A prediction on other spans than the
    gold pair counts as one with the wrong direction. Of several predicted relations, the one with
    the highest score counts; of equal scores, the first in the text.

    other: the label of unrelated pairs, if there is one. Documents without a gold relation are
        unrelated pairs, too. If all are, the score is None.

    Raises InputError for a document with several gold relations.
    """
    n_correct: Counter[str] = Counter()
    n_predicted: Counter[str] = Counter()
    n_gold: Counter[str] = Counter()
    for example in examples:
        predicted = _best(example.predicted, common_places(example, example.predicted), other)
        gold = _only(example, other)
        if predicted is not None:
            n_predicted[predicted[-1]] += 1
        if gold is not None:
            n_gold[gold[-1]] += 1
            n_correct[gold[-1]] += predicted == gold
    scores = [PRFScore(tp=n, fp=n_predicted[x] - n, fn=n_gold[x] - n) for x, n in n_correct.items()]
    mean_f = sum(score.fscore for score in scores) / len(scores) if scores else None
    return {f"{prefix}_semeval_f": mean_f}


def relation_and_semeval_score(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Both, because training selects the best model by scores of :func:`relation_score`."""
    examples = list(examples)
    return {**relation_score(examples, **kwargs), **semeval_score(examples, **kwargs)}


def mean(rows: Collection[Mapping[str, float]]) -> dict[str, float]:
    """p, r and f, each averaged over rows; 0 without rows."""
    return {figure: sum(row[figure] for row in rows) / max(len(rows), 1) for figure in FIGURES}


def by_type(
    scores: Mapping[str, PRFScore], labels: Iterable[str]
) -> dict[str, dict[str, float | None]]:
    """Label -> p, r, f. labels: listed with None if they have no score."""
    return {
        label: dict(scores[label].to_dict()) if label in scores else dict.fromkeys(FIGURES)
        for label in sorted({*scores, *labels})
    }


def common_places(example: Example, doc: Doc) -> Callable[[Place], Place]:
    """A function from offsets in ``doc`` to offsets that are comparable within the example.

    doc: the predicted or the reference document.

    The two texts of an example may differ, but only in white space. If they differ, offsets count
    only other characters: "b" of "a  b" and of "a b" both become (1, 2).
    """
    if example.predicted.text == example.reference.text:
        return lambda place: place
    visible = [i for i, character in enumerate(doc.text) if not character.isspace()]
    return lambda place: (bisect_left(visible, place[0]), bisect_left(visible, place[1]))


def _pairs(
    example: Example, symmetric: Collection[str], spans_key: str | None, merged: bool
) -> tuple[dict[Pair, float], dict[Pair, float]]:
    """Predicted and gold relations of the annotated labels, with their scores. Head and tail of
    symmetric labels are in text order, and those of merged entities are on one mention."""
    annotated = annotated_labels(example.reference, "relations")
    docs = (example.predicted, example.reference)
    to_common = [common_places(example, doc) for doc in docs]
    firsts: list[dict[Place, Place]] = [{}, {}]
    if merged:
        firsts = [
            {
                common(place): common(first)
                for place, first in first_mentions(doc, spans_key).items()
            }
            for doc, common in zip(docs, to_common)
        ]
    both = []
    offsets = (
        relation_offsets(example.predicted),
        gold_offsets(example.reference, merged, spans_key),
    )
    for doc, common, items in zip(docs, to_common, offsets):
        entities = _entity_labels(doc, spans_key)
        pairs: dict[Pair, float] = {}
        for item in items:
            if item.label == NO_RELATION:
                continue
            if annotated is not None and item.label not in annotated:
                continue
            head, tail = (
                Side(one_mention(common(place), *firsts), entities.get(place, ""))
                for place in (item.head, item.tail)
            )
            if item.label in symmetric and tail < head:
                head, tail = tail, head
            pair = Pair(head, tail, item.label)
            pairs[pair] = max(item.score, pairs.get(pair, 0.0))
        both.append(pairs)
    predicted, gold = both
    return predicted, gold


def one_mention(
    place: Place, predicted: Mapping[Place, Place], gold: Mapping[Place, Place]
) -> Place:
    """The mention that represents an entity in both documents: its first gold mention, or, if the
    entity is only predicted, its first predicted mention.

    predicted, gold: mention -> first mention of its entity.
    """
    own = predicted.get(place, place)
    return gold.get(place, gold.get(own, own))


def _entity_labels(doc: Doc, spans_key: str | None) -> dict[Place, str]:
    """Characters -> label, from the group spans_key, else from entities, else other groups."""
    labels: dict[Place, str] = {}
    groups = {key: rows_of(group) for key, group in doc.spans.items()}
    for rows in (groups.get(spans_key or "", []), map(row_of, doc.ents), *groups.values()):
        for start, end, label in rows:
            labels.setdefault((start, end), doc.vocab.strings[label])
    return labels


DirectedRelation = tuple[Hashable, Hashable, str]  # head, tail, label without direction


def _directed(
    items: Iterable[Offsets], common: Callable[[Place], Place], other: str
) -> list[tuple[float, DirectedRelation | None]]:
    """(score, relation) of each relation; None for ``other``, and for no relation."""
    relations: list[tuple[float, DirectedRelation | None]] = []
    for item in items:
        head, tail = common(item.head), common(item.tail)
        label = item.label.removesuffix("(e1,e2)")
        if label.endswith("(e2,e1)"):
            label, head, tail = label.removesuffix("(e2,e1)"), tail, head
        is_none = label in (other, NO_RELATION)
        relations.append((item.score, None if is_none else (head, tail, label)))
    return relations


def _best(doc: Doc, common: Callable[[Place], Place], other: str) -> DirectedRelation | None:
    """The predicted relation with the highest score."""
    relations = _directed(relation_offsets(doc), common, other)
    return max(relations, key=lambda row: row[0])[1] if relations else None


def _only(example: Example, other: str) -> DirectedRelation | None:
    """The only gold relation."""
    doc = example.reference
    common = common_places(example, doc)
    relations = {relation for _, relation in _directed(gold_offsets(doc), common, other)}
    if len(relations) > 1:
        raise InputError(
            f"The document {doc.text[:60]!r} has {len(relations)} gold relations; "
            "spacy-luke.semeval_scorer.v1 judges one pair per document."
        )
    return next(iter(relations), None)
