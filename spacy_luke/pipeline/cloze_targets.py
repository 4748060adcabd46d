"""Right completions as targets of candidates, and those that cannot be learned."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import minibatch
from thinc.api import Model

from ..annotations.mentions import characters
from ..annotations.queries import (
    Offsets,
    check_same_queries,
    completion_offsets,
    has_completions,
    merge_mentions,
    query_texts,
)
from ..layers.cloze_scorer import ClozeQuery
from ..layers.task_layer import fits
from ..metrics.relations import common_places
from ..report import LOGGER, log_lost
from .class_loss import Targets

LOST = ("not asked", "no candidate", "too long")
ADVICE = (
    "The predicted documents need queries: train with the corpus reader "
    "spacy-luke.PresetEntsCorpus.v1, which gives them those of the references."
)


def is_asked(eg: Example) -> bool:
    """Whether the predicted document has the queries of the reference, and these have right
    answers. Raises InputError if it has other queries."""
    if not has_completions(eg.reference) or not query_texts(eg.predicted):
        return False
    check_same_queries(eg.predicted, eg.reference)
    return True


def cloze_targets(examples: Sequence[Example], query: ClozeQuery) -> Targets:
    """(n_rows, 1) whether each candidate is right; and (n_rows,) whether that is known.

    All mentions of an entity are right if one of them is: by its characters, or by its text.
    """
    targets = np.zeros((len(query.of_query), 1), dtype=np.float32)
    known = np.zeros(len(targets), dtype=bool)
    low = 0
    for spans, (eg, right) in zip(query.candidates, _right_of(examples)):
        own = slice(low, low + len(spans))
        known[own] = bool(right)
        targets[own, 0] = _is_right(eg, spans, right)
        low += len(spans)
    return targets, known


def _right_of(examples: Iterable[Example]) -> Iterable[tuple[Example, list[Offsets]]]:
    """The right completions of each query of the predicted documents; empty if not known."""
    for eg in examples:
        if is_asked(eg):
            yield from ((eg, right) for right in completion_offsets(eg.reference))
        else:
            yield from ((eg, []) for _ in query_texts(eg.predicted))


def _is_right(eg: Example, spans: Sequence[Span], right: Sequence[Offsets]) -> list[bool]:
    to_common = common_places(eg, eg.reference)
    places = {to_common(place) for item in right for place in item.mentions}
    texts = {item.text for item in right}
    to_common = common_places(eg, eg.predicted)
    result = [False] * len(spans)
    for entity in merge_mentions(spans):
        hits = [to_common(characters(spans[i])) in places or spans[i].text in texts for i in entity]
        for i in entity:
            result[i] = any(hits)
    return result


def count_limits(
    name: str,
    model: Model,
    examples: Iterable[Example],
    query_of: Callable[[Sequence[Doc]], ClozeQuery],
) -> dict[str, int]:
    """Counts, of queries with right answers: ``gold`` all, ``not asked`` of predicted documents,
    ``no candidate`` is right, or all that are right are ``too long`` for a window."""
    counts = dict.fromkeys(("gold", *LOST), 0)
    for batch in minibatch(examples, 32):
        part = [eg for eg in batch if has_completions(eg.reference)]
        asked = [eg for eg in part if is_asked(eg)]
        for eg in part:
            n = sum(map(bool, completion_offsets(eg.reference)))
            counts["gold"] += n
            counts["not asked"] += 0 if eg in asked else n
        query = query_of([eg.predicted for eg in asked])
        targets, _ = cloze_targets(asked, query)
        right, fit, low = targets[:, 0] > 0, fits(model, query), 0
        for spans, (_, golds) in zip(query.candidates, _right_of(asked)):
            own = slice(low, low + len(spans))
            low += len(spans)
            if golds:
                counts["no candidate"] += not right[own].any()
                counts["too long"] += bool(right[own].any() and not (right & fit)[own].any())
    log_lost(
        sum(counts[x] for x in LOST),
        "%s: %d queries have right answers. %d are not asked of the documents, for %d no candidate "
        "is right, and for %d the right ones are longer than a window: these cannot be learned.",
        name,
        *counts.values(),
    )
    if counts["not asked"]:
        LOGGER.warning("%s: %s", name, ADVICE)
    return counts
