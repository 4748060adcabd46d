"""Candidate pairs: the pairs of a document's entities that are scored."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field
from spacy.tokens import Doc, Span
from spacy.util import registry

from ..validation import check_settings

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
    n = len(entities)
    keep = ~np.eye(n, dtype=bool)
    if n and (max_distance is not None or same_sentence):
        keep &= _near(doc, entities, max_distance, same_sentence)
    if n and allowed is not None:
        keep &= _has_allowed_labels(entities, allowed)
    if head_ids is not None:
        keep &= _has_id(entities, head_ids)[:, None]
    if tail_ids is not None:
        keep &= _has_id(entities, tail_ids)[None, :]
    return np.argwhere(keep)


def _has_allowed_labels(entities: Sequence[Entity], allowed: set[tuple[str, ...]]) -> Array:
    """(n, n) whether any labels of the mentions of two entities are an allowed pair."""
    of_entity = [{span.label_ for span in entity} for entity in entities]
    labels = sorted(set().union(*of_entity))
    has_label = np.asarray([[x in own for x in labels] for own in of_entity], dtype=int)
    is_allowed = np.asarray([[(a, b) in allowed for b in labels] for a in labels], dtype=int)
    return has_label @ is_allowed @ has_label.T > 0  # the number of allowed label pairs


def _has_id(entities: Sequence[Entity], ids: Sequence[str]) -> Array:
    """(n,) whether a mention of the entity has one of the ids."""
    of_entity = [any((span.id_ or span.ent_id_) in ids for span in entity) for entity in entities]
    return np.asarray(of_entity, dtype=bool)


def _near(
    doc: Doc, entities: Sequence[Entity], max_distance: int | None, same_sentence: bool
) -> Array:
    """(n, n) whether any two mentions of two entities satisfy the limits."""
    mentions = [span for entity in entities for span in entity]
    starts = np.asarray([span.start for span in mentions])
    ends = np.asarray([span.end for span in mentions])
    near = np.ones((len(mentions), len(mentions)), dtype=bool)
    if max_distance is not None:
        near &= np.maximum(starts[None, :] - ends[:, None], starts[:, None] - ends[None, :]) <= (
            max_distance
        )
    if same_sentence and doc.has_annotation("SENT_START"):
        bounds = np.asarray([sent.start for sent in doc.sents])
        of_sentence = np.searchsorted(bounds, starts, side="right")
        near &= of_sentence[:, None] == of_sentence[None, :]
    # From mentions to entities: two entities are near if any of their mentions are.
    firsts = np.cumsum([0] + [len(entity) for entity in entities[:-1]])
    near = np.logical_or.reduceat(near, firsts, axis=0)
    return np.logical_or.reduceat(near, firsts, axis=1)
