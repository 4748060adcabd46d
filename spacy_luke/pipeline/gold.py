"""Gold spans of examples, as targets for candidate spans."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.attrs import ENT_IOB
from spacy.tokens import Span
from spacy.training import Example

from ..annotations.alignment import aligned_spans
from ..annotations.annotated import is_annotated

Array = np.ndarray


@dataclass
class GoldSpans:
    """Gold spans on the predicted side's tokens.

    docs, starts, ends: (n,); labels: n strings.
    n_misaligned: (n_docs,) gold spans that do not fit the predicted tokens.
    missing: per document (n_tokens,), True if the reference has no annotation of the token, or a
        span that does not fit it; None if all tokens are annotated.
    """

    docs: Array
    starts: Array
    ends: Array
    labels: list[str]
    n_misaligned: Array
    missing: list[Array | None]


def gold_spans(examples: Sequence[Example], spans_key: str | None) -> GoldSpans:
    """Read gold from ``Doc.ents`` (spans_key None) or from a spans group. A document whose entities
    are not annotated has no gold spans, and all of its tokens are missing."""
    rows: list[tuple[int, int, int]] = []
    labels: list[str] = []
    misaligned = np.zeros(len(examples), dtype=np.int64)
    missing: list[Array | None] = []
    for i, eg in enumerate(examples):
        if not is_annotated(eg.reference, "ents"):
            gold = []
            missing.append(np.ones(len(eg.predicted), dtype=bool))
        elif spans_key is None:
            gold = list(eg.reference.ents)
            missing.append(_missing(eg))
        else:
            has_group = spans_key in eg.reference.spans
            gold = list(eg.reference.spans[spans_key]) if has_group else []
            missing.append(None if has_group else np.ones(len(eg.predicted), dtype=bool))
        aligned = eg.get_aligned_spans_y2x(gold, allow_overlap=spans_key is not None)
        misaligned[i] = len(gold) - len(aligned)
        if misaligned[i]:
            missing[i] = _with_misaligned(eg, gold, missing[i])
        rows.extend((i, span.start, span.end) for span in aligned)
        labels.extend(span.label_ for span in aligned)
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
    return GoldSpans(table[:, 0], table[:, 1], table[:, 2], labels, misaligned, missing)


def match_gold(docs: Array, spans: Array, gold: GoldSpans, doc_lengths: Sequence[int]) -> Array:
    """(n_candidates,) the index of the gold span that equals each candidate, or -1.

    docs: (n_candidates,); spans: (n_candidates, 2) token ranges. Equal candidates match one gold
    span.
    """
    if not len(gold.docs):
        return np.full(len(docs), -1, dtype=np.int64)
    # Each span gets a number of its own. Suggesters may propose ends beyond the document, so the
    # width has to exceed those too.
    width = max(max(doc_lengths, default=0), int(spans.max(initial=0))) + 1

    def key(doc: Array, start: Array, end: Array) -> Array:
        return (doc * width + start) * width + end

    keys = key(gold.docs, gold.starts, gold.ends)
    order = np.argsort(keys, kind="stable")
    candidate_keys = key(docs, spans[:, 0], spans[:, 1])
    nearest = order[np.minimum(np.searchsorted(keys[order], candidate_keys), len(keys) - 1)]
    return np.where(keys[nearest] == candidate_keys, nearest, -1)


def touches_missing(docs: Array, spans: Array, missing: Sequence[Array | None]) -> Array:
    """(n_candidates,) whether a candidate has a token without annotation. docs: ascending."""
    # A candidate [1, 3) in a document of missing F F T: counts 0 0 0 1, so counts[3] > counts[1].
    result = np.zeros(len(docs), dtype=bool)
    bounds = np.searchsorted(docs, np.arange(len(missing) + 1)).tolist()
    for i, tokens in enumerate(missing):
        if tokens is not None:
            of_doc = slice(bounds[i], bounds[i + 1])
            counts = np.concatenate([[0], np.cumsum(tokens)])
            clipped = np.clip(spans[of_doc], 0, len(tokens))
            result[of_doc] = counts[clipped[:, 1]] > counts[clipped[:, 0]]
    return result


def _missing(eg: Example) -> Array | None:
    """(n_tokens,) whether a token has a reference token whose ``ENT_IOB`` is not annotated; None if
    all are annotated. A token without reference tokens (white space) is as the one before it."""
    if eg.reference.has_annotation("ENT_IOB", require_complete=True):
        return None
    missing = np.zeros(len(eg.predicted), dtype=bool)
    alignment = eg.alignment
    for i in np.flatnonzero(eg.reference.to_array(ENT_IOB) == 0).tolist():
        missing[alignment.y2x[i]] = True
    # White space at the end may have a length of its own, beyond the tokens.
    has_reference = np.asarray(alignment.x2y.lengths)[: len(missing)] > 0
    before = np.maximum.accumulate(np.where(has_reference, np.arange(len(missing)), -1))
    return np.where(before < 0, True, missing[before])


def _with_misaligned(eg: Example, gold: Sequence[Span], missing: Array | None) -> Array:
    """Also mark the tokens under gold spans that do not fit: it is not known whether they belong to
    an entity of the predicted tokens."""
    missing = np.zeros(len(eg.predicted), dtype=bool) if missing is None else missing
    y2x = eg.alignment.y2x
    for span, place in zip(gold, aligned_spans(eg, gold)):
        if place is None:
            missing[y2x[span.start : span.end]] = True
    return missing
