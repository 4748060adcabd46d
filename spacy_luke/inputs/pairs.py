"""Candidate pairs: the pairs of a document's entities that are scored."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field
from spacy.tokens import Doc, Span
from spacy.util import registry

from ..validation import check_settings
from .alignment import ranges
from .windows import sentence_starts

Array = np.ndarray
Entity = Sequence[Span]
Candidates = Callable[[Doc, Sequence[Entity]], Array]


@registry.misc("spacy-luke.relation_candidates.v1")
def build_relation_candidates(
    max_distance: Annotated[int, Field(ge=0)] | None = None,
    same_sentence: bool = False,
    label_pairs: list[Annotated[list[str], Field(min_length=2, max_length=2)]] | None = None,
    head_ids: list[str] | None = None,
    tail_ids: list[str] | None = None,
) -> Candidates:
    """Make a function that returns the ordered pairs of a document's entities that are scored.

    max_distance: most words between two mentions of the entities (0: they touch or overlap).
    same_sentence: two mentions of the entities must be in one sentence.
    label_pairs: allowed [head label, tail label] pairs.
    head_ids, tail_ids: allowed ``Span.id_`` of heads and tails, for corpora that name the roles.

    The function takes a document and its entities, each a list of mentions, and returns an
    (n, 2) array of their indices. An entity is never paired with itself.
    """
    check_settings("relation_candidates", build_relation_candidates, locals())
    allowed = None if label_pairs is None else {tuple(pair) for pair in label_pairs}
    # Not a nested function: pipelines are pickled for other processes.
    return partial(
        _candidates,
        max_distance=max_distance,
        same_sentence=same_sentence,
        allowed=allowed,
        head_ids=head_ids,
        tail_ids=tail_ids,
    )


def _candidates(
    doc: Doc,
    entities: Sequence[Entity],
    *,
    max_distance: int | None,
    same_sentence: bool,
    allowed: set[tuple[str, ...]] | None,
    head_ids: list[str] | None,
    tail_ids: list[str] | None,
) -> Array:
    pairs = _near(doc, entities, max_distance, same_sentence)
    if allowed is not None:
        pairs = pairs[_have_allowed_labels(entities, pairs, allowed)]
    if head_ids is not None:
        pairs = pairs[_has_id(entities, head_ids)[pairs[:, 0]]]
    if tail_ids is not None:
        pairs = pairs[_has_id(entities, tail_ids)[pairs[:, 1]]]
    return pairs


def _have_allowed_labels(
    entities: Sequence[Entity], pairs: Array, allowed: set[tuple[str, ...]]
) -> Array:
    """(n_pairs,) whether any labels of the mentions of two entities are an allowed pair."""
    # There are few different sets of labels, but there may be millions of pairs.
    numbers: dict[frozenset[str], int] = {}
    of_entity = [
        numbers.setdefault(frozenset(span.label_ for span in entity), len(numbers))
        for entity in entities
    ]
    table = [[any((a, b) in allowed for a in x for b in y) for y in numbers] for x in numbers]
    heads, tails = np.asarray(of_entity, dtype=np.int64)[pairs].T
    return np.asarray(table, dtype=bool).reshape(len(numbers), len(numbers))[heads, tails]


def _has_id(entities: Sequence[Entity], ids: Sequence[str]) -> Array:
    """(n,) whether a mention of the entity has one of the ids."""
    of_entity = [any((span.id_ or span.ent_id_) in ids for span in entity) for entity in entities]
    return np.asarray(of_entity, dtype=bool)


def _near(
    doc: Doc, entities: Sequence[Entity], max_distance: int | None, same_sentence: bool
) -> Array:
    """(n, 2) the ordered pairs of entities of which any two mentions satisfy the limits, sorted.

    Time and memory are those of the pairs: a book has thousands of entities, but few of them are
    near each other.
    """
    n, sizes = len(entities), [len(entity) for entity in entities]
    mentions = [span for entity in entities for span in entity]
    starts = np.asarray([span.start for span in mentions], dtype=np.int64)
    order = np.argsort(starts, kind="stable")
    starts, of_entity = starts[order], np.repeat(np.arange(n), sizes)[order]
    ends = np.asarray([span.end for span in mentions], dtype=np.int64)[order]
    # In text order, the mentions behind each one that are near it are next to each other.
    first = np.arange(len(mentions))
    stops = np.full(len(mentions), len(mentions))
    if max_distance is not None:
        stops = np.searchsorted(starts, ends + max_distance, side="right")
    if same_sentence:
        of_sentence = np.searchsorted(sentence_starts(doc), starts, side="right")
        stops = np.minimum(stops, np.searchsorted(of_sentence, of_sentence, side="right"))
    stops = np.maximum(stops, first + 1)
    one = of_entity[np.repeat(first, stops - first - 1)]
    other = of_entity[ranges(first + 1, stops)]
    differ = one != other
    one, other = one[differ], other[differ]
    codes = np.unique(np.concatenate([one * n + other, other * n + one]))
    return np.stack(np.divmod(codes, max(n, 1)), axis=1)
