"""Gold spans of examples, as targets for candidate spans."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Span
from spacy.training import Example

from ..annotations.annotated import is_annotated

Array = np.ndarray


@dataclass
class GoldSpans:
    """Gold spans on the predicted side's tokens.

    docs, starts, ends: (n,); labels: n strings. n_misaligned: (n_docs,) gold spans that do not
    fit the predicted tokens. missing: for each document, (n_tokens,) True where the reference
    has no annotation, or one that does not fit; None where all is known.
    """

    docs: Array
    starts: Array
    ends: Array
    labels: list[str]
    n_misaligned: Array
    missing: list[Array | None]


def gold_spans(examples: Sequence[Example], spans_key: str | None) -> GoldSpans:
    """Read gold from ``Doc.ents`` (spans_key None) or from a spans group. A document whose entities
    are not annotated has none, and nothing of it is known."""
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
            there = spans_key in eg.reference.spans
            gold = list(eg.reference.spans[spans_key]) if there else []
            missing.append(None if there else np.ones(len(eg.predicted), dtype=bool))
        aligned = eg.get_aligned_spans_y2x(gold, allow_overlap=spans_key is not None)
        misaligned[i] = len(gold) - len(aligned)
        if misaligned[i]:
            missing[i] = _also_unfit(eg, gold, missing[i])
        rows.extend((i, span.start, span.end) for span in aligned)
        labels.extend(span.label_ for span in aligned)
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 3)
    return GoldSpans(table[:, 0], table[:, 1], table[:, 2], labels, misaligned, missing)


def match_gold(docs: Array, spans: Array, gold: GoldSpans, doc_lengths: Sequence[int]) -> Array:
    """(n_candidates,) the gold span equal to each candidate, or -1.

    docs: (n_candidates,), spans: (n_candidates, 2). Equal candidates match the same gold span.
    """
    if not len(gold.docs):
        return np.full(len(docs), -1, dtype=np.int64)
    # Odd suggesters propose ends past the document: keys must stay distinct for those too.
    width = max(max(doc_lengths, default=0), int(spans.max(initial=0))) + 1

    def key(doc: Array, start: Array, end: Array) -> Array:
        return (doc * width + start) * width + end

    keys = key(gold.docs, gold.starts, gold.ends)
    order = np.argsort(keys, kind="stable")
    wanted = key(docs, spans[:, 0], spans[:, 1])
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order[at]] == wanted, order[at], -1)


def touches_missing(docs: Array, spans: Array, missing: Sequence[Array | None]) -> Array:
    """(n_candidates,) whether a candidate has a token without annotation. docs: ascending."""
    result = np.zeros(len(docs), dtype=bool)
    bounds = np.searchsorted(docs, np.arange(len(missing) + 1)).tolist()
    for i, tokens in enumerate(missing):
        if tokens is not None:
            mine = slice(bounds[i], bounds[i + 1])
            counts = np.concatenate([[0], np.cumsum(tokens)])
            inside = np.clip(spans[mine], 0, len(tokens))
            result[mine] = counts[inside[:, 1]] > counts[inside[:, 0]]
    return result


def _missing(eg: Example) -> Array | None:
    if eg.reference.has_annotation("ENT_IOB", require_complete=True):
        return None
    # None: the parts of a token disagree.
    values = eg.get_aligned("ENT_IOB")
    return np.asarray([value in (0, None) for value in values], dtype=bool)


def _also_unfit(eg: Example, gold: Sequence[Span], missing: Array | None) -> Array:
    """Tokens that a gold span touches without fitting are not known to be none."""
    missing = np.zeros(len(eg.predicted), dtype=bool) if missing is None else missing
    for span in gold:
        if not eg.get_aligned_spans_y2x([span]):
            missing[np.ravel(eg.alignment.y2x[span.start : span.end])] = True
    return missing
