"""Known spans as an input: what a list of names says of each candidate span."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..inputs.alignment import offsets_of, ranges

Array = np.ndarray

RELATIONS = ("equal", "nested", "inside", "around", "crossing")
"""How a candidate lies to a known span: it is equal, is equal to one that is inside a longer known
span, is inside it, contains it, or crosses its start or end."""


class Known(NamedTuple):
    """The known spans of a batch of documents.

    docs: (n,) ascending; starts, ends: (n,) tokens counted in their document. labels: (n,) numbers
    of labels, -1 for a label that the head has not learned. titles: n ids, empty without one.
    """

    docs: Array
    starts: Array
    ends: Array
    labels: Array
    titles: Sequence[str]


class KnownFeatures(NamedTuple):
    """What is known of candidates, in rows of different lengths.

    offsets: (n_candidates + 1,) the first feature of each; features: (n,) ``relation * n_labels +
    label``; weights: (n,) 1 / the number of labels with that relation to the candidate.
    title_offsets: (n_candidates + 1,) the first title of each; titles: ids of equal known spans.
    asked: (n_candidates,) whether a candidate is equal to a known span. is_known: the same, if it
    is not inside a longer one.
    """

    offsets: Array
    features: Array
    weights: Array
    title_offsets: Array
    titles: Sequence[str]
    asked: Array
    is_known: Array

    @property
    def counts(self) -> Array:
        """(n_candidates,) the number of features."""
        return np.diff(self.offsets)

    def of(self, rows: Array) -> tuple[Array, Array, Array]:
        """Features, weights and, for each of the rows, the first of its features."""
        counts = self.counts[rows]
        inside = ranges(self.offsets[rows], self.offsets[rows] + counts)
        return self.features[inside], self.weights[inside], offsets_of(counts)[:-1]

    def rows_of(self, find: Callable[[str, int], int | None], absent: int) -> tuple[Array, Array]:
        """Rows of the entity table: offsets (n_candidates + 1,), and rows (n,) that ``find`` knows
        of a title and the number of its candidate; a candidate without any has the row
        ``absent``."""
        owner = np.repeat(np.arange(len(self.counts)), np.diff(self.title_offsets))
        rows_found = map(find, self.titles, owner.tolist())
        found = np.asarray([-1 if row is None else row for row in rows_found], int)
        counts = np.bincount(owner[found >= 0], minlength=len(self.counts))
        rows = np.full(int(np.maximum(counts, 1).sum()), absent, dtype=np.int64)
        offsets = offsets_of(np.maximum(counts, 1))
        rows[ranges(offsets[:-1], offsets[:-1] + counts)] = found[found >= 0]
        return offsets, rows


def known_features(spans: Array, of_doc: Array, known: Known, n_labels: int) -> KnownFeatures:
    """The features of candidates. spans: (n, 2); of_doc: (n,) ascending."""
    rows, hits, inside, around = _overlapping(spans, of_doc, known)
    equal = inside & around
    nested = equal & _nested(known)[hits]
    relation = np.select([nested, equal, inside, around], [1, 0, 2, 3], 4)
    asked, is_known = np.zeros((2, len(spans)), dtype=bool)
    asked[rows[equal]], is_known[rows[equal & ~nested]] = True, True
    # Titles of equal spans, each once a candidate.
    pairs = [(row, known.titles[i]) for row, i in zip(rows[equal].tolist(), hits[equal].tolist())]
    named = sorted({pair for pair in pairs if pair[1]})
    titled = np.bincount(np.asarray([row for row, _ in named], int), minlength=len(spans))
    # Features, each once a candidate.
    labelled = known.labels[hits] >= 0
    table = np.stack([rows, relation, known.labels[hits]], 1)[labelled]
    table = np.unique(table, axis=0).reshape(-1, 3)
    kind = table[:, 0] * len(RELATIONS) + table[:, 1]
    _, group, sizes = np.unique(kind, return_inverse=True, return_counts=True)
    return KnownFeatures(
        offsets_of(np.bincount(table[:, 0], minlength=len(spans))),
        table[:, 1] * n_labels + table[:, 2],
        (1.0 / sizes[group]).astype("float32"),
        offsets_of(titled),
        [title for _, title in named],
        asked,
        is_known,
    )


def _nested(known: Known) -> Array:
    """(n,) whether a known span is inside a longer one."""
    spans = np.stack([known.starts, known.ends], 1)
    rows, _, inside, around = _overlapping(spans, known.docs, known)
    nested = np.zeros(len(spans), dtype=bool)
    nested[rows[inside & ~around]] = True
    return nested


def _overlapping(spans: Array, of_doc: Array, known: Known) -> tuple[Array, Array, Array, Array]:
    """Pairs of a candidate and a known span that share a token: both numbers, and whether the
    candidate is inside the known span, and contains it."""
    if not len(spans) or not len(known.docs):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing.astype(bool), nothing.astype(bool)
    # Candidates by place: their starts are counted over the batch, so that documents are apart.
    # Those of about one width are searched together: a wide one may begin far before a known span.
    stride = int(max(spans.max(), known.ends.max())) + 1
    place, base = of_doc * stride + spans[:, 0], known.docs * stride
    width = np.ceil(np.log2(np.maximum(spans[:, 1] - spans[:, 0], 1))).astype(np.int64)
    pairs = []
    for size in np.unique(width).tolist():
        candidates = np.flatnonzero(width == size)
        order = candidates[np.argsort(place[candidates], kind="stable")]
        low = np.searchsorted(place[order], base + np.maximum(known.starts - 2**size + 1, 0))
        high = np.maximum(np.searchsorted(place[order], base + known.ends), low)
        found = order[ranges(low, high)], np.repeat(np.arange(len(known.docs)), high - low)
        overlap = spans[found[0], 1] > known.starts[found[1]]
        pairs.append([x[overlap] for x in found])
    rows, hits = (np.concatenate(x) for x in zip(*pairs))
    starts, ends = spans[rows].T
    inside = (starts >= known.starts[hits]) & (ends <= known.ends[hits])
    around = (starts <= known.starts[hits]) & (ends >= known.ends[hits])
    return rows, hits, inside, around
